//! The chore `deny`: what comes into the build from others. Licences, sources and duplicate versions are checked here against
//! `deny.toml`; advisories are the business of `cargo deny`, where it is installed and their database can be had.

mod licence;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::{Workspace, succeed};

const RULES: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// The part of `deny.toml` that is checked here.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    #[serde(default)]
    skip: Vec<Skip>,
}

/// A version that may stand beside another.
#[derive(Debug, Deserialize)]
struct Skip {
    /// `name@version`
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// The lock file: every package of every platform.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Described>,
}

#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// Checks everything; gives why advisories were not looked at, if they were not.
pub(crate) fn run(workspace: &Workspace) -> Result<Option<String>> {
    let read = |file: &str| std::fs::read_to_string(workspace.root.join(file)).with_context(|| format!("cannot read {file}"));
    let rules: Rules = toml::from_str(&read(RULES)?).with_context(|| format!("cannot read {RULES}"))?;
    let lock: Lock = toml::from_str(&read(LOCK)?).with_context(|| format!("cannot read {LOCK}"))?;
    let (described, left_out) = describe(workspace)?;
    let faults = [sources(&rules, &lock), duplicates(&rules, &lock), licences(&rules, &described, left_out.is_none())].concat();
    faults.iter().for_each(|fault| println!("{fault}"));
    ensure!(faults.is_empty(), "{} faults in dependencies", faults.len());
    if let Some(left_out) = left_out {
        println!("skipped: licences of packages for other platforms: {left_out}");
    }
    println!("deny: {} packages", lock.package.len());
    advisories(workspace)
}

/// The packages with their licences. Those of other platforms may not be on this machine.
fn describe(workspace: &Workspace) -> Result<(Vec<Described>, Option<String>)> {
    let ask = |more: &[&str]| -> Result<Vec<Described>, String> {
        let mut cargo = workspace.cargo();
        cargo.args(["metadata", "--format-version", "1", "--locked"]).args(more).stderr(Stdio::piped());
        let output = cargo.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo metadata failed").to_owned());
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        Ok(metadata.packages)
    };
    let why = match ask(&["--offline"]).or_else(|_| ask(&[])) {
        Ok(packages) => return Ok((packages, None)),
        Err(why) => why,
    };
    let host = host(workspace)?;
    match ask(&["--offline", "--filter-platform", &host]) {
        Ok(packages) => Ok((packages, Some(why))),
        Err(why) => bail!("{why}"),
    }
}

fn host(workspace: &Workspace) -> Result<String> {
    let output = workspace.cargo().args(["version", "--verbose"]).output().context("cannot start cargo")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("cargo does not say which platform this is")
}

/// Everything comes from a registry that is allowed, and is what it was when it was locked.
fn sources(rules: &Rules, lock: &Lock) -> Vec<String> {
    let mut faults = Vec::new();
    for Locked { name, version, source, checksum } in &lock.package {
        let Some(source) = source else { continue };
        let is_allowed =
            source.strip_prefix("registry+").is_some_and(|url| rules.sources.allow_registry.iter().any(|it| it == url));
        if !is_allowed {
            faults.push(format!("{LOCK}: {name} {version} comes from {source}; depend on a published version"));
        } else if checksum.is_none() {
            faults.push(format!("{LOCK}: {name} {version} has no checksum; write the lock file anew"));
        }
    }
    faults
}

