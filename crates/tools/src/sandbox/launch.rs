//! Starts the warden and reads the command's output as it arrives; long output goes to an artifact.

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

use super::guard::{self, SetAsideFile};
use super::protocol::{CommandSpec, Report, SandboxFeatures, send_line};
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
pub(crate) struct StopOnDrop([UnixStream; 2]);

/// A socket to a warden; the second is for the case that there are no namespaces.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    ours: UnixStream,
    theirs: UnixStream,
}

impl StopOnDrop {
    pub(crate) fn new() -> io::Result<(Self, [ControlSocket; 2])> {
        let ((first, with), (second, without)) = (UnixStream::pair()?, UnixStream::pair()?);
        let stop = Self([first.try_clone()?, second.try_clone()?]);
        Ok((stop, [ControlSocket { ours: first, theirs: with }, ControlSocket { ours: second, theirs: without }]))
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        for line in &self.0 {
            // A warden hears it even if it has not begun yet.
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

/// How a command ended.
pub(crate) struct CommandEnd {
    pub(crate) why: EndReason,
    pub(crate) stdout: Spill,
    pub(crate) stderr: Spill,
    pub(crate) features: SandboxFeatures,
    /// What it left and may not, the first of them.
    pub(crate) set_aside: Vec<SetAsideFile>,
    /// How many more there are.
    pub(crate) more_set_aside: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndReason {
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
        mut spec: CommandSpec,
        [with, without]: [ControlSocket; 2],
        store: &Arc<dyn Artifacts>,
    ) -> Result<CommandEnd, String> {
        spec.namespaces = self.namespaces;
        if spec.namespaces
            && let Some(ended) = self.attempt(&spec, with, store)?
        {
            return Ok(ended);
        }
        spec.namespaces = false;
        self.attempt(&spec, without, store)?.ok_or_else(|| "the command cannot be confined".to_owned())
    }

    /// None where namespaces cannot be had.
    fn attempt(
        &self,
        spec: &CommandSpec,
        ControlSocket { ours, theirs }: ControlSocket,
        store: &Arc<dyn Artifacts>,
    ) -> Result<Option<CommandEnd>, String> {
        let failed = |error: io::Error| format!("the sandbox cannot be started: {error}");
        let mut command = Command::new(&self.program);
        command.arg(WARDEN).env_clear().current_dir("/").stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut warden = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        // It keeps the socket's other end, which nobody may hold but the warden.
        drop(command);
        let streams = [warden.stdout.take().map(OwnedFd::from), warden.stderr.take().map(OwnedFd::from)];
        let streams = streams.map(|stream| stream.map(File::from));
        let output = send_line(&ours, spec).and_then(|()| read_output(spec, &ours, streams, store));
        if output.as_ref().map_or(true, |output| output.is_late) {
            // With it goes, if there are namespaces, everything below it.
            let _ = warden.kill();
        }
        let _ = warden.wait();
        // A warden that was killed has not done it.
        let left = spec.note.as_deref().filter(|note| note.exists()).map(guard::recover);
        output.map_err(failed)?.ended(left)
    }
}

/// Everything that a warden sent back.
struct WardenOutput {
    reports: Vec<u8>,
    stdout: Spill,
    stderr: Spill,
    stopped: Option<EndReason>,
    is_late: bool,
}

fn read_output(
    spec: &CommandSpec,
    control: &UnixStream,
    [mut stdout, mut stderr]: [Option<File>; 2],
    store: &Arc<dyn Artifacts>,
) -> io::Result<WardenOutput> {
    let mut output = WardenOutput {
        reports: Vec::new(),
        stdout: Spill::new(SHOWN_BYTES, store.clone()).with_limit(spec.limits.kept_bytes),
        stderr: Spill::new(SHOWN_BYTES, store.clone()).with_limit(spec.limits.kept_bytes),
        stopped: None,
        is_late: false,
    };
    let (mut reporting, mut deadline) = (Some(control), Instant::now() + spec.limits.wall);
    let mut buffer = vec![0; 64 << 10];
    while reporting.is_some() || stdout.is_some() || stderr.is_some() {
        let printed = output.stdout.total().saturating_add(output.stderr.total());
        let why = match output.stopped {
            Some(_) if Instant::now() >= deadline => {
                output.is_late = true;
                break;
            }
            None if Instant::now() >= deadline => Some(EndReason::TimedOut),
            None if printed > spec.limits.output_bytes => Some(EndReason::TooMuchOutput),
            _ => None,
        };
        if let Some(why) = why {
            (output.stopped, deadline) = (Some(why), Instant::now() + GRACE);
            control.shutdown(Shutdown::Write)?;
        }
        let ready =
            ready([stdout.as_ref().map(File::as_fd), stderr.as_ref().map(File::as_fd), reporting.map(AsFd::as_fd)], deadline)?;
        if ready[0] {
            drain(&mut stdout, &mut buffer, |bytes| output.stdout.push(bytes))?;
        }
        if ready[1] {
            drain(&mut stderr, &mut buffer, |bytes| output.stderr.push(bytes))?;
        }
        if ready[2] {
            drain(&mut reporting, &mut buffer, |bytes| {
                let room = MAX_REPORT_BYTES - output.reports.len();
                output.reports.extend_from_slice(&bytes[..bytes.len().min(room)]);
            })?;
        }
    }
    Ok(output)
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

impl WardenOutput {
    /// How it ended; `left` is what was set aside in place of a warden that could not.
    fn ended(self, left: Option<Vec<SetAsideFile>>) -> Result<Option<CommandEnd>, String> {
        let reports = self.reports.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let (mut features, mut why, mut set_aside, mut more_set_aside) = (None, None, Vec::new(), 0);
        for report in reports {
            match report {
                Report::NoNamespaces(_) => return Ok(None),
                Report::Failed(reason) => return Err(reason),
                Report::Held(held) => features = Some(held),
                Report::Exited(code) => why = Some(EndReason::Exited(code)),
                Report::Killed(signal) => why = Some(EndReason::Killed(signal)),
                Report::WroteTooMuch => why = Some(EndReason::WroteTooMuch),
                Report::SetAside(aside) => set_aside = aside,
                Report::MoreSetAside(more) => more_set_aside = more,
            }
        }
        let features = match (features, &self.stopped) {
            (Some(features), _) => features,
            (None, Some(_)) => SandboxFeatures::default(),
            (None, None) if left.is_some() => SandboxFeatures::default(),
            (None, None) => return Err("the sandbox ended before the command began".to_owned()),
        };
        set_aside.extend(left.unwrap_or_default());
        let why = self.stopped.or(why).unwrap_or(EndReason::Lost);
        Ok(Some(CommandEnd { why, stdout: self.stdout, stderr: self.stderr, features, set_aside, more_set_aside }))
    }
}
