//! Reading the log in pages.

use polis_domain::Seq;

use super::Local;
use crate::{ApiError, LogPage, LogPaging, Scope};

const MAX_PAGE: usize = 1_000;

impl Local {
    /// The events after a place of the log.
    pub async fn log(&self, paging: LogPaging) -> Result<LogPage, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (log, id) = (self.society.log(), self.society.id());
        let last = log.readable_head(id).await?;
        // A place beyond what a log can hold is after its end.
        let after = Seq(paging.after.min(u64::MAX >> 1));
        let events = log.read(id, after, paging.limit.clamp(1, MAX_PAGE)).await?;
        let next = events.last().map(|recorded| recorded.seq).filter(|seq| *seq < last);
        Ok(LogPage { events, last, next })
    }
}
