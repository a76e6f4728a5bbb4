//! The nodes that share a log and serve each other's requests: the table of nodes, and the placement of societies.

use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{SocietyId, Timestamp};
use polis_ports::{Claimed, LogError, Node, Outdated, Placement, Taken};
use tokio_postgres::types::Type;

use crate::connection::param;
use crate::placement::{self, Claim};
use crate::pool::Pool;
use crate::postgres_log::PostgresLog;
use crate::reader::{self, column, name};
use crate::sql;

/// What a node says of itself.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Where the other nodes reach it: a host and a port.
    pub address: String,
    /// The SHA-256 of its public key.
    pub key: Vec<u8>,
    /// A digest of what all nodes should have the same.
    pub setup: String,
}

/// Enters this node into the table, or renews its lease.
pub(crate) async fn keep(pool: &Pool, node: &str, listing: &Listing, lease: Duration) -> Result<(), LogError> {
    let (address, key) = (param(listing.address.clone(), Type::TEXT), param(listing.key.clone(), Type::BYTEA));
    let setup = param(listing.setup.clone(), Type::TEXT);
    let params = [param(node.to_owned(), Type::TEXT), address, key, placement::microseconds(lease), setup];
    pool.query(sql::KEEP_NODE, &params).await.map(drop)
}

pub(crate) async fn remove(pool: &Pool, node: &str) -> Result<(), LogError> {
    pool.query(sql::REMOVE_NODE, &[param(node.to_owned(), Type::TEXT)]).await.map(drop)
}

impl PostgresLog {
    /// The nodes, by name; those whose lease has ended too, for a while.
    ///
    /// # Errors
    ///
    /// [`LogError`], if the database cannot be asked.
    pub async fn nodes(&self) -> Result<Vec<Node>, LogError> {
        self.run(|pool| async move {
            let read = |row: &tokio_postgres::Row| {
                Ok(Node {
                    name: column(row, 0)?,
                    address: column(row, 1)?,
                    key: column(row, 2)?,
                    since: Timestamp(column::<i64>(row, 3)? as u64),
                    lease: Duration::from_micros(column::<i64>(row, 4)? as u64),
                    is_draining: column(row, 5)?,
                    societies: column::<i64>(row, 6)? as u64,
                    setup: column(row, 7)?,
                })
            };
            pool.query(sql::NODES, &[]).await?.iter().map(read).collect()
        })
        .await
    }

    /// Has a node give its societies away and take none, or take some again. Gives whether there is such a node.
    ///
    /// # Errors
    ///
    /// [`LogError`], if the database cannot be asked.
    pub async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, LogError> {
        let params = [param(node.to_owned(), Type::TEXT), param(draining, Type::BOOL)];
        self.run(move |pool| async move { Ok(!pool.query(sql::SET_DRAINING, &params).await?.is_empty()) }).await
    }
}

#[async_trait]
impl Placement for PostgresLog {
    fn this(&self) -> &str {
        self.name().unwrap_or_default()
    }

    fn period(&self) -> Duration {
        self.leases().lease() / 5
    }

    async fn claim(&self, society: &SocietyId) -> Result<Claimed, LogError> {
        Ok(match self.hold(society).await? {
            Claim::Ours(_) => Claimed::Here,
            Claim::Theirs(owner) => Claimed::By(owner.node),
        })
    }

    fn holds(&self, society: &SocietyId) -> bool {
        self.leases().holds(society)
    }

    async fn release(&self, society: &SocietyId, has_work: bool) -> Result<(), LogError> {
        self.give_back(society, has_work).await
    }

    async fn owner(&self, society: &SocietyId) -> Result<Option<String>, LogError> {
        Ok(PostgresLog::owner(self, society).await?.map(|owner| owner.node))
    }

    async fn unowned(&self, most: usize) -> Result<Vec<SocietyId>, LogError> {
        let params = [reader::limit(most)];
        self.run(move |pool| async move {
            let rows = pool.query(sql::UNOWNED, &params).await?;
            rows.iter().map(|row| name(column(row, 0)?).map(SocietyId::from)).collect()
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<Node>, LogError> {
        PostgresLog::nodes(self).await
    }

    async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, LogError> {
        PostgresLog::set_draining(self, node, draining).await
    }

    async fn take(&self, taken: &[Taken]) -> Result<Vec<(String, f64)>, LogError> {
        let numbers = |of: fn(&Taken) -> u32| {
            let numbers: Vec<f64> = taken.iter().map(|taken| f64::from(of(taken))).collect();
            param(numbers, Type::FLOAT8_ARRAY)
        };
        let names: Vec<_> = taken.iter().map(|taken| taken.name.clone()).collect();
        let params = [
            param(names, Type::TEXT_ARRAY),
            numbers(|taken| taken.requests),
            numbers(|taken| taken.per_second),
            numbers(|taken| taken.burst),
        ];
        self.run(move |pool| async move {
            let rows = pool.query(sql::TAKE, &params).await?;
            // What stays is removed another time.
            let _ = pool.query(sql::FORGET_RATES, &[]).await;
            rows.iter().map(|row| Ok((column(row, 0)?, column(row, 1)?))).collect()
        })
        .await
    }

    async fn outdated(&self) -> Result<Vec<Outdated>, LogError> {
        let params = [param(Placement::this(self).to_owned(), Type::TEXT)];
        let rows = self.run(move |pool| async move { pool.query(sql::ERASURES, &params).await }).await?;
        let mut outdated = Vec::new();
        for row in rows {
            let (society, erasures) = (SocietyId::from(name(column(&row, 0)?)?), column::<i64>(&row, 1)?);
            if self.claims().erasures(&society).is_some_and(|followed| followed < erasures) {
                outdated.push(Outdated { society, erasures: erasures as u64 });
            }
        }
        Ok(outdated)
    }

    fn follow(&self, Outdated { society, erasures }: &Outdated) {
        self.claims().follow(society, *erasures as i64);
    }

    async fn lost(&self) -> (SocietyId, String) {
        PostgresLog::lost(self).await
    }
}
