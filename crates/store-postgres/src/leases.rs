//! The leases that a log holds: renewed in the background, and given up in time.
//!
//! The database ends a lease by its own clock. Here it ends a quarter earlier, counted from before the database was asked and by a
//! clock that goes on while the machine is suspended. So this side never acts under a lease that another node may have taken.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polis_domain::SocietyId;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::nodes::{self, Listing};
use crate::placement;
use crate::pool::Pool;

/// The leases of a log.
pub(crate) struct Leases {
    lease: Duration,
    held: Mutex<FxHashMap<SocietyId, Held>>,
    /// What was lost, and why. Each society is there once for each time it is held.
    lost: Mutex<VecDeque<(SocietyId, String)>>,
    has_lost: Notify,
}

/// A lease.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// When it ends, since the start of the machine; zero when it is lost.
    until: Duration,
    /// When it was claimed. An answer to a renewal of an earlier claim says nothing of this one.
    claimed: Duration,
}

impl Leases {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { lease, held: Mutex::default(), lost: Mutex::default(), has_lost: Notify::new() }
    }

    /// How long a lease lasts if it is not renewed.
    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Holds a lease that was asked for at this time.
    pub(crate) fn begin(&self, society: &SocietyId, asked: Duration) {
        self.put_back(society, Held { until: self.end(asked), claimed: asked });
    }

    pub(crate) fn put_back(&self, society: &SocietyId, held: Held) {
        self.lock().insert(society.clone(), held);
    }

    /// Stops holding the lease.
    pub(crate) fn forget(&self, society: &SocietyId) -> Option<Held> {
        self.lock().remove(society)
    }

    /// The societies whose leases are held. A lease that was lost is not renewed: nobody uses the society here any more.
    pub(crate) fn societies(&self) -> Vec<SocietyId> {
        self.lock().iter().filter(|(_, held)| held.until > Duration::ZERO).map(|(society, _)| society.clone()).collect()
    }

    /// Whether the lease is held and has not ended.
    pub(crate) fn holds(&self, society: &SocietyId) -> bool {
        self.lock().get(society).is_some_and(|held| held.until > now())
    }

    /// Whether effects of a society may begin. Without a lease nothing forbids it.
    pub(crate) fn allows(&self, society: &SocietyId) -> bool {
        let mut held = self.lock();
        let Some(held) = held.get_mut(society) else { return true };
        if now() >= held.until {
            self.lose(society, held, || format!("the lease on `{society}` could not be renewed in time"));
        }
        held.until > Duration::ZERO
    }

    /// Waits until a lease is lost; gives the society and the reason.
    pub(crate) async fn lost(&self) -> (SocietyId, String) {
        loop {
            // The lock is not held while it waits; what is lost meanwhile leaves a permit.
            let next = self.lost.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(lost) => return lost,
                None => self.has_lost.notified().await,
            }
        }
    }

    /// Renews all leases again and again, also that of the node if it is listed.
    pub(crate) async fn keep(self: Arc<Self>, pool: Pool, node: Arc<str>, listing: Option<Listing>) {
        tokio::join!(self.renew(&pool, &node, listing.as_ref()), self.watch());
    }

    async fn renew(&self, pool: &Pool, node: &str, listing: Option<&Listing>) {
        let mut pause = self.lease / 5;
        loop {
            sleep(pause).await;
            pause = self.lease / 5;
            let asked = now();
            let societies = self.societies();
            if societies.is_empty() && listing.is_none() {
                continue;
            }
            let renew_all = async {
                if let Some(listing) = listing {
                    nodes::keep(pool, node, listing, self.lease).await?;
                }
                placement::renew(pool, node, &societies, self.lease).await
            };
            // Short enough for several tries, each with another host where there are some, before the lease ends here.
            match timeout(self.lease / 8, renew_all).await {
                Ok(Ok(renewed)) => societies.iter().for_each(|society| self.renewed(society, asked, renewed.contains(society))),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the leases could not be renewed; trying again");
                    pause = self.lease / 20;
                }
                Err(_) => {
                    tracing::warn!("the leases could not be renewed, the database does not answer; trying again");
                    pause = self.lease / 20;
                }
            }
        }
    }

    fn renewed(&self, society: &SocietyId, asked: Duration, is_ours: bool) {
        let mut held = self.lock();
        // It was given back or claimed anew meanwhile, or is lost already.
        let Some(held) = held.get_mut(society).filter(|held| held.claimed <= asked && held.until > now()) else { return };
        match is_ours {
            true => held.until = self.end(asked),
            false => self.lose(society, held, || format!("another node has taken `{society}` over")),
        }
    }

    /// Notices leases that have ended although nothing asks for them.
    async fn watch(&self) {
        loop {
            sleep(self.lease / 20).await;
            for society in self.societies() {
                let _ = self.allows(&society);
            }
        }
    }

    fn lose(&self, society: &SocietyId, held: &mut Held, why: impl FnOnce() -> String) {
        if held.until > Duration::ZERO {
            held.until = Duration::ZERO;
            self.lost.lock().unwrap_or_else(PoisonError::into_inner).push_back((society.clone(), why()));
            self.has_lost.notify_one();
        }
    }

    /// When a lease that was asked for at this time ends here.
    fn end(&self, asked: Duration) -> Duration {
        asked + self.lease * 3 / 4
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<SocietyId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time since the start of the machine, also that which it was suspended for.
pub(crate) fn now() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(CLOCK);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(not(unix))]
    {
        use std::sync::LazyLock;
        use std::time::Instant;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        // Zero stands for a lease that is lost.
        START.elapsed() + Duration::from_secs(1)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
// Elsewhere this one goes on while the machine is suspended.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
