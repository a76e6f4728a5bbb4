//! Who owns a society: leases in its row, by the clock of the database.
//!
//! A claim raises the epoch, so what the owner before it still sends writes nothing. A log that has claimed a society writes to it
//! only under that claim, also when it has lost it, until it releases it or claims it again. Societies that nobody has claimed can
//! be written by any log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polis_domain::SocietyId;
use polis_ports::LogError;
use rustc_hash::FxHashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::{Connection, Param, param};
use crate::pool::{Pool, Work};
use crate::reader::{column, name, named};
use crate::sql;

/// How often a society is claimed that changes meanwhile.
const TRIES: usize = 5;

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The society is this node's, under this epoch.
    Ours(u64),
    /// Another node has a lease that has not ended.
    Theirs(Owner),
}

/// Who owns a society.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The name of the node.
    pub node: String,
    /// The epoch of its claim, or a later one: it grows also when the owner makes sure what became of an append.
    pub epoch: u64,
    /// How long its lease lasts still, if it is not renewed.
    pub remaining: Duration,
}

/// The societies that this log has claimed.
#[derive(Default)]
pub(crate) struct Claims(Mutex<FxHashMap<SocietyId, Held>>);

/// A claim.
#[derive(Clone, Copy)]
struct Held {
    epoch: i64,
    /// How many erasures of other societies the state has followed: it was folded from the log after the claim.
    erasures: i64,
}

impl Claims {
    pub(crate) fn epoch(&self, society: &SocietyId) -> Option<i64> {
        self.lock().get(society).map(|held| held.epoch)
    }

    pub(crate) fn erasures(&self, society: &SocietyId) -> Option<i64> {
        self.lock().get(society).map(|held| held.erasures)
    }

    /// The state is made anew and follows so many erasures.
    pub(crate) fn follow(&self, society: &SocietyId, erasures: i64) {
        if let Some(held) = self.lock().get_mut(society) {
            held.erasures = erasures.max(held.erasures);
        }
    }

    /// Raises the epoch of a claim that stays.
    pub(crate) fn raise(&self, society: &SocietyId, epoch: i64) {
        if let Some(held) = self.lock().get_mut(society) {
            held.epoch = epoch.max(held.epoch);
        }
    }

    pub(crate) fn forget(&self, society: &SocietyId) {
        self.lock().remove(society);
    }

    fn add(&self, society: &SocietyId, held: Held) {
        self.lock().insert(society.clone(), held);
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<SocietyId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn claim(
    pool: &Pool,
    claims: &Claims,
    node: &str,
    society: &SocietyId,
    lease: Duration,
) -> Result<Claim, LogError> {
    let try_claim = TryClaim {
        society: [named(society)],
        names: [param(vec![society.as_str().as_bytes().to_vec()], Type::BYTEA_ARRAY)],
        claim: [named(society), param(node.to_owned(), Type::TEXT), microseconds(lease)],
    };
    match pool.run(&try_claim).await? {
        Ok(held) => {
            claims.add(society, held);
            Ok(Claim::Ours(held.epoch as u64))
        }
        Err(Some(owner)) => Ok(Claim::Theirs(owner)),
        Err(None) => Err(LogError::Failed(format!("`{society}` has just changed hands; claim it again").into())),
    }
}

/// A claim that is being made.
struct TryClaim {
    society: [Param; 1],
    names: [Param; 1],
    claim: [Param; 3],
}

impl Work for TryClaim {
    /// The claim, or who else owns the society.
    type Output = Result<Held, Option<Owner>>;

    async fn run(&self, connection: &mut Connection) -> Result<Self::Output, LogError> {
        let mut owner = None;
        for _ in 0..TRIES {
            if let Some(row) = connection.query(sql::CLAIM, &self.claim).await?.first() {
                return Ok(Ok(Held { epoch: column(row, 0)?, erasures: column(row, 1)? }));
            }
            connection.query(sql::ENSURE, &self.names).await?;
            owner = owner_in(&connection.query(sql::OWNER, &self.society).await?)?;
            // It was made just now, or the lease has ended since the claim.
            if owner.is_some() {
                break;
            }
        }
        Ok(Err(owner))
    }
}

/// Those of the societies whose lease was renewed.
pub(crate) async fn renew(
    pool: &Pool,
    node: &str,
    societies: &[SocietyId],
    lease: Duration,
) -> Result<Vec<SocietyId>, LogError> {
    let names: Vec<_> = societies.iter().map(|society| society.as_str().as_bytes().to_vec()).collect();
    let params = [param(names, Type::BYTEA_ARRAY), param(node.to_owned(), Type::TEXT), microseconds(lease)];
    let rows = pool.query(sql::RENEW, &params).await?;
    rows.iter().map(|row| name(column(row, 0)?).map(SocietyId::from)).collect()
}

/// Gives a society back.
pub(crate) async fn release(
    pool: &Pool,
    claims: &Claims,
    node: &str,
    society: &SocietyId,
    has_work: bool,
) -> Result<(), LogError> {
    pool.query(sql::RELEASE, &[named(society), param(node.to_owned(), Type::TEXT), param(has_work, Type::BOOL)]).await?;
    claims.forget(society);
    Ok(())
}

pub(crate) async fn owner(pool: &Pool, society: &SocietyId) -> Result<Option<Owner>, LogError> {
    owner_in(&pool.query(sql::OWNER, &[named(society)]).await?)
}

pub(crate) async fn first_owned(pool: &Pool) -> Result<Option<(SocietyId, Owner)>, LogError> {
    let rows = pool.query(sql::FIRST_OWNED, &[]).await?;
    rows.first().map(|row| Ok((name(column(row, 3)?)?.into(), owner_of(row)?))).transpose()
}

fn owner_in(rows: &[Row]) -> Result<Option<Owner>, LogError> {
    rows.first().map(owner_of).transpose()
}

fn owner_of(row: &Row) -> Result<Owner, LogError> {
    let remaining = Duration::from_micros(u64::try_from(column::<i64>(row, 2)?).unwrap_or(0));
    Ok(Owner { node: column(row, 0)?, epoch: column::<i64>(row, 1)? as u64, remaining })
}

pub(crate) fn microseconds(lease: Duration) -> Param {
    param(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX), Type::INT8)
}
