//! Says for `polis --version` what is built: commit, target and features. Debug builds do not ask for the commit, which would
//! rebuild them with every one.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=POLIS_COMMIT");
    println!("cargo:rustc-env=POLIS_TARGET={}", variable("TARGET"));
    println!("cargo:rustc-env=POLIS_FEATURES={}", features());
    let commit = match variable("POLIS_COMMIT") {
        named if !named.is_empty() => named,
        _ if variable("OPT_LEVEL") == "0" => "debug build".to_owned(),
        _ => {
            // Commits and checkouts write here.
            if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo:rerun-if-changed={log}");
            }
            git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown commit".to_owned())
        }
    };
    println!("cargo:rustc-env=POLIS_COMMIT={commit}");
}

/// The features of this build, as cargo names them in variables.
fn features() -> String {
    let name =
        |(variable, _): (String, String)| Some(variable.strip_prefix("CARGO_FEATURE_")?.to_lowercase().replace('_', "-"));
    let mut names: Vec<_> = std::env::vars().filter_map(name).filter(|name| name != "default").collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
