//! Which crate may use which: the direction of imports (ARCHITECTURE.md) and the fences around heavy dependencies.
//! A new crate gets a row in `ROWS`; a new heavy dependency gets one in `FENCES`.

use super::Violation;
use crate::workspace::{Package, Purpose};

/// Said to whoever needs another edge than the tables allow.
const HERE: &str = "xtask/src/tidy/imports.rs";

/// The crate that every other one may use in its tests.
const TESTKIT: &str = "polis-testkit";

/// A crate of ours and those of ours it may use.
struct Row {
    package: &'static str,
    may_use: Ours,
}

enum Ours {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const ROWS: &[Row] = &[
    Row { package: "polis-domain", may_use: Ours::Only(&[]) },
    Row { package: "polis-ports", may_use: Ours::Only(&["polis-domain"]) },
    Row { package: "polis-http", may_use: Ours::Only(&[]) },
    Row { package: "polis-docs", may_use: Ours::Only(&[]) },
    Row { package: "polis-engine", may_use: Ours::Only(&["polis-domain", "polis-ports"]) },
    Row { package: "polis-agents", may_use: Ours::Only(&["polis-domain", "polis-ports", "polis-engine"]) },
    Row { package: "polis-authoring", may_use: Ours::Only(&["polis-agents"]) },
    Row { package: "polis-offline", may_use: Ours::Only(&["polis-domain", "polis-ports"]) },
    Row { package: "polis-providers", may_use: Ours::Only(&["polis-domain", "polis-http", "polis-offline", "polis-ports"]) },
    Row { package: "polis-tools", may_use: Ours::Only(&["polis-domain", "polis-http", "polis-ports"]) },
    Row { package: "polis-stored-event", may_use: Ours::Only(&["polis-domain", "polis-ports"]) },
    Row { package: "polis-store-local", may_use: Ours::Only(&["polis-domain", "polis-ports", "polis-stored-event"]) },
    Row {
        package: "polis-store-postgres",
        may_use: Ours::Only(&["polis-domain", "polis-http", "polis-ports", "polis-stored-event"]),
    },
    Row { package: "polis-client", may_use: Ours::Only(&["polis-api", "polis-domain", "polis-http"]) },
    Row { package: "polis-api", may_use: Ours::Only(&["polis-domain", "polis-ports", "polis-engine"]) },
    Row {
        package: "polis-server",
        may_use: Ours::Only(&["polis-api", "polis-domain", "polis-engine", "polis-http", "polis-ports"]),
    },
    Row { package: "polis-telemetry", may_use: Ours::Only(&["polis-domain", "polis-http", "polis-ports", "polis-engine"]) },
    Row {
        package: "polis",
        may_use: Ours::Only(&[
            "polis-domain",
            "polis-ports",
            "polis-engine",
            "polis-agents",
            "polis-app",
            "polis-providers",
            "polis-store-local",
            "polis-tools",
        ]),
    },
    Row { package: TESTKIT, may_use: Ours::Only(&["polis-domain", "polis-ports", "polis-engine"]) },
    Row { package: "data_pipeline", may_use: Ours::Only(&["polis"]) },
    Row {
        package: "polis-app",
        may_use: Ours::AllBut(&[TESTKIT, "data_pipeline", "house_style", "polis", "polis-bench", "polis-fuzz", "xtask"]),
    },
    Row { package: "polis-bench", may_use: Ours::AllBut(&["polis-app", "polis-fuzz", "xtask"]) },
    Row { package: "polis-fuzz", may_use: Ours::AllBut(&[TESTKIT, "polis-app", "polis-bench", "xtask"]) },
    Row { package: "xtask", may_use: Ours::Only(&["polis-docs"]) },
    Row { package: "house_style", may_use: Ours::Only(&["polis"]) },
    Row { package: "article_creation", may_use: Ours::AllBut(&[TESTKIT, "polis-app", "polis-bench", "polis-fuzz", "xtask"]) },
];

/// Dependencies that live in few crates. A name that ends in `*` stands for all that begin so.
struct Fence {
    dependencies: &'static [&'static str],
    homes: Homes,
    why: &'static str,
}

