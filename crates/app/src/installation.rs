//! How this program was installed, which is how it is updated. Nothing is downloaded here.

use std::path::{Path, PathBuf};

/// Where a program may have come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    /// A checkout in which cargo has built it.
    Checkout(PathBuf),
    /// `cargo install`.
    Cargo,
    /// A Debian package.
    Debian,
    /// The image of a container.
    Container,
    /// A file that was put where it is.
    File(PathBuf),
}

/// What there is to see on the machine.
pub(crate) struct Machine<'a> {
    /// The folder into which cargo installs.
    pub(crate) cargo_bin: Option<PathBuf>,
    /// Whether a file is there.
    pub(crate) exists: &'a dyn Fn(&Path) -> bool,
}

impl Installation {
    /// How the program at this path was installed.
    pub(crate) fn of(program: &Path, machine: &Machine<'_>) -> Self {
        let exists = |path: &str| (machine.exists)(Path::new(path));
        // target/release/polis, or target/TRIPLE/release/polis
        let checkout =
            program.ancestors().skip(2).take(3).find(|folder| (machine.exists)(&folder.join("crates/app/Cargo.toml")));
        if let Some(checkout) = checkout {
            return Self::Checkout(checkout.to_owned());
        }
        if exists("/.dockerenv") || exists("/run/.containerenv") {
            return Self::Container;
        }
        if machine.cargo_bin.as_deref().is_some_and(|folder| program.parent() == Some(folder)) {
            return Self::Cargo;
        }
        if program == Path::new("/usr/bin/polis") && exists("/var/lib/dpkg/info/polis.list") {
            return Self::Debian;
        }
        Self::File(program.to_owned())
    }

    /// Where it was found, and the commands that update it.
    pub(crate) fn advice(&self) -> (String, Vec<String>) {
        match self {
            Self::Checkout(folder) => (
                format!("was built in the checkout {}", folder.display()),
                vec![format!("cd {}", folder.display()), "git pull".to_owned(), "cargo build --release".to_owned()],
            ),
            Self::Cargo => (
                "was installed by cargo".to_owned(),
                vec!["git pull".to_owned(), "cargo install --locked --path crates/app    # in the checkout".to_owned()],
            ),
            Self::Debian => (
                "was installed as a Debian package".to_owned(),
                vec!["sudo apt install ./polis_VERSION_ARCHITECTURE.deb    # the new package".to_owned()],
            ),
            Self::Container => (
                "runs in a container".to_owned(),
                vec!["docker compose up --detach --build    # in packaging/ of the new checkout".to_owned()],
            ),
            Self::File(path) => (
                format!("is the file {}", path.display()),
                vec![format!("install -m 755 polis {}    # the new file", path.display())],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_known_by_where_the_program_is() {
        let checkout = || Installation::Checkout("/src/polis".into());
        for (program, there, want) in [
            ("/src/polis/target/release/polis", &["/src/polis/crates/app/Cargo.toml"][..], checkout()),
            ("/src/polis/target/x86_64-unknown-linux-musl/release/polis", &["/src/polis/crates/app/Cargo.toml"], checkout()),
            ("/opt/cargo/bin/polis", &[], Installation::Cargo),
            ("/usr/bin/polis", &["/var/lib/dpkg/info/polis.list"], Installation::Debian),
            ("/usr/bin/polis", &[], Installation::File("/usr/bin/polis".into())),
            ("/usr/local/bin/polis", &["/.dockerenv"], Installation::Container),
            ("/opt/polis", &["/var/lib/dpkg/info/polis.list"], Installation::File("/opt/polis".into())),
        ] {
            let exists = |path: &Path| there.iter().any(|it| Path::new(it) == path);
            let machine = Machine { cargo_bin: Some("/opt/cargo/bin".into()), exists: &exists };
            assert_eq!(Installation::of(Path::new(program), &machine), want, "{program}");
            assert!(!want.advice().1.is_empty());
        }
    }
}
