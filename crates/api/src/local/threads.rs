//! Reading threads.

use polis_domain::{BadPath, Head, Spine, SubThreadPath, Thread, ThreadId, Visibility};

use super::Local;
use crate::{ApiError, ListedThread, Paging, Scope, ThreadPart, Threads};

/// How many are listed without a limit.
const DEFAULT_LIMIT: usize = 200;

impl Local {
    /// The threads, by name.
    pub async fn threads(&self, paging: &Paging) -> Result<Threads, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (paging, visibility) = (paging.clone(), self.society.visibility().clone());
        Ok(self.society.look(move |spine| list(spine, &paging, &visibility)).await?)
    }

    /// A thread, or a part of it by its address.
    pub async fn thread(&self, main: &ThreadId, part: &ThreadPart) -> Result<Thread, ApiError> {
        self.caller.needs(Scope::Read)?;
        let path: SubThreadPath =
            part.path.parse().map_err(|bad: BadPath| ApiError::bad_request("bad_path", bad.to_string()))?;
        Ok(if part.tree { self.society.tree(main, &path).await? } else { self.society.thread(main, &path).await? })
    }
}

fn list(spine: &Spine, paging: &Paging, visibility: &Visibility) -> Threads {
    let is_visible = |head: &Head| visibility.agent(spine, &head.agent);
    let mut ids: Vec<_> = spine.threads.iter().filter(|(_, head)| is_visible(head)).map(|(id, _)| id).collect();
    ids.sort();
    let count = ids.len();
    let (ids, next) = paging.cut_at(ids, DEFAULT_LIMIT, |id| id.to_string());
    let listed = |id: &ThreadId| {
        let head = spine.threads.get(id)?;
        let (_, path) = spine.address(id);
        let (messages, phase) = (head.messages, head.phase.clone());
        Some(ListedThread {
            id: id.clone(),
            agent_id: head.agent.clone(),
            path: if path.is_main() { String::new() } else { path.to_string() },
            messages,
            phase,
            is_open: head.turn.is_some(),
        })
    };
    Threads { threads: ids.into_iter().filter_map(listed).collect(), count, next }
}