enum Homes {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const FENCES: &[Fence] = &[
    Fence {
        dependencies: &["rusqlite*", "libsqlite3-sys"],
        homes: Homes::Only(&["polis-store-local"]),
        why: "only the local store knows SQLite",
    },
    Fence {
        dependencies: &["tokio-postgres", "deadpool*", "postgres*", "sqlx*"],
        homes: Homes::Only(&["polis-store-postgres"]),
        why: "only the store in PostgreSQL knows PostgreSQL",
    },
    Fence { dependencies: &["axum*", "tower-http"], homes: Homes::Only(&["polis-server"]), why: "only the server serves HTTP" },
    Fence {
        dependencies: &["hyper*"],
        homes: Homes::Only(&["polis-http", "polis-server"]),
        why: "polis-http connects to others, and the server serves",
    },
    Fence { dependencies: &["reqwest*"], homes: Homes::Only(&[]), why: "every outgoing connection goes through polis-http" },
    Fence { dependencies: &["rmcp*"], homes: Homes::Only(&["polis-tools"]), why: "only the tools know MCP" },
    Fence { dependencies: &["clap*"], homes: Homes::Only(&["polis-app", "xtask"]), why: "only programs have a command line" },
    Fence { dependencies: &["mimalloc*"], homes: Homes::Only(&["polis-app"]), why: "only programs choose an allocator" },
    Fence {
        dependencies: &["syn", "proc-macro2"],
        homes: Homes::Only(&["polis-authoring"]),
        why: "only `polis check` reads Rust",
    },
    Fence {
        dependencies: &["anyhow", "eyre", "color-eyre"],
        homes: Homes::Only(&["polis-app", "xtask"]),
        why: "libraries have errors that callers can act on",
    },
    Fence {
        dependencies: &["tokio*", "async-*", "futures*", "smol", "reqwest*", "getrandom", "rand"],
        homes: Homes::AllBut(&["polis-domain"]),
        why: "the domain is pure: no async, no I/O, no randomness",
    },
];

/// Measures and tries the others, so they may use what those use.
const FREE: &[&str] = &["polis-bench", "polis-fuzz"];

pub(super) fn check(packages: &[Package]) -> Vec<Violation> {
    packages.iter().flat_map(|package| check_package(package, packages)).collect()
}

fn check_package(package: &Package, packages: &[Package]) -> Vec<Violation> {
    let violation = |wrong: String, remedy: String| Violation { place: package.manifest(), wrong, remedy };
    let Some(row) = ROWS.iter().find(|row| row.package == package.name) else {
        return vec![violation(
            format!("`{}` has no row in the table of imports", package.name),
            format!("add it to ROWS in {HERE} and to ARCHITECTURE.md"),
        )];
    };
    let mut violations = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        if packages.iter().any(|package| package.name == name) {
            if !row.allows(name, dependency.purpose) {
                violations.push(violation(
                    format!("`{}` must not use `{name}`{}", package.name, in_words(dependency.purpose)),
                    format!("imports point down only; turn the edge around, or change ARCHITECTURE.md and {HERE}"),
                ));
            }
        } else if dependency.purpose == Purpose::Code && !FREE.contains(&row.package) {
            for fence in FENCES.iter().filter(|fence| fence.keeps_out(row.package, name)) {
                violations.push(violation(
                    format!("`{}` must not use `{name}`: {}", package.name, fence.why),
                    format!("go through a port, or move the fence in {HERE}"),
                ));
            }
        }
    }
    violations
}

impl Row {
    fn allows(&self, name: &str, purpose: Purpose) -> bool {
        let listed = match self.may_use {
            Ours::Only(names) => names.contains(&name),
            Ours::AllBut(names) => !names.contains(&name),
        };
        listed || (purpose == Purpose::Tests && name == TESTKIT)
    }
}

impl Fence {
    fn keeps_out(&self, package: &str, dependency: &str) -> bool {
        let meant = self.dependencies.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => dependency.starts_with(start),
            None => dependency == *pattern,
        });
        let at_home = match self.homes {
            Homes::Only(homes) => homes.contains(&package),
            Homes::AllBut(others) => !others.contains(&package),
        };
        meant && !at_home
    }
}

