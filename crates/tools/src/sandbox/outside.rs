//! The side of the program: starts the warden, reads what the command prints as it comes; what is long goes to an artifact.

use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polis_ports::Artifacts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::guard::{self, SetAside};
use super::order::{Offers, Order, Report, tell};
use super::{Sandbox, WARDEN};
use crate::spill::Spill;

/// How long the warden may take to end everything.
const GRACE: Duration = Duration::from_secs(15);
/// Most bytes that the warden may report.
const MAX_REPORT_BYTES: usize = 64 << 10;
/// Most bytes of each stream that are shown, from the beginning and from the end.
const SHOWN_BYTES: usize = 20 << 10;

/// Ends a command when it is dropped.
#[derive(Debug)]
pub(crate) struct Stop([UnixStream; 2]);

/// A socket to a warden; the second is for the case that there are no namespaces.
#[derive(Debug)]
pub(crate) struct Line {
    ours: UnixStream,
    theirs: UnixStream,
}

impl Stop {
    pub(crate) fn new() -> io::Result<(Self, [Line; 2])> {
        let ((first, with), (second, without)) = (UnixStream::pair()?, UnixStream::pair()?);
        let stop = Self([first.try_clone()?, second.try_clone()?]);
        Ok((stop, [Line { ours: first, theirs: with }, Line { ours: second, theirs: without }]))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for line in &self.0 {
            // A warden hears it even if it has not begun yet.
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) why: Why,
    pub(crate) stdout: Spill,
    pub(crate) stderr: Spill,
    pub(crate) offers: Offers,
    /// What it left and may not, the first of them.
    pub(crate) set_aside: Vec<SetAside>,
    /// How many more there are.
    pub(crate) more_set_aside: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    Exited(i32),
    Killed(i32),
    TimedOut,
    TooMuchOutput,
    WroteTooMuch,
    /// Its parent in the sandbox is gone, and nobody else saw how it ended.
    Lost,
}

impl Sandbox {
    /// Runs a command to its end; an error means that it was never begun.
    pub(crate) fn run(
        &self,
        mut order: Order,
        [with, without]: [Line; 2],
        store: &Arc<dyn Artifacts>,
    ) -> Result<Ended, String> {
        order.namespaces = self.namespaces;
        if order.namespaces
            && let Some(ended) = self.attempt(&order, with, store)?
        {
            return Ok(ended);
        }
        order.namespaces = false;
        self.attempt(&order, without, store)?.ok_or_else(|| "the command cannot be confined".to_owned())
    }

