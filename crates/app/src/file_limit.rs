//! How many files the process may have open: each connection is one.

/// As many as are of use: every connection that is served at once, and what tools and the store open beside them. Programs that
/// are started from here inherit the limit, and some go through every number below it.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the limit as far as the system allows, and returns it; none where the system has no such limit.
#[cfg(unix)]
pub(crate) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current?;
    let target = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if target <= before {
        return Some(before);
    }
    limit.current = Some(target);
    Some(if setrlimit(Resource::Nofile, limit).is_ok() { target } else { before })
}

#[cfg(not(unix))]
pub(crate) fn raise_limit() -> Option<u64> {
    None
}

/// The line for `polis doctor`. `connections` is the maximum number of connections.
pub(crate) fn describe(connections: usize) -> String {
    match raise_limit() {
        Some(limit) if limit < connections as u64 => {
            format!("{limit} may be open, so that fewer than {connections} can be open at a time; raise `ulimit -Hn`")
        }
        Some(limit) => format!("{limit} may be open, enough for {connections} connections"),
        None => "as many may be open as the system has room for".to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_is_of_use() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let raised = raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, raised);
        assert!(raised.is_none_or(|raised| raised >= hard.min(ENOUGH)), "{raised:?} of {hard}");
        assert_eq!(raise_limit(), raised, "and stays");
    }
}