fn in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Code => "",
        Purpose::Tests => " even in its tests",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, Purpose)]) -> Package {
        let dependencies = dependencies.iter().map(|&(name, purpose)| Dependency { name: name.to_owned(), purpose }).collect();
        Package { name: name.to_owned(), dir: format!("crates/{name}"), dependencies }
    }

    /// What is said about `user` when it uses `used`, in a workspace that has all our crates.
    fn check_edge(user: &str, used: &str, purpose: Purpose) -> Vec<String> {
        let mut packages: Vec<Package> =
            ROWS.iter().filter(|row| row.package != user).map(|row| package(row.package, &[])).collect();
        packages.push(package(user, &[(used, purpose)]));
        check(&packages).into_iter().map(|violation| violation.wrong).collect()
    }

    #[test]
    fn edges_that_point_down_are_allowed() {
        for (user, used, purpose) in [
            ("polis-ports", "polis-domain", Purpose::Code),
            ("polis-engine", "polis-ports", Purpose::Code),
            ("polis-agents", "polis-engine", Purpose::Code),
            ("polis-domain", "polis-testkit", Purpose::Tests),
            ("polis-testkit", "polis-engine", Purpose::Code),
            ("polis-app", "polis-store-local", Purpose::Code),
            ("polis-store-local", "rusqlite", Purpose::Code),
            ("polis-store-postgres", "polis-stored-event", Purpose::Code),
            ("polis-server", "axum", Purpose::Code),
            ("polis-server", "reqwest", Purpose::Tests),
            ("polis-bench", "rusqlite", Purpose::Code),
            ("polis-domain", "serde", Purpose::Code),
            ("polis-engine", "tokio", Purpose::Code),
        ] {
            assert_eq!(check_edge(user, used, purpose), [""; 0], "{user} -> {used}");
        }
    }

    #[test]
    fn edges_that_point_up_or_across_are_reported() {
        for (user, used) in [
            ("polis-domain", "polis-ports"),
            ("polis-ports", "polis-engine"),
            ("polis-engine", "polis-agents"),
            ("polis-engine", "polis-testkit"),
            ("polis-agents", "polis-providers"),
            ("polis-providers", "polis-engine"),
            ("polis-tools", "polis-providers"),
            ("polis-store-local", "polis-engine"),
            ("polis-store-postgres", "polis-store-local"),
            ("polis-server", "polis-agents"),
            ("polis", "polis-server"),
            ("polis-testkit", "polis-agents"),
            ("polis-app", "polis-testkit"),
            ("polis-app", "xtask"),
        ] {
            assert_eq!(check_edge(user, used, Purpose::Code), [format!("`{user}` must not use `{used}`")]);
        }
        assert_eq!(
            check_edge("polis-server", "polis-store-local", Purpose::Tests),
            ["`polis-server` must not use `polis-store-local` even in its tests"]
        );
    }

    #[test]
    fn a_fenced_dependency_outside_its_home_is_reported() {
        for (user, used) in [
            ("polis-engine", "rusqlite"),
            ("polis-engine", "axum"),
            ("polis-agents", "reqwest"),
            ("polis-engine", "hyper-util"),
            ("polis-server", "rmcp"),
            ("polis-testkit", "clap"),
            ("polis-engine", "mimalloc"),
            ("polis-store-local", "anyhow"),
            ("polis-domain", "tokio-util"),
            ("polis-domain", "async-trait"),
        ] {
            let said = check_edge(user, used, Purpose::Code);
            assert!(said.len() == 1 && said[0].starts_with(&format!("`{user}` must not use `{used}`: ")), "{said:?}");
        }
    }

    #[test]
    fn a_crate_without_a_row_is_told_where_to_get_one() {
        let violations = check(&[package("polis-voice", &[])]);
        assert_eq!(
            violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["crates/polis-voice/Cargo.toml: `polis-voice` has no row in the table of imports; \
              add it to ROWS in xtask/src/tidy/imports.rs and to ARCHITECTURE.md"]
        );
    }
}
