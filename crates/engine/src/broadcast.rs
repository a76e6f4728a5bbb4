//! A broadcast channel that is bounded in bytes: one sender, many subscribers, and the sender never waits.
//!
//! An entry is dropped when every subscriber has received it, or when newer entries need its bytes; a subscriber that is
//! too slow then gets [`Lagged`]. `tokio::sync::broadcast` bounds the number of entries instead, but
//! ours differ widely in size.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The sending side.
#[derive(Debug)]
pub(crate) struct Broadcast<T> {
    buffer: Mutex<Buffer<T>>,
    more: Notify,
    max_bytes: usize,
}

#[derive(Debug)]
struct Buffer<T> {
    entries: VecDeque<Entry<T>>,
    /// The number of the oldest buffered entry. Entries are numbered from 0.
    first: u64,
    bytes: usize,
    subscribers: usize,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    bytes: usize,
    /// How many subscribers have not received it yet.
    undelivered: usize,
}

/// The receiving side. It receives what is sent after it was made.
#[derive(Debug)]
pub(crate) struct Subscriber<T> {
    channel: Arc<Broadcast<T>>,
    /// The number of the entry that it receives next.
    next: u64,
    is_unsubscribed: bool,
}

impl<T> Broadcast<T> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        let buffer = Buffer { entries: VecDeque::new(), first: 0, bytes: 0, subscribers: 0 };
        Self { buffer: Mutex::new(buffer), more: Notify::new(), max_bytes }
    }

    /// Sends to all subscribers. `bytes` is what the value counts against the bound; a value larger than the bound is still
    /// delivered.
    pub(crate) fn send(&self, value: T, bytes: usize) {
        let mut buffer = self.lock();
        if buffer.subscribers == 0 {
            return;
        }
        let undelivered = buffer.subscribers;
        buffer.entries.push_back(Entry { value, bytes, undelivered });
        buffer.bytes += bytes;
        while buffer.bytes > self.max_bytes && buffer.entries.len() > 1 {
            buffer.drop_oldest();
        }
        drop(buffer);
        self.more.notify_waiters();
    }

    /// Subscribes to everything that is sent from now on.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscriber<T> {
        let mut buffer = self.lock();
        buffer.subscribers += 1;
        let next = buffer.end();
        Subscriber { channel: self.clone(), next, is_unsubscribed: false }
    }

    /// How many subscribers there are.
    pub(crate) fn subscribers(&self) -> usize {
        self.lock().subscribers
    }

    fn lock(&self) -> MutexGuard<'_, Buffer<T>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Buffer<T> {
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.first += 1;
            self.bytes -= oldest.bytes;
        }
    }

    fn drop_delivered(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.undelivered == 0) {
            self.drop_oldest();
        }
    }
}

/// The subscriber was too slow, and entries were dropped before it received them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lagged;

impl<T: Clone> Subscriber<T> {
    /// The next value, or [`Lagged`] when some were lost.
    pub(crate) async fn recv(&mut self) -> Result<T, Lagged> {
        loop {
            let channel = self.channel.clone();
            // Registered before the buffer is checked: a value that is sent in between wakes this future.
            let more = channel.more.notified();
            if let Some(received) = self.try_recv() {
                return received;
            }
            more.await;
        }
    }

    fn try_recv(&mut self) -> Option<Result<T, Lagged>> {
        let mut buffer = self.channel.lock();
        let Some(place) = self.next.checked_sub(buffer.first) else { return Some(Err(Lagged)) };
        let entry = buffer.entries.get_mut(usize::try_from(place).ok()?)?;
        let value = entry.value.clone();
        entry.undelivered -= 1;
        self.next += 1;
        buffer.drop_delivered();
        Some(Ok(value))
    }
}

impl<T> Subscriber<T> {
    /// Stops receiving; buffered entries no longer wait for this subscriber.
    pub(crate) fn unsubscribe(&mut self) {
        if std::mem::replace(&mut self.is_unsubscribed, true) {
            return;
        }
        let mut buffer = self.channel.lock();
        buffer.subscribers -= 1;
        let place = self.next.saturating_sub(buffer.first);
        buffer.entries.iter_mut().skip(usize::try_from(place).unwrap_or(usize::MAX)).for_each(|entry| entry.undelivered -= 1);
        buffer.drop_delivered();
    }
}

impl<T> Drop for Subscriber<T> {
    fn drop(&mut self) {
        self.unsubscribe();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn recv(subscriber: &mut Subscriber<u32>) -> Option<Result<u32, Lagged>> {
        subscriber.recv().now_or_never()
    }

    #[test]
    fn subscribers_receive_what_is_sent_after_they_joined_and_delivered_entries_are_dropped() {
        let channel = Arc::new(Broadcast::new(100));
        channel.send(1, 10);
        let mut first = channel.subscribe();
        channel.send(2, 10);
        let mut second = channel.subscribe();
        channel.send(3, 10);
        assert_eq!(recv(&mut first), Some(Ok(2)));
        assert_eq!(recv(&mut first), Some(Ok(3)));
        assert_eq!(recv(&mut first), None);
        assert_eq!(channel.lock().bytes, 10, "the second has not heard the 3");
        assert_eq!(recv(&mut second), Some(Ok(3)));
        assert_eq!(recv(&mut second), None);
        assert_eq!(channel.lock().bytes, 0);
        assert!(channel.lock().entries.is_empty());
    }

    #[test]
    fn a_slow_subscriber_loses_the_oldest_entries_and_one_that_leaves_holds_nothing_up() {
        let channel = Arc::new(Broadcast::new(100));
        let (mut quick, mut slow, gone) = (channel.subscribe(), channel.subscribe(), channel.subscribe());
        for n in 0..30 {
            channel.send(n, 10);
            assert_eq!(recv(&mut quick), Some(Ok(n)));
            assert!(channel.lock().bytes <= 100);
        }
        assert_eq!(recv(&mut slow), Some(Err(Lagged)));
        drop(slow);
        assert_eq!(channel.lock().bytes, 100, "the third may still come back for them");
        drop(gone);
        assert_eq!(channel.lock().bytes, 0);
        assert_eq!(channel.subscribers(), 1);
        channel.send(99, 1_000);
        assert_eq!(recv(&mut quick), Some(Ok(99)), "what is too long alone is told all the same");
    }

    #[tokio::test]
    async fn a_waiting_subscriber_is_woken() {
        let channel = Arc::new(Broadcast::new(100));
        let mut subscribers: Vec<_> = (0..3).map(|_| channel.subscribe()).collect();
        let sender = channel.clone();
        let sending = tokio::spawn(async move {
            for n in 0..1_000 {
                sender.send(n, 0);
                tokio::task::yield_now().await;
            }
        });
        for subscriber in &mut subscribers {
            for n in 0..1_000 {
                assert_eq!(subscriber.recv().await, Ok(n));
            }
        }
        sending.await.unwrap();
    }
}
