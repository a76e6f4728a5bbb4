//! Rate limits: a token bucket for each access token and each unknown address, in a table of bounded size. Nodes tell each other every
//! second what they have taken; between two exchanges each counts for itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polis_ports::{Placement, Taken};

/// Most buckets that are kept.
const MAX_BUCKETS: usize = 4_096;

/// How often nodes exchange what they have taken.
const EXCHANGE: Duration = Duration::from_secs(1);

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests in a second, in the long run.
    pub per_second: u32,
    /// Requests at once, after a pause.
    pub burst: u32,
}

/// Who is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateKey {
    Token(Arc<str>),
    Address(IpAddr),
}

impl RateKey {
    /// The name that all nodes have for it.
    fn name(&self) -> String {
        match self {
            Self::Token(name) => format!("token {name}"),
            Self::Address(address) => format!("address {address}"),
        }
    }

    /// Who sits behind an address: with version 6, a whole network is one neighbour.
    pub(crate) fn address(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            address => address,
        })
    }
}

#[derive(Default)]
pub(crate) struct Buckets(Mutex<HashMap<RateKey, Bucket>>);

struct Bucket {
    left: f64,
    at: Instant,
    rate: Rate,
    /// Requests that the other nodes do not know of.
    taken: u32,
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * f64::from(self.rate.per_second)).min(f64::from(self.rate.burst));
        self.at = now;
    }

    fn is_full(&self) -> bool {
        self.left >= f64::from(self.rate.burst)
    }
}

impl Buckets {
    /// Counts a request; how long to wait when it is one too many.
    pub(crate) fn take(&self, who: RateKey, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&who) {
            make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: f64::from(rate.burst), at: now, rate, taken: 0 });
        bucket.refill(now);
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / f64::from(rate.per_second.max(1))));
        }
        bucket.left -= 1.0;
        bucket.taken += 1;
        Ok(())
    }

    /// What was taken since the last time.
    fn taken(&self) -> Vec<(RateKey, Taken)> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = buckets.iter_mut().filter(|(_, bucket)| bucket.taken > 0);
        let taken = used.map(|(who, bucket)| {
            let Rate { per_second, burst } = bucket.rate;
            let requests = std::mem::take(&mut bucket.taken);
            (who.clone(), Taken { name: who.name(), requests, per_second, burst })
        });
        taken.collect()
    }

    /// No more is left here than for all nodes.
    fn limit(&self, who: &RateKey, left: f64) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(who) {
            // What was taken meanwhile is in the next exchange.
            bucket.left = bucket.left.min(left - f64::from(bucket.taken));
        }
    }

    /// Exchanges with the other nodes what was taken, for as long as it runs.
    pub(crate) async fn exchange(&self, placement: &dyn Placement) {
        loop {
            tokio::time::sleep(EXCHANGE).await;
            let taken = self.taken();
            if taken.is_empty() {
                continue;
            }
            let (keys, taken): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
            let keys: HashMap<_, _> = keys.into_iter().map(|who| (who.name(), who)).collect();
            match placement.take(&taken).await {
                Ok(left) => {
                    left.iter()
                        .filter_map(|(name, left)| Some((keys.get(name)?, *left)))
                        .for_each(|(who, left)| self.limit(who, left));
                }
                // Each node counts for itself then.
                Err(error) => tracing::debug!(%error, "the rate limits of all nodes cannot be read"),
            }
        }
    }
}

/// Forgets full buckets, and if need be the one that was used longest ago.
fn make_room(buckets: &mut HashMap<RateKey, Bucket>, now: Instant) {
    buckets.retain(|_, bucket| {
        bucket.refill(now);
        !bucket.is_full()
    });
    while buckets.len() >= MAX_BUCKETS {
        let Some(fullest) = buckets.iter().max_by(|(_, a), (_, b)| a.left.total_cmp(&b.left)).map(|(who, _)| who.clone())
        else {
            return;
        };
        buckets.remove(&fullest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 2, burst: 3 };

    fn address(n: u16) -> RateKey {
        let [high, low] = n.to_be_bytes();
        RateKey::address(IpAddr::from([10, 0, high, low]))
    }

    #[test]
    fn after_a_burst_somebody_waits_and_nobody_else_does() {
        let (buckets, start) = (Buckets::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(buckets.take(address(1), RATE, start), Ok(()));
        }
        assert_eq!(buckets.take(address(1), RATE, start), Err(Duration::from_millis(500)));
        assert_eq!(buckets.take(address(2), RATE, start), Ok(()));
        assert_eq!(buckets.take(address(1), RATE, start + Duration::from_millis(500)), Ok(()));
        assert!(buckets.take(address(1), RATE, start + Duration::from_millis(500)).is_err());
    }

    #[test]
    fn the_table_does_not_grow_and_who_asked_too_much_is_not_forgotten() {
        let (buckets, start) = (Buckets::default(), Instant::now());
        while buckets.take(address(0), RATE, start).is_ok() {}
        for n in 1..6_000 {
            assert_eq!(buckets.take(address(n), RATE, start), Ok(()));
        }
        assert!(buckets.0.lock().unwrap().len() <= MAX_BUCKETS);
        assert!(buckets.take(address(0), RATE, start).is_err());
    }

    #[test]
    fn what_other_nodes_have_taken_is_missing_here() {
        let ([one, other], start) = ([(); 2].map(|()| Buckets::default()), Instant::now());
        for buckets in [&one, &other, &other] {
            assert_eq!(buckets.take(address(1), RATE, start), Ok(()));
        }
        let counts = |buckets: &Buckets| buckets.taken().into_iter().map(|(_, taken)| taken.requests).collect::<Vec<_>>();
        assert_eq!((counts(&one), counts(&other), counts(&other)), (vec![1], vec![2], vec![]));
        assert_eq!(other.take(address(1), RATE, start), Ok(()));
        // Nothing is left for both, and one has taken another one since.
        [&one, &other].iter().for_each(|buckets| buckets.limit(&address(1), 0.0));
        assert_eq!(one.take(address(1), RATE, start), Err(Duration::from_millis(500)));
        assert_eq!(other.take(address(1), RATE, start), Err(Duration::from_secs(1)));
        // More than a burst is never left.
        one.limit(&address(1), 100.0);
        assert!(one.take(address(1), RATE, start).is_err());
    }

    #[test]
    fn a_network_of_version_6_is_one_neighbour() {
        let of = |text: &str| RateKey::address(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