    /// None where namespaces cannot be had.
    fn attempt(&self, order: &Order, Line { ours, theirs }: Line, store: &Arc<dyn Artifacts>) -> Result<Option<Ended>, String> {
        let failed = |error: io::Error| format!("the sandbox cannot be started: {error}");
        let mut command = Command::new(&self.program);
        command.arg(WARDEN).env_clear().current_dir("/").stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut warden = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        // It keeps the socket's other end, which nobody may hold but the warden.
        drop(command);
        let streams = [warden.stdout.take().map(OwnedFd::from), warden.stderr.take().map(OwnedFd::from)];
        let streams = streams.map(|stream| stream.map(File::from));
        let told = tell(&ours, order).and_then(|()| listen(order, &ours, streams, store));
        if told.as_ref().map_or(true, |heard| heard.is_late) {
            // With it goes, if there are namespaces, everything below it.
            let _ = warden.kill();
        }
        let _ = warden.wait();
        // A warden that was killed has not done it.
        let left = order.note.as_deref().filter(|note| note.exists()).map(guard::recover);
        told.map_err(failed)?.ended(left)
    }
}

/// What came back from a warden.
struct Heard {
    reports: Vec<u8>,
    stdout: Spill,
    stderr: Spill,
    stopped: Option<Why>,
    is_late: bool,
}

fn listen(
    order: &Order,
    control: &UnixStream,
    [mut stdout, mut stderr]: [Option<File>; 2],
    store: &Arc<dyn Artifacts>,
) -> io::Result<Heard> {
    let mut heard = Heard {
        reports: Vec::new(),
        stdout: Spill::new(SHOWN_BYTES, store.clone()).with_limit(order.limits.kept_bytes),
        stderr: Spill::new(SHOWN_BYTES, store.clone()).with_limit(order.limits.kept_bytes),
        stopped: None,
        is_late: false,
    };
    let (mut reporting, mut deadline) = (Some(control), Instant::now() + order.limits.wall);
    let mut buffer = vec![0; 64 << 10];
    while reporting.is_some() || stdout.is_some() || stderr.is_some() {
        let printed = heard.stdout.total().saturating_add(heard.stderr.total());
        let why = match heard.stopped {
            Some(_) if Instant::now() >= deadline => {
                heard.is_late = true;
                break;
            }
            None if Instant::now() >= deadline => Some(Why::TimedOut),
            None if printed > order.limits.output_bytes => Some(Why::TooMuchOutput),
            _ => None,
        };
        if let Some(why) = why {
            (heard.stopped, deadline) = (Some(why), Instant::now() + GRACE);
            control.shutdown(Shutdown::Write)?;
        }
        let ready =
            ready([stdout.as_ref().map(File::as_fd), stderr.as_ref().map(File::as_fd), reporting.map(AsFd::as_fd)], deadline)?;
        if ready[0] {
            drain(&mut stdout, &mut buffer, |bytes| heard.stdout.push(bytes))?;
        }
        if ready[1] {
            drain(&mut stderr, &mut buffer, |bytes| heard.stderr.push(bytes))?;
        }
        if ready[2] {
            drain(&mut reporting, &mut buffer, |bytes| {
                let room = MAX_REPORT_BYTES - heard.reports.len();
                heard.reports.extend_from_slice(&bytes[..bytes.len().min(room)]);
            })?;
        }
    }
    Ok(heard)
}

/// Waits until something can be read, and says what.
fn ready(fds: [Option<BorrowedFd<'_>>; 3], deadline: Instant) -> io::Result<[bool; 3]> {
    let mut waiting: Vec<PollFd<'_>> = fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut waiting, Some(&left)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok([false; 3]),
        Err(error) => return Err(error.into()),
    }
    let mut found = waiting.iter().map(|fd| !fd.revents().is_empty());
    Ok(fds.map(|fd| fd.is_some() && found.next().unwrap_or_default()))
}

/// Reads once; what has ended is taken away.
fn drain(from: &mut Option<impl Read>, buffer: &mut [u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let Some(open) = from else { return Ok(()) };
    match open.read(buffer) {
        Ok(0) => *from = None,
        Ok(read) => take(&buffer[..read]),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => *from = None,
        Err(error) => return Err(error),
    }
    Ok(())
}

impl Heard {
    /// How it ended; `left` is what was set aside in place of a warden that could not.
    fn ended(self, left: Option<Vec<SetAside>>) -> Result<Option<Ended>, String> {
        let reports = self.reports.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let (mut offers, mut why, mut set_aside, mut more_set_aside) = (None, None, Vec::new(), 0);
        for report in reports {
            match report {
                Report::NoNamespaces(_) => return Ok(None),
                Report::Failed(reason) => return Err(reason),
                Report::Held(held) => offers = Some(held),
                Report::Exited(code) => why = Some(Why::Exited(code)),
                Report::Killed(signal) => why = Some(Why::Killed(signal)),
                Report::WroteTooMuch => why = Some(Why::WroteTooMuch),
                Report::SetAside(aside) => set_aside = aside,
                Report::MoreSetAside(more) => more_set_aside = more,
            }
        }
        let offers = match (offers, &self.stopped) {
            (Some(offers), _) => offers,
            (None, Some(_)) => Offers::default(),
            (None, None) if left.is_some() => Offers::default(),
            (None, None) => return Err("the sandbox ended before the command began".to_owned()),
        };
        set_aside.extend(left.unwrap_or_default());
        let why = self.stopped.or(why).unwrap_or(Why::Lost);
        Ok(Some(Ended { why, stdout: self.stdout, stderr: self.stderr, offers, set_aside, more_set_aside }))
    }
}
