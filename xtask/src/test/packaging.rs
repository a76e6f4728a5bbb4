//! The files in `packaging/`: a Debian package is made of the program that the tests built, installed into a folder and removed
//! again; units are verified and rated by systemd, and the manifests of Kubernetes by its schemas; the Dockerfile and the compose files
//! are only read, because an image needs a daemon.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Done, TempDir, packages, remove, suite, tools};
use crate::deb::{self, output};
use crate::release;
use crate::workspace::Workspace;

/// How exposed the service may be by the rating of systemd, in tenths: 100 is no protection at all.
const MAX_EXPOSURE: u32 = 30;

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let read = |file: &str| {
        fs::read_to_string(workspace.root.join("packaging").join(file)).with_context(|| format!("cannot read packaging/{file}"))
    };
    let mut wrong = faults_of_image(&read("Dockerfile")?, |path| workspace.root.join(path).exists());
    wrong.extend(lacks("the compose file", &read("compose.yaml")?, COMPOSE));
    wrong.extend(lacks("the compose file of nodes", &read("cluster.compose.yaml")?, CLUSTER));
    wrong.extend(lacks("the manifest", &read("kubernetes.yaml")?, KUBERNETES));
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    println!("packaging: Dockerfile and compose files are read, no image is built");
    balancer(workspace)?;
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return Ok(Done::Skipped("there is no dpkg-deb; the Dockerfile is read".to_owned()));
    }
    suite::build(workspace)?;
    let folder = TempDir(workspace.temp_dir().join("packaging"));
    remove(&folder.0);
    fs::create_dir_all(&folder.0)?;
    manifests(workspace, &folder.0)?;
    package(workspace, &folder.0)?;
    release(workspace, &folder.0)?;
    match Command::new("systemd-analyze").arg("--version").output() {
        Ok(_) => units(&folder.0.join("stage")).map(|()| Done::Passed),
        Err(_) => Ok(Done::Skipped("there is no systemd-analyze; everything else has passed".to_owned())),
    }
}

/// Makes the package, looks at its content, installs it into a folder, runs it there, and removes it.
fn package(workspace: &Workspace, folder: &Path) -> Result<()> {
    let deb = deb::make(workspace, &workspace.target_dir.join("debug/polis"), folder, "none")?;
    let content = output(Command::new("dpkg-deb").arg("--contents").arg(&deb))?;
    for wanted in [
        "-rwxr-xr-x root/root",
        "./usr/bin/polis\n",
        "./usr/lib/systemd/system/polis.service\n",
        "./usr/share/bash-completion/completions/polis\n",
        "./usr/share/zsh/vendor-completions/_polis\n",
        "./usr/share/man/man1/polis-run.1.gz\n",
    ] {
        ensure!(content.contains(wanted), "the package has no `{}`:\n{content}", wanted.trim());
    }
    let root = folder.join("root");
    let database = root.join("var/lib/dpkg");
    for below in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(below))?;
    }
    fs::write(database.join("status"), "")?;
    let dpkg = || {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg.args(["--force-not-root", "--force-depends", "--force-script-chrootless"]).args(["--log=/dev/null"]);
        dpkg
    };
    output(dpkg().arg("--install").arg(&deb))?;
    let said = output(Command::new(root.join("usr/bin/polis")).arg("--version"))?;
    ensure!(said.starts_with("polis "), "the installed program says `{said}`");
    output(dpkg().args(["--remove", "polis"]))?;
    ensure!(!root.join("usr/bin/polis").exists(), "the program is still there after the package was removed");
    println!("packaging: {} installed, run and removed", deb.file_name().unwrap_or_default().display());
    Ok(())
}

/// Makes everything that a release consists of, of the program that the tests built, without its symbols; each part is tried.
fn release(workspace: &Workspace, folder: &Path) -> Result<()> {
    let program = folder.join("polis");
    let built = workspace.target_dir.join("debug/polis");
    if output(Command::new("strip").arg("-o").arg(&program).arg(&built)).is_err() {
        fs::copy(&built, &program)?;
    }
    for (file, how) in release::make(workspace, &program, &folder.join("release"), "none")? {
        println!("packaging: {}: {how}", file.file_name().unwrap_or_default().display());
    }
    Ok(())
}

