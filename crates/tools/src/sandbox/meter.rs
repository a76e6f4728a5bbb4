//! Measures what a command writes while it runs. Ends nothing.
//!
//! The kernel counts what each process has sent to a disk, and whoever collects a process that ended takes over its count. That is
//! cheap and misses nothing that was deleted again, but not every file system is counted and not every way to take space. So the
//! free space is watched as well; where it has shrunk too much, the files that were changed since the beginning are added up, to
//! know whether it was this command.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;

use super::protocol::CommandSpec;
use super::warden::below;

/// How often it is measured.
pub(super) const EVERY: Duration = Duration::from_millis(200);
/// How long files are not added up again after it was not this command.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Meter {
    limit_bytes: u64,
    folders: [PathBuf; 2],
    free_bytes: [u64; 2],
    began: i64,
    not_before: Instant,
}

impl Meter {
    pub(super) fn new(spec: &CommandSpec) -> Self {
        let folders = [spec.workspace.clone(), spec.home.clone()];
        // Its folder was made for it a moment ago.
        let began = fs::metadata(&spec.home).map_or(0, |about| about.ctime());
        let free_bytes = folders.each_ref().map(|folder| free(folder));
        Self { limit_bytes: spec.limits.written_bytes, folders, free_bytes, began, not_before: Instant::now() }
    }

    /// Whether the command has written more than it may.
    pub(super) fn is_over(&mut self) -> bool {
        let processes = below();
        let written: u64 = processes.iter().map(|pid| written_by(pid.as_raw_nonzero().get())).sum();
        if written > self.limit_bytes {
            return true;
        }
        let shrunk = |n: usize| self.free_bytes[n].saturating_sub(free(&self.folders[n])) > self.limit_bytes;
        if Instant::now() < self.not_before || !(shrunk(0) || shrunk(1)) {
            return false;
        }
        self.not_before = Instant::now() + PATIENCE;
        let open: u64 = processes.iter().map(|pid| deleted_of(pid.as_raw_nonzero().get())).sum();
        open + self.changed_bytes() > self.limit_bytes
    }

    /// The space of all files that were changed since the beginning.
    fn changed_bytes(&self) -> u64 {
        let (mut open, mut bytes) = (self.folders.to_vec(), 0);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                if about.is_dir() {
                    open.push(entry.path());
                } else if about.ctime() >= self.began {
                    bytes += about.blocks() * 512;
                }
            }
        }
        bytes
    }
}

fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(u64::MAX, |about| about.f_bfree * about.f_frsize)
}

/// What a process and those that it has collected sent to disks, without what was deleted before it got there.
fn written_by(pid: i32) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let count = |name: &str| counts.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    count("write_bytes:").saturating_sub(count("cancelled_write_bytes:"))
}

/// The space of files that a process has open and that have no name any more.
fn deleted_of(pid: i32) -> u64 {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let about = open.filter_map(|entry| fs::metadata(entry.path()).ok());
    about.filter(|about| about.is_file() && about.nlink() == 0).map(|about| about.blocks() * 512).sum()
}
