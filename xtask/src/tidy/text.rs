//! What no file of ours may contain, and how each begins and how long it may be.
//! A new rule is a new row in `LINE_RULES`.

use super::Violation;

const LONGEST: usize = 700;

/// Files people write and read as programs; generated and data files may be long.
const PROGRAMS: &[&str] = &[".rs", ".ts", ".tsx", ".css", ".sh"];

/// How the first line of a generated program begins.
const GENERATED: &str = "// Generated ";

/// This file has to name what it forbids.
const HERE: &str = "xtask/src/tidy/text.rs";

/// No line of certain files may look like this.
struct LineRule {
    /// How the names of these files end; empty is every file.
    files: &'static [&'static str],
    is_wrong: fn(&str) -> bool,
    wrong: &'static str,
    remedy: &'static str,
}

const LINE_RULES: &[LineRule] = &[
    LineRule {
        files: &[".rs"],
        is_wrong: |line| line.contains("todo!(") || line.contains("unimplemented!("),
        wrong: "has a hole in the program",
        remedy: "write the code, or leave the feature out",
    },
    LineRule {
        files: &[".rs"],
        is_wrong: |line| line.contains("#[ignore"),
        wrong: "has an ignored test",
        remedy: "make it run, or delete it; a test that needs a missing tool says `skipped: …` and returns",
    },
    LineRule {
        files: &[],
        is_wrong: |line| ["/root/", "/work/", "/home/"].iter().any(|start| names_absolute_path(line, start)),
        wrong: "names a path of one machine",
        remedy: "use a path relative to the workspace, or a temporary folder",
    },
    LineRule {
        files: &[],
        is_wrong: |line| REGISTRY_HOSTS.iter().any(|host| line.contains(host)),
        wrong: "names the host of a package registry",
        remedy: "leave the registry to each machine's own settings",
    },
    LineRule {
        files: &["Cargo.lock"],
        is_wrong: |line| line.starts_with("source = ") && line != CRATES_IO,
        wrong: "takes a crate from another place than crates.io",
        remedy: "depend on a published version",
    },
    LineRule {
        files: &["package-lock.json", "npm-shrinkwrap.json"],
        is_wrong: |line| line.contains("\"resolved\": \"http"),
        wrong: "names where a package was downloaded",
        remedy: "run npm with --omit-lockfile-registry-resolved",
    },
    LineRule {
        files: &[".cargo/config.toml"],
        is_wrong: |line| ["[source", "[registries", "[registry"].iter().any(|table| line.starts_with(table)),
        wrong: "chooses a package registry",
        remedy: "leave the registry to each machine's own settings",
    },
];

const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

const REGISTRY_HOSTS: &[&str] = &[
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "registry.npmmirror.com",
    "pypi.org",
    "files.pythonhosted.org",
    "deb.debian.org",
    "security.debian.org",
    "archive.ubuntu.com",
    "rsproxy.cn",
];

pub(super) fn check(file: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    if file.ends_with(".rs") && !starts_with_charter(text) {
        violations.push(Violation {
            place: file.to_owned(),
            wrong: "does not begin with its charter".to_owned(),
            remedy: "say in a first line `//! …` what the file owns and what it must not do".to_owned(),
        });
    }
    let lines = text.lines().count();
    if PROGRAMS.iter().any(|end| file.ends_with(end)) && lines > LONGEST && !text.starts_with(GENERATED) {
        violations.push(Violation {
            place: file.to_owned(),
            wrong: format!("has {lines} lines, more than {LONGEST}"),
            remedy: "split it by operation".to_owned(),
        });
    }
    if file != HERE {
        for rule in LINE_RULES.iter().filter(|rule| rule.is_about(file)) {
            for (number, _) in text.lines().enumerate().filter(|(_, line)| (rule.is_wrong)(line)) {
                violations.push(Violation {
                    place: format!("{file}:{}", number + 1),
                    wrong: rule.wrong.to_owned(),
                    remedy: rule.remedy.to_owned(),
                });
            }
        }
    }
    violations
}

impl LineRule {
    fn is_about(&self, file: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|end| file.ends_with(end))
    }
}

fn starts_with_charter(text: &str) -> bool {
    text.lines().next().and_then(|line| line.strip_prefix("//! ")).is_some_and(|charter| !charter.trim().is_empty())
}

/// `start` stands in the line as the beginning of a path, not inside a longer one.
fn names_absolute_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | '*' | '}' | '>' | ')' | ']'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrongs(file: &str, text: &str) -> Vec<String> {
        check(file, text).into_iter().map(|violation| format!("{}: {}", violation.place, violation.wrong)).collect()
    }

    #[test]
    fn each_rule_reports_what_breaks_it() {
        for (file, text, expected) in [
            ("a.rs", "use b;\n", "a.rs: does not begin with its charter"),
            ("a.rs", "", "a.rs: does not begin with its charter"),
            ("a.rs", "//!\n//! Too late.\n", "a.rs: does not begin with its charter"),
            ("tests/main.rs", "#![cfg(unix)]\n//! Late.\n", "tests/main.rs: does not begin with its charter"),
            ("a.rs", "//! A.\nfn a() { todo!() }\n", "a.rs:2: has a hole in the program"),
            ("a.rs", "//! A.\n\nfn a() { unimplemented!(\"b\") }\n", "a.rs:3: has a hole in the program"),
            ("a.rs", "//! A.\n#[ignore = \"slow\"]\n", "a.rs:2: has an ignored test"),
            ("a.md", "see /home/me/a", "a.md:1: names a path of one machine"),
            ("a.json", "{\"at\": \"/root/.cache/x\"}", "a.json:1: names a path of one machine"),
            ("a.toml", "dir=/work/x", "a.toml:1: names a path of one machine"),
            ("a.md", "file:///home/me/a", "a.md:1: names a path of one machine"),
            (".npmrc", "registry=https://registry.npmjs.org/", ".npmrc:1: names the host of a package registry"),
            (
                "Cargo.lock",
                "source = \"registry+https://mirror.example/index\"",
                "Cargo.lock:1: takes a crate from another place than crates.io",
            ),
            (
                "web/package-lock.json",
                "\"resolved\": \"https://mirror.example/x.tgz\"",
                "web/package-lock.json:1: names where a package was downloaded",
            ),
            (".cargo/config.toml", "[source.crates-io]", ".cargo/config.toml:1: chooses a package registry"),
        ] {
            assert_eq!(wrongs(file, text), [expected], "{file}: {text:?}");
        }
    }

    #[test]
    fn a_long_program_is_reported_and_long_data_is_not() {
        let text = format!("//! A.\n{}", "\n".repeat(LONGEST));
        assert_eq!(wrongs("a.rs", &text), ["a.rs: has 701 lines, more than 700"]);
        assert_eq!(wrongs("a.csv", &text), [""; 0]);
        assert_eq!(wrongs("a.ts", &format!("// Generated from b.\n{text}")), [""; 0]);
    }

    #[test]
    fn what_only_looks_alike_is_left_alone() {
        for (file, text) in [
            ("a.rs", "//! A.\n"),
            ("a.md", "docs/work/plan.md, ./home/x, ../root/y, $HOME/work/z, https://a.example/home/ and the todo!( of others"),
            ("Cargo.lock", CRATES_IO),
            (HERE, "//! A.\n/root/\n"),
        ] {
            assert_eq!(wrongs(file, text), [""; 0], "{file}: {text:?}");
        }
    }
}
