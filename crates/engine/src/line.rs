//! A line on which one speaks and many listen. Whoever listens too slowly loses what is oldest; nobody waits for him.
//!
//! What was said is kept until all have heard it, and never more of it than so many bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Line<T> {
    kept: Mutex<Kept<T>>,
    more: Notify,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept<T> {
    said: VecDeque<Said<T>>,
    /// The number of the oldest that is kept; they are counted from 0.
    first: u64,
    bytes: usize,
    ears: usize,
}

#[derive(Debug)]
struct Said<T> {
    what: T,
    bytes: usize,
    /// So many have not heard it yet.
    unheard: usize,
}

/// One who listens.
#[derive(Debug)]
pub(crate) struct Ear<T> {
    line: Arc<Line<T>>,
    /// The number of what it hears next.
    next: u64,
    has_left: bool,
}

impl<T> Line<T> {
    pub(crate) fn new(most_bytes: usize) -> Self {
        let kept = Kept { said: VecDeque::new(), first: 0, bytes: 0, ears: 0 };
        Self { kept: Mutex::new(kept), more: Notify::new(), most_bytes }
    }

    /// Tells everybody who listens. It stands for so many bytes.
    pub(crate) fn say(&self, what: T, bytes: usize) {
        let mut kept = self.lock();
        if kept.ears == 0 {
            return;
        }
        let unheard = kept.ears;
        kept.said.push_back(Said { what, bytes, unheard });
        kept.bytes += bytes;
        while kept.bytes > self.most_bytes && kept.said.len() > 1 {
            kept.forget_oldest();
        }
        drop(kept);
        self.more.notify_waiters();
    }

    /// Listens from now on.
    pub(crate) fn listen(self: &Arc<Self>) -> Ear<T> {
        let mut kept = self.lock();
        kept.ears += 1;
        let next = kept.end();
        Ear { line: self.clone(), next, has_left: false }
    }

    /// How many listen.
    pub(crate) fn ears(&self) -> usize {
        self.lock().ears
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Kept<T> {
    fn end(&self) -> u64 {
        self.first + self.said.len() as u64
    }

    fn forget_oldest(&mut self) {
        if let Some(said) = self.said.pop_front() {
            self.first += 1;
            self.bytes -= said.bytes;
        }
    }

    fn forget_heard(&mut self) {
        while self.said.front().is_some_and(|said| said.unheard == 0) {
            self.forget_oldest();
        }
    }
}

/// What was said was lost on somebody who was too slow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missed;

impl<T: Clone> Ear<T> {
    /// What is said next, or that some of it was lost.
    pub(crate) async fn hear(&mut self) -> Result<T, Missed> {
        loop {
            let line = self.line.clone();
            // Whatever is said from here on wakes us.
            let more = line.more.notified();
            if let Some(heard) = self.heard() {
                return heard;
            }
            more.await;
        }
    }

    fn heard(&mut self) -> Option<Result<T, Missed>> {
        let mut kept = self.line.lock();
        let Some(place) = self.next.checked_sub(kept.first) else { return Some(Err(Missed)) };
        let said = kept.said.get_mut(usize::try_from(place).ok()?)?;
        let what = said.what.clone();
        said.unheard -= 1;
        self.next += 1;
        kept.forget_heard();
        Some(Ok(what))
    }
}

impl<T> Ear<T> {
    /// Listens no more.
    pub(crate) fn leave(&mut self) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        let mut kept = self.line.lock();
        kept.ears -= 1;
        let place = self.next.saturating_sub(kept.first);
        kept.said.iter_mut().skip(usize::try_from(place).unwrap_or(usize::MAX)).for_each(|said| said.unheard -= 1);
        kept.forget_heard();
    }
}

impl<T> Drop for Ear<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn hear(ear: &mut Ear<u32>) -> Option<Result<u32, Missed>> {
        ear.hear().now_or_never()
    }

    #[test]
    fn everybody_hears_everything_from_when_he_came_and_then_it_is_forgotten() {
        let line = Arc::new(Line::new(100));
        line.say(1, 10);
        let mut first = line.listen();
        line.say(2, 10);
        let mut second = line.listen();
        line.say(3, 10);
        assert_eq!(hear(&mut first), Some(Ok(2)));
        assert_eq!(hear(&mut first), Some(Ok(3)));
        assert_eq!(hear(&mut first), None);
        assert_eq!(line.lock().bytes, 10, "the second has not heard the 3");
        assert_eq!(hear(&mut second), Some(Ok(3)));
        assert_eq!(hear(&mut second), None);
        assert_eq!(line.lock().bytes, 0);
        assert!(line.lock().said.is_empty());
    }

    #[test]
    fn who_is_too_slow_loses_what_is_oldest_and_who_leaves_holds_nothing_up() {
        let line = Arc::new(Line::new(100));
        let (mut quick, mut slow, gone) = (line.listen(), line.listen(), line.listen());
        for n in 0..30 {
            line.say(n, 10);
            assert_eq!(hear(&mut quick), Some(Ok(n)));
            assert!(line.lock().bytes <= 100);
        }
        assert_eq!(hear(&mut slow), Some(Err(Missed)));
        drop(slow);
        assert_eq!(line.lock().bytes, 100, "the third may still come back for them");
        drop(gone);
        assert_eq!(line.lock().bytes, 0);
        assert_eq!(line.ears(), 1);
        line.say(99, 1_000);
        assert_eq!(hear(&mut quick), Some(Ok(99)), "what is too long alone is told all the same");
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let line = Arc::new(Line::new(100));
        let mut ears: Vec<_> = (0..3).map(|_| line.listen()).collect();
        let speaks = line.clone();
        let speaking = tokio::spawn(async move {
            for n in 0..1_000 {
                speaks.say(n, 0);
                tokio::task::yield_now().await;
            }
        });
        for ear in &mut ears {
            for n in 0..1_000 {
                assert_eq!(ear.hear().await, Ok(n));
            }
        }
        speaking.await.unwrap();
    }
}
