//! The process that gives up what a command must not have, and then runs it: the parent of the command's shell.

use std::fmt::Display;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getuid, set_parent_process_death_signal, setrlimit, wait};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use rustix::thread::{clear_ambient_capability_set, set_capabilities, set_capabilities_secure_bits};

use super::protocol::{CommandSpec, Report, SandboxFeatures, parent, read_spec, send_line};
use super::{landlock, namespaces, seccomp};

/// Most files that each process may have open.
const MAX_OPEN_FILES: u64 = 4096;

/// Bounds the memory of a command and runs it. The limit counts address space, of which this program may have reserved more than
/// a command gets: it is for the shell to set, which has little.
const LIMITED: &str = r#"ulimit -v "$1" || exit 125; exec /bin/sh -c "$2""#;

fn memory_kib(spec: &CommandSpec) -> u64 {
    let held = rustix::process::getrlimit(Resource::As).maximum.unwrap_or(u64::MAX);
    spec.limits.memory_bytes.min(held) >> 10
}

pub(super) fn run() -> ExitCode {
    let socket = set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into).and_then(|()| parent());
    let Ok(control) = socket else { return ExitCode::FAILURE };
    let Ok(spec) = read_spec(&control) else { return ExitCode::FAILURE };
    let last = obey(&spec, &control).unwrap_or_else(|report| report);
    match send_line(&control, &last) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn obey(spec: &CommandSpec, control: &UnixStream) -> Result<Report, Report> {
    if spec.protected.why(&spec.workspace).is_some() {
        return Err(Report::Failed("the workspace lies in a folder that is closed to commands".to_owned()));
    }
    let mut is_bounded = !getuid().is_root();
    if spec.namespaces {
        is_bounded |= namespaces::arrange(spec).map_err(|error| Report::NoNamespaces(error.to_string()))?;
    }
    let features = SandboxFeatures { process_limit: is_bounded, ..confine(spec)? };
    let failed = |error: &dyn Display| Report::Failed(format!("the command cannot be started: {error}"));
    send_line(control, &Report::Held(features)).map_err(|error| failed(&error))?;
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", LIMITED, "sh", &memory_kib(spec).to_string(), &spec.command])
        .env_clear()
        .envs(spec.environment.iter().cloned())
        .stdin(Stdio::null());
    let shell = shell.spawn().map_err(|error| failed(&error))?;
    let shell = Pid::from_child(&shell);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == shell => {
                return Ok(match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Report::Exited(code),
                    (None, signal) => Report::Killed(signal.unwrap_or_default()),
                });
            }
            // Somebody's orphan; the first process of a namespace must take them all.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
}

fn confine(spec: &CommandSpec) -> Result<SandboxFeatures, Report> {
    let failed = |what: &str, error: &dyn Display| Report::Failed(format!("{what}: {error}"));
    // Seen from here, so that the mounts above it are those of the command.
    std::env::set_current_dir(&spec.workspace).map_err(|error| failed("the workspace", &error))?;
    limit(spec).map_err(|error| failed("the limits", &error))?;
    drop_capabilities(spec).map_err(|error| failed("the capabilities", &error))?;
    let landlock = landlock::confine(spec).map_err(|error| failed("Landlock", &error))?;
    let seccomp = seccomp::confine(spec.network).is_ok();
    Ok(SandboxFeatures { landlock, seccomp, namespaces: spec.namespaces, process_limit: false })
}

fn limit(spec: &CommandSpec) -> rustix::io::Result<()> {
    let limits = &spec.limits;
    // The limit counts all processes of the user; in namespaces it counts only those in them.
    let others = if spec.namespaces { 0 } else { tasks_of_user() };
    for (resource, most) in [
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Core, 0),
        (Resource::Nproc, others.saturating_add(limits.processes)),
    ] {
        let held = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = Some(most.min(held));
        setrlimit(resource, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

fn tasks_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let uid = getuid().as_raw();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mine = processes.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == uid));
    mine.map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count) as u64).sum()
}

/// Gives up every capability, also those that root gets with each program.
fn drop_capabilities(spec: &CommandSpec) -> rustix::io::Result<()> {
    if !spec.namespaces && !getuid().is_root() {
        return Ok(());
    }
    clear_ambient_capability_set()?;
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
