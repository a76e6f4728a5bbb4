//! Reading threads.

use polis_domain::{BadPath, Spine, SubThreadPath, Thread, ThreadId};

use super::Local;
use crate::{ApiError, ListedThread, Paging, Scope, ThreadPart, Threads};

/// How many are listed without a limit.
const DEFAULT_LIMIT: usize = 200;

impl Local {
    /// The threads, by name.
    pub async fn threads(&self, paging: &Paging) -> Result<Threads, ApiError> {
        self.caller.needs(Scope::Read)?;
        let limit = paging.limit.map_or(DEFAULT_LIMIT, |limit| (limit as usize).min(crate::paging::MOST));
        let after = paging.after.as_deref().map(ThreadId::from);
        let mut names = self.society.thread_names(after, limit + 1).await?;
        let has_more = names.len() > limit;
        names.truncate(limit);
        let next = names.last().filter(|_| has_more).map(ThreadId::to_string);
        let threads = self.society.look(move |spine| names.iter().filter_map(|id| listed(spine, id)).collect()).await?;
        Ok(Threads { threads, next })
    }

    /// A thread, or a part of it by its address.
    pub async fn thread(&self, main: &ThreadId, part: &ThreadPart) -> Result<Thread, ApiError> {
        self.caller.needs(Scope::Read)?;
        let path: SubThreadPath =
            part.path.parse().map_err(|bad: BadPath| ApiError::bad_request("bad_path", bad.to_string()))?;
        Ok(if part.tree { self.society.tree(main, &path).await? } else { self.society.thread(main, &path).await? })
    }
}

fn listed(spine: &Spine, id: &ThreadId) -> Option<ListedThread> {
    let head = spine.threads.get(id)?;
    let (_, path) = spine.address(id);
    Some(ListedThread {
        id: id.clone(),
        agent_id: head.agent.clone(),
        path: if path.is_main() { String::new() } else { path.to_string() },
        messages: head.messages,
        phase: head.phase.clone(),
        is_open: head.turn.is_some(),
    })
}