/// Has systemd verify the units, and rate the protection of the service.
fn units(root: &Path) -> Result<()> {
    // What the units of a whole system have beside ours.
    for target in ["multi-user", "sockets", "network-online", "sysinit", "basic", "shutdown", "network"] {
        fs::write(root.join(format!("usr/lib/systemd/system/{target}.target")), format!("[Unit]\nDescription={target}\n"))?;
    }
    let verify = Command::new("systemd-analyze")
        .arg(format!("--root={}", root.display()))
        .args(["--man=no", "verify", "polis.service", "polis.socket"])
        .output()?;
    let said = String::from_utf8_lossy(&verify.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("polis.")).collect();
    ensure!(ours.is_empty(), "systemd-analyze verify: {}", ours.join("\n"));
    let mut rate = Command::new("systemd-analyze");
    rate.arg(format!("--root={}", root.display())).args(["security", "--offline=true", "--no-pager"]);
    let rating = output(rate.arg(format!("--threshold={MAX_EXPOSURE}")).arg("polis.service"))?;
    println!("packaging: {}", rating.lines().rfind(|line| line.contains("exposure")).unwrap_or_default().trim());
    Ok(())
}

/// What is wrong with a Dockerfile.
fn faults_of_image(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let instructions: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
    let all = |name: &'static str| instructions.iter().filter(move |(it, _)| *it == name).map(|(_, rest)| *rest);
    let mut wrong = Vec::new();
    for image in all("FROM") {
        if !image.split(' ').next().is_some_and(|image| image.contains(':') && !image.ends_with(":latest")) {
            wrong.push(format!("the image `{image}` has no version"));
        }
    }
    let last_stage = instructions.iter().rposition(|(name, _)| *name == "FROM").unwrap_or_default();
    let has = |name: &str| instructions[last_stage..].iter().any(|(it, _)| *it == name);
    for name in ["USER", "HEALTHCHECK", "ENTRYPOINT", "STOPSIGNAL"] {
        if !has(name) {
            wrong.push(format!("the image has no {name}"));
        }
    }
    if all("USER").next_back().is_some_and(|user| user.starts_with("root") || user.starts_with('0')) {
        wrong.push("the image runs as root".to_owned());
    }
    for sources in all("COPY").filter(|rest| !rest.starts_with("--from=")) {
        let mut paths: Vec<&str> = sources.split_whitespace().filter(|word| !word.starts_with("--")).collect();
        paths.pop();
        wrong.extend(paths.into_iter().filter(|path| !exists(path)).map(|path| format!("`{path}` is copied but is not there")));
    }
    wrong
}

/// What a compose file must have, and what it does without it.
const COMPOSE: &[(&str, &str)] = &[
    ("dockerfile: packaging/Dockerfile", "builds another image"),
    ("\"127.0.0.1:3000:3000\"", "publishes the address on more than this machine"),
    ("read_only: true", "lets the program write its own files"),
    ("no-new-privileges:true", "lets programs gain privileges"),
    ("- data:/data", "keeps no data"),
    ("stop_grace_period: 45s", "leaves no time for a stop"),
];

/// The same for the compose file of several nodes.
const CLUSTER: &[(&str, &str)] = &[
    ("dockerfile: packaging/Dockerfile", "builds another image"),
    ("\"127.0.0.1:3000:3000\"", "publishes the address on more than this machine"),
    ("read_only: true", "lets the program write its own files"),
    ("no-new-privileges:true", "lets programs gain privileges"),
    ("- db:/var/lib/postgresql/data", "keeps no data"),
    ("POLIS_NODE_ADDRESS=", "does not say where a node is reached"),
    ("stop_grace_period: 60s", "leaves no time to hand societies over"),
];

