//! Which settings of git run no programs. A new repository may have those; everything else is for people to set.

use std::path::Path;

use super::is;

/// Settings that name no program and no other file with settings: section, and keys. Sections with a name of their own, such as
/// `remote "origin"`, have the same keys.
const HARMLESS: &[(&str, &[&str])] = &[
    ("advice", &["*"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "compression",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
        ],
    ),
    ("branch", &["merge", "rebase", "remote", "description", "vscode-merge-base"]),
    ("color", &["*"]),
    ("commit", &["gpgsign", "verbose", "cleanup"]),
    ("extensions", &["objectformat", "partialclone", "refstorage", "worktreeconfig"]),
    ("fetch", &["prune", "prunetags"]),
    ("gc", &["auto", "autodetach"]),
    ("index", &["version", "sparse"]),
    ("init", &["defaultbranch"]),
    ("merge", &["conflictstyle", "ff"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default"]),
    ("rebase", &["autosquash", "autostash"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards"]),
    (
        "remote",
        &["fetch", "mirror", "partialclonefilter", "promisor", "prune", "pushurl", "skipdefaultupdate", "tagopt", "url"],
    ),
    ("status", &["*"]),
    ("submodule", &["active", "branch", "path", "url"]),
    ("tag", &["gpgsign", "sort"]),
    ("user", &["email", "name"]),
];

/// Whether a file with settings of git has only such that run no program. What is not written as git itself writes it is not
/// trusted: git may read it in another way than we do.
pub(crate) fn is_harmless_config(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut section = String::new();
    for line in text.split('\n').map(|line| line.trim_matches([' ', '\t', '\r'])) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.ends_with('\\') {
            return false;
        }
        if let Some(head) = line.strip_prefix('[') {
            let Some(head) = head.strip_suffix(']') else { return false };
            let (name, rest) = head.split_once(' ').unwrap_or((head, "\"\""));
            let is_quoted = rest.len() > 1 && rest.starts_with('"') && rest.ends_with('"');
            // `[core]key=value]` is a section and a setting on one line.
            let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if !is_word || !is_quoted || rest[1..rest.len() - 1].contains(['"', '\\', ']']) {
                return false;
            }
            section = name.to_ascii_lowercase();
            continue;
        }
        let key = line.split('=').next().unwrap_or_default().trim_end_matches([' ', '\t']).to_ascii_lowercase();
        let known = HARMLESS.iter().find(|(name, _)| *name == section);
        let fits = |keys: &[&str]| keys.contains(&"*") || keys.contains(&key.as_str());
        let is_word = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !is_word || !known.is_some_and(|(_, keys)| fits(keys)) || names_helper(line) {
            return false;
        }
    }
    true
}

/// Whether an address has git start a program to get there, such as `ext::sh -c …`.
fn names_helper(line: &str) -> bool {
    line.contains("::")
}

/// Whether `commondir` at this path, with this text, is that of a worktree as git makes it: it leads back to its repository.
pub(crate) fn is_worktree(path: &Path, text: &[u8]) -> bool {
    let above = path.parent().and_then(Path::parent).and_then(Path::file_name);
    text.trim_ascii_end() == b"../.." && above.is_some_and(|name| is(name, "worktrees"))
}

/// Whether the steps of a rebase run no program.
pub(crate) fn is_harmless_todo(text: &[u8]) -> bool {
    let runs = |line: &str| matches!(line.split_whitespace().next(), Some("exec" | "x"));
    std::str::from_utf8(text).is_ok_and(|text| !text.lines().any(runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_programs_are_told_from_those_that_do_not() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n# a comment\n[user]\n\tname = A = B\n";
        assert!(is_harmless_config(plain.as_bytes()));
        assert!(is_harmless_config(b""));
        for bad in [
            "[core]\n\thooksPath = x",
            "[core]\n\tfsmonitor = ./x",
            "[CORE]\n\tSSHCommand = x",
            "[core]\n\tpager = x",
            "[core]\n\teditor = x",
            "[core] hooksPath = x",
            "[core]hooksPath=x]",
            "[core]\tfsmonitor=./e]",
            "[a]key=v \"y\"]",
            "[]\n\tbare = false",
            "[core]\n\tworktree = /elsewhere",
            "[core]\n\tbare = false\\\nhooksPath = x",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:x\"]\n\tpath = x",
            "[alias]\n\tst = !x",
            "[filter \"x\"]\n\tclean = x",
            "[diff \"x\"]\n\tcommand = x",
            "[merge \"x\"]\n\tdriver = x",
            "[credential]\n\thelper = !x",
            "[remote \"x\"]\n\tuploadpack = x",
            "[remote \"x\"]\n\turl = ext::sh -c x",
            "[submodule \"x\"]\n\tupdate = !x",
            "[remote \"x\"] [core]\n\thooksPath = x",
            "[gpg]\n\tprogram = x",
            "[core]\n\tbare\u{a0}= x",
            "hooksPath = x",
        ] {
            assert!(!is_harmless_config(bad.as_bytes()), "{bad:?}");
        }
        assert!(!is_harmless_config(b"\xff"));
    }

    #[test]
    fn a_worktree_leads_back_to_its_repository() {
        assert!(is_worktree(Path::new("/w/.git/worktrees/x/commondir"), b"../..\n"));
        assert!(!is_worktree(Path::new("/w/.git/worktrees/x/commondir"), b"../../../evil\n"));
        assert!(!is_worktree(Path::new("/w/.git/commondir"), b"../..\n"));
    }
}
