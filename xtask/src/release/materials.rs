//! What a release consists of: a bill of materials (CycloneDX 1.5) and the licences of the packages in it, from `cargo metadata` and the
//! packages' own files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Release;
use crate::workspace::Workspace;

/// How the names of files with licences begin.
const LICENCES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// Writes both files; their paths.
pub(super) fn write(workspace: &Workspace, release: &Release<'_>) -> Result<(PathBuf, PathBuf)> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &release.target]);
    let output = cargo.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")?;
    let used = used(&metadata, "polis-app").context("the workspace has no polis-app")?;
    let mut packages: Vec<&Package> = metadata.packages.iter().filter(|package| used.contains(package.id.as_str())).collect();
    packages.sort_by_key(|package| (&package.name, &package.version));
    let bill = release.folder.join(format!("polis-{}.cdx.json", release.version));
    let text = serde_json::to_string_pretty(&bill_of(&packages, &metadata, &used, &release.version))?;
    fs::write(&bill, text + "\n")?;
    let licences = release.folder.join("THIRD-PARTY-LICENCES.txt");
    fs::write(&licences, licences_of(&packages)?)?;
    Ok((bill, licences))
}

/// The packages that a program is built of: its own and those that it depends on, without those of tests.
fn used<'a>(metadata: &'a Metadata, program: &str) -> Option<BTreeSet<&'a str>> {
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let root = metadata.packages.iter().find(|package| package.name == program && package.source.is_none())?;
    let (mut seen, mut open) = (BTreeSet::new(), vec![root.id.as_str()]);
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let edges = nodes.get(id).map(|node| node.deps.as_slice()).unwrap_or_default();
            let is_built = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
            open.extend(edges.iter().filter(is_built).map(|edge| edge.pkg.as_str()));
        }
    }
    Some(seen)
}

fn url(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

fn bill_of(packages: &[&Package], metadata: &Metadata, used: &BTreeSet<&str>, version: &str) -> Value {
    let names: BTreeMap<&str, String> = packages.iter().map(|package| (package.id.as_str(), url(package))).collect();
    let components: Vec<Value> = packages
        .iter()
        .map(|package| {
            let mut component = json!({ "type": "library", "bom-ref": url(package), "name": package.name, "version": package.version, "purl": url(package) });
            if let Some(licence) = &package.license {
                component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
            }
            if let Some(repository) = &package.repository {
                component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
            }
            component
        })
        .collect();
    let dependencies: Vec<Value> = metadata
        .resolve
        .nodes
        .iter()
        .filter(|node| used.contains(node.id.as_str()))
        .map(|node| {
            let on: BTreeSet<&String> = node.deps.iter().filter_map(|edge| names.get(edge.pkg.as_str())).collect();
            json!({ "ref": names[node.id.as_str()], "dependsOn": on })
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "polis", "version": version, "licenses": [{ "expression": "MIT OR Apache-2.0" }] } },
        "components": components,
        "dependencies": dependencies,
    })
}

/// Each text once, with the packages that come with it.
fn licences_of(packages: &[&Package]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = String::from(
        "Polis contains these packages of others. Below are the texts of their licences as they come with them.\n\n",
    );
    for package in packages.iter().filter(|package| package.source.is_some()) {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().with_context(|| format!("{name} names no licence"))?;
        let _ = writeln!(lines, "{name}: {licence}");
        for text in texts_in(package.manifest_path.parent().context("a manifest is in a folder")?)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in texts {
        let _ = write!(lines, "\n{}\n{}\n\n{}\n", "-".repeat(80), names.join(", "), text.trim());
    }
    Ok(lines)
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        file.is_file() && LICENCES.iter().any(|start| name.starts_with(start))
    });
    files.sort();
    // What is not UTF-8 is no text that a person reads.
    Ok(files.iter().filter_map(|file| fs::read_to_string(file).ok()).map(|text| text.replace("\r\n", "\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_need_is_no_part_of_the_program() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "manifest_path": "x/Cargo.toml" });
        let edge = |to: &str, kind: Value| json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] });
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": [package("polis-app"), package("used"), package("built"), package("tested")],
            "resolve": { "nodes": [
                { "id": "polis-app", "deps": [edge("used", Value::Null), edge("tested", json!("dev"))] },
                { "id": "used", "deps": [edge("built", json!("build")), edge("polis-app", json!("dev"))] },
                { "id": "built", "deps": [] }, { "id": "tested", "deps": [] },
            ] },
        }))
        .unwrap();
        let used = used(&metadata, "polis-app").unwrap();
        assert_eq!(used.iter().copied().collect::<Vec<_>>(), ["built", "polis-app", "used"]);
        let packages: Vec<&Package> = metadata.packages.iter().filter(|package| used.contains(&*package.id)).collect();
        let bill = bill_of(&packages, &metadata, &used, "1.0.0");
        assert_eq!(bill["components"][2]["purl"], "pkg:cargo/built@1.0.0");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let of_used = bill["dependencies"].as_array().unwrap().iter().find(|it| it["ref"] == "pkg:cargo/used@1.0.0").unwrap();
        assert_eq!(of_used["dependsOn"], json!(["pkg:cargo/built@1.0.0", "pkg:cargo/polis-app@1.0.0"]));
    }
}
