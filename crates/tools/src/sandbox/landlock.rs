//! Landlock: which files a command may touch, whichever way it names them.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::protocol::CommandSpec;

/// The newest version that is made use of; older kernels do what they can.
const NEWEST: ABI = ABI::V6;

/// Programs and what they need to run.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/snap"];

/// Settings without secrets: a root user could read the others too.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/proc",
    "/dev/random",
    "/dev/urandom",
];

const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Gives up everything else. Tells the version that holds; none where the kernel has no Landlock.
pub(super) fn confine(spec: &CommandSpec) -> Result<Option<u32>, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    if !spec.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    // In namespaces what is hidden is not there at all, and what is held is mounted read-only.
    let (hidden, held) = if spec.namespaces { (&[][..], &[][..]) } else { (spec.protected.hidden(), &spec.held[..]) };
    let mut workspace = Opened::default();
    workspace.open(&spec.workspace, hidden, held);
    let status = rules
        .create()?
        .add_rules(path_beneath_rules(PROGRAMS, run))?
        .add_rules(path_beneath_rules(SETTINGS, read))?
        .add_rules(path_beneath_rules(&spec.readable, run))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate))?
        .add_rules(path_beneath_rules([&spec.home], write))?
        .add_rules(path_beneath_rules(&workspace.whole, write))?
        .add_rules(path_beneath_rules(&workspace.read_only, run))?
        .add_rules(path_beneath_rules(&workspace.listed, BitFlags::from(AccessFs::ReadDir)))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            Some(kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs))
        }
        _ => None,
    })
}

/// What is open of a folder, some of which is not: Landlock takes nothing back of what was given.
#[derive(Debug, Default)]
struct Opened {
    whole: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    listed: Vec<PathBuf>,
}

impl Opened {
    fn open(&mut self, path: &Path, hidden: &[PathBuf], held: &[PathBuf]) {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return;
        }
        let is_free = !hidden.iter().chain(held).any(|closed| closed.starts_with(path));
        if held.iter().any(|held| path.starts_with(held)) && !hidden.iter().any(|hidden| hidden.starts_with(path)) {
            self.read_only.push(path.to_owned());
            return;
        }
        if is_free {
            self.whole.push(path.to_owned());
            return;
        }
        // Something below is closed, even if it does not exist yet: nothing new can be made at this level.
        self.listed.push(path.to_owned());
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.open(&entry.path(), hidden, held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_and_what_is_held_is_read_only_with_the_folders_that_lead_there() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["a/b/data", "a/c", "d", "e/roles", "e/f"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("a/file"), "").unwrap();
        std::os::unix::fs::symlink("a/b/data", at("link")).unwrap();
        let mut opened = Opened::default();
        opened.open(root.path(), &[at("a/b/data"), at("polis.toml")], &[at("e/roles")]);
        opened.whole.sort();
        opened.listed.sort();
        assert_eq!(opened.whole, [at("a/c"), at("a/file"), at("d"), at("e/f")]);
        assert_eq!(opened.read_only, [at("e/roles")]);
        assert_eq!(opened.listed, [root.path().to_owned(), at("a"), at("a/b"), at("e")]);
    }
}
