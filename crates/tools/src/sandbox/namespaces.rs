//! Namespaces: processes, mounts and a network of the command's own. In them the kernel ends all its processes at once, and
//! what is closed to it is not there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_remount};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use rustix::thread::{capabilities, configure_capability_in_ambient_set, set_capabilities};

use super::protocol::CommandSpec;

/// The smallest bound on process numbers that the kernel takes.
const LEAST_PID_MAX: u64 = 301;

/// Leaves the namespaces of everybody else. What is started next is the first process of its own.
pub(super) fn enter(network: bool) -> io::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    flags.set(UnshareFlags::NEWNET, !network);
    leave(flags)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // The one that is started must mount; it gives this up before the command runs.
    let held = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: held.permitted, ..held })?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    configure_capability_in_ambient_set(CapabilitySet::SETPCAP, true)?;
    Ok(())
}

/// Arranges the mounts, as the first process of the new namespaces. Tells whether its processes are bounded in number.
pub(super) fn arrange(spec: &CommandSpec) -> io::Result<bool> {
    leave(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)?;
    // Some containers do not allow it; Landlock then keeps the others' secrets from being read.
    let _ = mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None);
    // Root is not bound by the limit on processes, but by the numbers that its namespace has.
    let numbers = spec.limits.processes.max(LEAST_PID_MAX).to_string();
    let is_bounded = fs::write("/proc/sys/kernel/pid_max", numbers).is_ok();
    only_here(spec)?;
    pin(spec)?;
    for hidden in spec.protected.hidden() {
        hide(hidden)?;
    }
    for path in spec.held.iter().filter(|path| path.exists()) {
        mount_bind_recursive(path, path)?;
    }
    let is_held = |place: &Path| spec.held.iter().any(|held| place.starts_with(held));
    for place in places()?.iter().filter(|place| is_held(place)) {
        mount_remount(place, MountFlags::BIND | MountFlags::RDONLY | kept(place)?, c"")?;
    }
    Ok(is_bounded)
}

fn leave(namespaces: UnshareFlags) -> io::Result<()> {
    #[expect(deprecated, reason = "it is unsafe only with FILES, which nobody asks for")]
    Ok(rustix::thread::unshare(namespaces)?)
}

/// Makes all read-only but the command's folders. Landlock keeps files from being written; this keeps their modes, owners and
/// times as well.
fn only_here(spec: &CommandSpec) -> io::Result<()> {
    let own = [&spec.workspace, &spec.home];
    for folder in own {
        mount_bind_recursive(folder, folder)?;
    }
    for place in places()? {
        if !own.iter().any(|folder| place.starts_with(folder)) {
            // One that lies under another cannot be reached, neither by us nor by the command.
            let _ = kept(&place).and_then(|kept| Ok(mount_remount(&place, MountFlags::BIND | MountFlags::RDONLY | kept, c"")?));
        }
    }
    Ok(())
}

/// Where something is mounted.
fn places() -> io::Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter_map(|line| line.split(' ').nth(4).map(unescaped)).collect())
}

/// A path as `mountinfo` spells it: spaces and the like as `\\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let octal = more.get(..3).filter(|_| first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        match octal.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => (bytes.push(byte), rest = &more[3..]).1,
            None => (bytes.push(first), rest = more).1,
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn hide(closed: &Path) -> io::Result<()> {
    let Ok(found) = closed.symlink_metadata() else { return Ok(()) };
    if found.is_dir() {
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("polis", closed, "tmpfs", flags, c"mode=555,size=4k")?;
    } else {
        mount_bind("/dev/null", closed)?;
    }
    Ok(())
}

/// Makes the folders unmovable in which something is closed or Polis reads its instructions: where something is mounted, nobody
/// renames. Each is mounted once, the outer ones first.
fn pin(spec: &CommandSpec) -> io::Result<()> {
    let inside = |folder: &&Path| folder.starts_with(&spec.workspace) && **folder != spec.workspace;
    let closed = spec.protected.hidden().iter().chain(&spec.held).filter(|path| path.symlink_metadata().is_ok());
    let above = closed.flat_map(|path| path.ancestors().skip(1));
    let folders: BTreeSet<&Path> = above.chain(spec.protected.bases()).filter(inside).collect();
    for folder in folders {
        mount_bind_recursive(folder, folder)?;
    }
    Ok(())
}

/// The flags of a mount that only its owner may take away.
fn kept(path: &Path) -> io::Result<MountFlags> {
    let flags = statvfs(path)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    Ok(pairs.into_iter().filter(|(held, _)| flags.contains(*held)).map(|(_, flag)| flag).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_the_kernel_writes_them() {
        for (text, want) in [("/a", "/a"), ("/a\\040b\\134", "/a b\\"), ("/\\9", "/\\9"), ("/数", "/数")] {
            assert_eq!(unescaped(text), Path::new(want));
        }
    }
}
