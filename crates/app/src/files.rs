//! How many files the process may have open: each connection is one.

/// As many as are of use: every connection that is served at once, and what tools and the store open beside them. Programs that
/// are started from here inherit the limit, and some go through every number below it.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the limit as far as the system lets us. What it is then; none where the system has no such limit.
#[cfg(unix)]
pub(crate) fn raise() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current?;
    let wanted = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if wanted <= before {
        return Some(before);
    }
    limit.current = Some(wanted);
    Some(if setrlimit(Resource::Nofile, limit).is_ok() { wanted } else { before })
}

#[cfg(not(unix))]
pub(crate) fn raise() -> Option<u64> {
    None
}

/// What `polis doctor` says about it. `connections` is the most that are served at once.
pub(crate) fn told(connections: usize) -> String {
    match raise() {
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
        let raised = raise();
        assert_eq!(getrlimit(Resource::Nofile).current, raised);
        assert!(raised.is_none_or(|raised| raised >= hard.min(ENOUGH)), "{raised:?} of {hard}");
        assert_eq!(raise(), raised, "and stays");
    }
}
