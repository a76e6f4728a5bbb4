//! A real disk that fills up under a real server.

use std::io::BufRead;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::json;

use super::support::Home;

/// A small disk, gone when dropped.
pub(super) struct SmallDisk(pub(super) PathBuf);

impl SmallDisk {
    /// Mounts one of this size, such as `3m`.
    pub(super) fn mount(at: &Path, size: &str) -> io::Result<Self> {
        fs::create_dir_all(at)?;
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at).output()?;
        match output.status.success() {
            true => Ok(Self(at.to_owned())),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn while_the_disk_is_full_a_server_is_read_and_watched_and_goes_on_when_there_is_room() {
    let home = Home::new();
    let disk = match SmallDisk::mount(&home.path().join("disk"), "3m") {
        Ok(disk) => disk,
        Err(why) => {
            writeln!(
                std::io::stderr(),
                "skipped: while_the_disk_is_full_a_server_is_read_and_watched_and_goes_on_when_there_is_room: no small disk can be mounted here: {why}"
            )
            .unwrap();
            return;
        }
    };
    let data = disk.0.join("data");
    let served = home.serve(&["--data", data.to_str().unwrap(), "--model", "offline"]);
    let submit = || served.post("/api/submit", &json!({ "text": "what is 15% of 240?", "strategy": "simple" }));
    let (status, first) = submit();
    assert_eq!(status, 200, "{first}");
    let ballast = disk.0.join("ballast");
    let _ = fs::write(&ballast, vec![0; 3 << 20]);
    let (status, refused) = (0..2_000).map(|_| submit()).find(|(status, _)| *status != 200).expect("a small disk fills up");
    assert_eq!((status, refused["code"].as_str()), (507, Some("disk_full")), "{refused}");
    for target in ["/api/agents", "/api/threads", "/api/tasks", "/api/approvals", "/api/usage", "/api/org"] {
        assert_eq!(served.get(target).0, 200, "{target}");
    }
    let (status, health) = served.get("/api/health");
    assert_eq!((status, &health["status"], &health["store"]["code"]), (200, &json!("degraded"), &json!("disk_full")));
    for target in ["/metrics", "/api/events?after=0"] {
        let mut head = String::new();
        served.stream(target).read_line(&mut head).unwrap();
        assert!(!head.is_empty(), "{target}");
    }
    assert_eq!(submit().0, 507, "nothing is accepted meanwhile");
    fs::remove_file(&ballast).unwrap();
    while served.get("/api/health").1["status"] != "ok" {}
    assert_eq!(submit().0, 200);
    served.stop();
}
