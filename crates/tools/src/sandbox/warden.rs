//! The process that outlives the command and ends everything of it: when the command is done, and when the program that asked
//! for it closes the socket or dies. It is not confined, and the command cannot reach it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, setsid, wait};

use super::meter::{EVERY, Meter};
use super::protocol::{CommandSpec, Report, parent, read_spec, send_line};
use super::{CONFINED, guard, namespaces};
use crate::kept_files::FOLDER;

/// Most files that are told of what was set aside.
const MAX_TOLD: usize = 20;

pub(super) fn watch() -> ExitCode {
    match parent().and_then(|control| guard(&control)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn guard(control: &UnixStream) -> io::Result<()> {
    let mut spec = read_spec(control)?;
    setsid()?;
    // What whoever started the program left open is none of the command's business.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    // Whatever loses its parent becomes a child of this process, so that none gets away.
    set_child_subreaper(Some(getpid()))?;
    if spec.namespaces
        && let Err(error) = namespaces::enter(spec.network)
    {
        return send_line(control, &Report::NoNamespaces(error.to_string()));
    }
    let survey = match guard::begin(&spec.protected, spec.namespaces, spec.note.as_deref()) {
        Ok(survey) => survey,
        Err(reason) => return send_line(control, &Report::Failed(reason)),
    };
    spec.held = survey.held().to_vec();
    let relayed = match start(&spec) {
        Ok((ours, mut child)) => {
            let relayed = relay(control, &ours, &mut Meter::new(&spec));
            end(&mut child, spec.namespaces)?;
            relayed
        }
        Err(error) => line(&Report::Failed(format!("it cannot be started: {error}"))),
    };
    // The other side may be dead, and may not be able to remove what a command has locked.
    clear(&spec.home);
    let mut aside = guard::end(&survey, spec.note.as_deref());
    let more = aside.len().saturating_sub(MAX_TOLD);
    aside.truncate(MAX_TOLD);
    let told = relayed.and_then(|mut last| {
        last.extend(line(&Report::SetAside(aside))?);
        last.extend(line(&Report::MoreSetAside(more))?);
        (&mut &*control).write_all(&last)
    });
    if told.is_err() {
        let _ = fs::remove_dir_all(&spec.home);
    }
    told
}

/// Removes the private folder of a command, except the files that it leaves as artifacts: the other side reads those and removes
/// them, which it can do with nothing else in the folder.
fn clear(home: &Path) {
    for entry in entries(home) {
        let path = entry.path();
        match entry.file_name() == FOLDER && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => {
                let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
                entries(&path)
                    .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()))
                    .for_each(|entry| remove(&entry.path()));
            }
            false => remove(&path),
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

fn line(report: &Report) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    Ok(line)
}

fn start(spec: &CommandSpec) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(CONFINED).env_clear().stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    let child = command.spawn()?;
    send_line(&ours, spec)?;
    Ok((ours, child))
}

/// Waits until the one below is done or has written too much, or the one above has had enough. Its reports are passed on only when
/// all is over.
fn relay(control: &UnixStream, ours: &UnixStream, meter: &mut Meter) -> io::Result<Vec<u8>> {
    let mut reports = Vec::new();
    let (pause, mut measured) = (Timespec { tv_sec: 0, tv_nsec: EVERY.subsec_nanos().into() }, Instant::now());
    loop {
        if measured.elapsed() >= EVERY {
            if meter.is_over() {
                reports.extend(line(&Report::WroteTooMuch)?);
                return Ok(reports);
            }
            measured = Instant::now();
        }
        let mut fds = [PollFd::new(control, PollFlags::IN), PollFd::new(ours, PollFlags::IN)];
        match poll(&mut fds, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(reports);
        }
        if !fds[1].revents().is_empty() {
            let mut buffer = [0; 4096];
            match (&mut &*ours).read(&mut buffer)? {
                0 => return Ok(reports),
                read => reports.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

/// Ends the child and everything that came from it.
fn end(child: &mut Child, namespaces: bool) -> io::Result<()> {
    // In namespaces the child is the first process of its own, and the kernel ends all others with it.
    child.kill()?;
    child.wait()?;
    if namespaces {
        return Ok(());
    }
    loop {
        sweep();
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

/// Stops all that are below, until no new ones appear, and ends them then: one that still ran could fork faster than it is ended.
fn sweep() {
    let mut stopped = HashSet::new();
    loop {
        let fresh: Vec<Pid> = below().into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            // One that is gone already is no trouble.
            let _ = kill_process(pid, Signal::STOP);
            stopped.insert(pid);
        }
    }
    for pid in stopped {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// All processes that descend from this one.
pub(super) fn below() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // `pid (name) state parent …`, and the name may hold anything.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![getpid().as_raw_nonzero().get()]);
    while let Some(pid) = open.pop() {
        let next = children.remove(&pid).unwrap_or_default();
        found.extend(next.iter().filter_map(|pid| Pid::from_raw(*pid)));
        open.extend(next);
    }
    found
}