/// No package stands there in two versions, except those that are listed with a reason; and the list has nothing old in it.
fn duplicates(rules: &Rules, lock: &Lock) -> Vec<String> {
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for package in &lock.package {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let skipped: BTreeSet<&str> = rules.bans.skip.iter().map(|skip| skip.package.as_str()).collect();
    let mut faults = Vec::new();
    for (name, versions) in &versions {
        let left: Vec<&str> =
            versions.iter().filter(|version| !skipped.contains(format!("{name}@{version}").as_str())).copied().collect();
        if left.len() > 1 {
            let remedy = format!("agree on one, or list the older in `skip` of {RULES} with who needs it");
            faults.push(format!("{LOCK}: {name} is there as {}; {remedy}", left.join(" and ")));
        }
    }
    for Skip { package, reason } in &rules.bans.skip {
        let is_double = package
            .split_once('@')
            .and_then(|(name, version)| versions.get(name).filter(|all| all.len() > 1 && all.contains(version)))
            .is_some();
        if !is_double {
            faults.push(format!("{RULES}: {package} stands beside no other version any more; take it out of `skip`"));
        }
        if reason.trim().is_empty() {
            faults.push(format!("{RULES}: {package} is skipped without a reason"));
        }
    }
    faults
}

/// Every package may be used under a licence that is allowed; and the list has none that nobody needs.
fn licences(rules: &Rules, packages: &[Described], is_all: bool) -> Vec<String> {
    let allowed: BTreeSet<&str> = rules.licenses.allow.iter().map(String::as_str).collect();
    let (mut faults, mut used) = (Vec::new(), BTreeSet::new());
    for Described { name, version, license, .. } in packages.iter().filter(|package| package.source.is_some()) {
        let expression = license.as_deref().unwrap_or_default();
        match licence::chosen(expression, &allowed) {
            Ok(chosen) => used.extend(chosen),
            Err(why) => faults.push(format!("{name} {version}: {why}; allow it in {RULES}, or do without the package")),
        }
    }
    if is_all {
        let idle = allowed.iter().filter(|licence| !used.contains(**licence));
        faults.extend(idle.map(|licence| format!("{RULES}: nothing has the licence {licence} any more; take it out")));
    }
    faults
}

/// Asks `cargo deny`, which knows advisories; gives why it could not be asked.
fn advisories(workspace: &Workspace) -> Result<Option<String>> {
    let is_there = workspace.cargo().args(["deny", "--version"]).output().is_ok_and(|output| output.status.success());
    if !is_there {
        return Ok(Some("cargo deny is not installed".to_owned()));
    }
    succeed(workspace.cargo().args(["deny", "check", "licenses", "bans", "sources"]), "cargo deny")?;
    let output = workspace.cargo().args(["deny", "check", "advisories"]).output().context("cannot start cargo deny")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(None);
    }
    let unfetched = said.lines().find(|line| line.contains("failed to fetch advisory database"));
    match unfetched {
        Some(line) => Ok(Some(line.trim().to_owned())),
        None => {
            println!("{said}");
            bail!("cargo deny found advisories");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "https://example.org/index";

    fn rules(skip: &[(&str, &str)]) -> Rules {
        let skip = skip.iter().map(|(package, reason)| Skip { package: (*package).to_owned(), reason: (*reason).to_owned() });
        Rules {
            licenses: Licenses { allow: vec!["MIT".to_owned(), "ISC".to_owned()] },
            bans: Bans { skip: skip.collect() },
            sources: Sources { allow_registry: vec![REGISTRY.to_owned()] },
        }
    }

    fn locked(name: &str, version: &str, source: &str, checksum: Option<&str>) -> Locked {
        let source = (!source.is_empty()).then(|| source.to_owned());
        Locked { name: name.to_owned(), version: version.to_owned(), source, checksum: checksum.map(str::to_owned) }
    }

    fn described(name: &str, license: &str) -> Described {
        let license = (!license.is_empty()).then(|| license.to_owned());
        Described { name: name.to_owned(), version: "1.0.0".to_owned(), license, source: Some("registry+x".to_owned()) }
    }

    #[test]
    fn a_package_from_elsewhere_or_without_a_checksum_is_reported() {
        let registry = format!("registry+{REGISTRY}");
        for (source, checksum, fine) in [
            ("", None, true),
            (registry.as_str(), Some("ab"), true),
            (registry.as_str(), None, false),
            ("git+https://example.org/a#1", None, false),
            ("registry+https://elsewhere.example/index", Some("ab"), false),
        ] {
            let lock = Lock { package: vec![locked("a", "1.0.0", source, checksum)] };
            assert_eq!(sources(&rules(&[]), &lock).is_empty(), fine, "{source} {checksum:?}");
        }
    }

    #[test]
    fn two_versions_are_reported_unless_listed_and_what_is_listed_in_vain_is_too() {
        let two = || Lock { package: vec![locked("a", "1.0.0", "", None), locked("a", "2.0.0", "", None)] };
        let one = || Lock { package: vec![locked("a", "2.0.0", "", None)] };
        assert_eq!(duplicates(&rules(&[]), &two()).len(), 1);
        assert_eq!(duplicates(&rules(&[("a@1.0.0", "b needs it")]), &two()), [""; 0]);
        assert_eq!(duplicates(&rules(&[("a@1.0.0", " ")]), &two()).len(), 1, "no reason");
        assert_eq!(duplicates(&rules(&[("a@1.0.0", "b needs it")]), &one()).len(), 1, "it is gone");
        assert_eq!(duplicates(&rules(&[("a@3.0.0", "b needs it")]), &two()).len(), 2, "another version");
        assert_eq!(duplicates(&rules(&[]), &one()), [""; 0]);
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_reported_and_one_that_nobody_has_too() {
        let all = |packages: &[Described]| licences(&rules(&[]), packages, true);
        assert_eq!(all(&[described("a", "MIT"), described("b", "GPL-3.0 OR ISC")]), [""; 0]);
        assert_eq!(all(&[described("a", "MIT"), described("b", "ISC AND GPL-3.0")]).len(), 2);
        assert_eq!(all(&[described("a", "MIT"), described("b", "ISC"), described("c", "")]).len(), 1);
        assert_eq!(all(&[described("a", "MIT")]).len(), 1, "nothing has ISC");
        assert_eq!(licences(&rules(&[]), &[described("a", "MIT")], false), [""; 0], "unless some are not known");
    }
}
