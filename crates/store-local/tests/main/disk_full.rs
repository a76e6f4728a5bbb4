//! A disk that fills up, a real one: everything acknowledged stays, nothing more is acknowledged, reads go on, and when there
//! is room again so do writes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use polis_domain::{Recorded, Seq};
use polis_ports::{Log, LogError};
use polis_store_local::LocalLog;

use crate::support::{all, batch_after, fresh_dir, main_society, wait};

/// A small disk, gone when dropped.
pub(crate) struct SmallDisk(pub(crate) PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> io::Result<Self> {
        fs::create_dir_all(at)?;
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(at).output()?;
        match output.status.success() {
            true => Ok(Self(at.to_owned())),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    /// A disk of two megabytes for a test, which says past libtest's capture that it is skipped where none can be mounted.
    pub(crate) fn mount_for(test: &str, at: &Path) -> Option<Self> {
        let mounted = Self::mount(at);
        if let Err(why) = &mounted {
            writeln!(io::stderr(), "skipped: {test}: no small disk can be mounted here: {why}").unwrap();
        }
        mounted.ok()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_loses_nothing_and_stops_nothing_for_good() {
    let dir = fresh_dir();
    let test = "a_full_disk_loses_nothing_and_stops_nothing_for_good";
    let Some(disk) = SmallDisk::mount_for(test, &dir.path().join("disk")) else { return };
    let data = disk.0.join("data");
    let log = LocalLog::open(&data).unwrap();
    let mut acknowledged: Vec<Recorded> = Vec::new();
    for round in 0..4 {
        let ballast = disk.0.join("ballast");
        let append = |acknowledged: &mut Vec<Recorded>| {
            let seq = acknowledged.len() as u64;
            let batch = batch_after(seq);
            wait(log.append(&main_society(), Seq(seq), &batch))?;
            acknowledged.extend(batch.iter().map(|recorded| Recorded::clone(recorded)));
            Ok::<(), LogError>(())
        };
        append(&mut acknowledged).unwrap();
        // Permit less and less room, so that it ends at different places.
        let _ = fs::write(&ballast, vec![0; 700_000 + round * 150_000]);
        let refused = (0..2_000).find_map(|_| append(&mut acknowledged).err()).expect("a small disk fills up");
        assert!(matches!(refused, LogError::Full(_)), "{refused:?}");
        for _ in 0..3 {
            assert!(matches!(append(&mut acknowledged), Err(LogError::Full(_))));
            assert_eq!(all(&log, &main_society()).unwrap(), acknowledged, "reads go on");
        }
        fs::remove_file(&ballast).unwrap();
        let head = wait(log.head(&main_society())).unwrap().0;
        let (before, batch) = (acknowledged.len() as u64, batch_after(acknowledged.len() as u64));
        if head != before {
            assert_eq!(head, before + batch.len() as u64, "a batch is there whole or not at all");
            acknowledged.extend(batch.iter().map(|recorded| Recorded::clone(recorded)));
        }
        append(&mut acknowledged).unwrap();
        assert_eq!(all(&log, &main_society()).unwrap(), acknowledged);
    }
    drop(log);
    assert_eq!(all(&LocalLog::open(&data).unwrap(), &main_society()).unwrap(), acknowledged);
}