/// What the schemas of Kubernetes do not ask for.
const KUBERNETES: &[(&str, &str)] = &[
    ("readinessProbe:", "sends requests to nodes that do not serve"),
    ("path: /api/health", "asks nobody for the health"),
    ("preStop:", "stops a node while requests are sent to it"),
    ("terminationGracePeriodSeconds: 60", "leaves no time to hand societies over"),
    ("kind: PodDisruptionBudget", "lets all nodes be drained at once"),
    ("runAsNonRoot: true", "lets the program run as root"),
    ("readOnlyRootFilesystem: true", "lets the program write its own files"),
];

/// What a file does because it lacks one of these lines.
fn lacks(file: &str, text: &str, wanted: &[(&str, &str)]) -> Vec<String> {
    wanted.iter().filter(|(line, _)| !text.contains(line)).map(|(_, wrong)| format!("{file} {wrong}")).collect()
}

/// Has the load balancer check its configuration.
fn balancer(workspace: &Workspace) -> Result<()> {
    let Some(haproxy) = tools::find("haproxy") else {
        println!("packaging: the configuration of the load balancer is not checked: there is no haproxy");
        return Ok(());
    };
    output(Command::new(haproxy).args(["-c", "-f"]).arg(workspace.root.join("packaging/haproxy.cfg")))?;
    println!("packaging: haproxy accepts its configuration");
    Ok(())
}

/// Checks the manifests against the schemas of the oldest Kubernetes that has all that they use, and of a newer one.
fn manifests(workspace: &Workspace, folder: &Path) -> Result<()> {
    let site = folder.join("kubernetes");
    fs::create_dir_all(&site)?;
    if let Err(why) = packages::pip(&site, &["kubernetes-validate==1.37.0"], &[]) {
        println!("packaging: the manifests of Kubernetes are not checked: {why}");
        return Ok(());
    }
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", &site).args(["-c", VALIDATE]).arg(workspace.root.join("packaging/kubernetes.yaml"));
    let kinds = output(&mut python)?;
    remove(&site);
    println!("packaging: valid for Kubernetes 1.30 and 1.37: {}", kinds.split_whitespace().collect::<Vec<_>>().join(", "));
    Ok(())
}

/// Validates each document of a file strictly, and prints its kind.
const VALIDATE: &str = "
import sys, yaml, kubernetes_validate
for manifest in yaml.safe_load_all(open(sys.argv[1])):
    for version in ('1.30', '1.37'):
        kubernetes_validate.validate(manifest, version, strict=True)
    print(manifest['kind'])
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_image_is_named() {
        let good = "# no\nFROM a:1 AS b\nCOPY . .\nFROM c:2-slim\nRUN x \\\n    && y\nUSER 1:1\nHEALTHCHECK CMD [\"x\"]\nSTOPSIGNAL SIGTERM\nENTRYPOINT [\"x\"]\n";
        let faults = |text: &str| faults_of_image(text, |path| path == ".");
        assert_eq!(faults(good), Vec::<String>::new());
        for (from, to, wrong) in [
            ("FROM c:2-slim", "FROM c", "the image `c` has no version"),
            ("FROM c:2-slim", "FROM c:latest", "the image `c:latest` has no version"),
            ("USER 1:1\n", "", "the image has no USER"),
            ("USER 1:1", "USER root", "the image runs as root"),
            ("HEALTHCHECK CMD [\"x\"]\n", "", "the image has no HEALTHCHECK"),
            ("COPY . .", "COPY gone .", "`gone` is copied but is not there"),
        ] {
            assert_eq!(faults(&good.replace(from, to)), [wrong]);
        }
    }

    #[test]
    fn what_is_wrong_with_a_compose_file_is_named() {
        let good = include_str!("../../../packaging/compose.yaml");
        assert_eq!(lacks("the compose file", good, COMPOSE), Vec::<String>::new());
        let open = good.replace("127.0.0.1:3000:3000", "3000:3000");
        assert_eq!(
            lacks("the compose file", &open, COMPOSE),
            ["the compose file publishes the address on more than this machine"]
        );
    }
}
