//! `polis verify`: looks through a data directory or a backup, and reports everything that is not as it should be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polis_domain::{ArtifactId, Event, MemoryTextId, SocietyId, Spine};
use polis_store_local::{BackupError, InspectedSociety, Inspection};
use serde_json::json;

use super::backup::{refuse_url, society};
use crate::backups;
use crate::cli::Verify;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;

/// Events that are read at once.
const PAGE: usize = 1_000;

/// Something that is not as it should be.
struct Finding {
    code: &'static str,
    message: String,
}

#[derive(Default)]
struct Report {
    societies: Vec<InspectedSociety>,
    artifacts: usize,
    memories: usize,
    findings: Vec<Finding>,
}

pub(crate) async fn verify(config: &Config, args: &Verify) -> Result<Exit, CliError> {
    refuse_url(config)?;
    let path = args.path.clone().unwrap_or_else(|| config.data.clone());
    let (path, report) = backups::blocking(move || {
        if !path.exists() {
            return Err(backups::missing(&path));
        }
        backups::refuse_odd(&path)?;
        // A directory without a log is one of backups.
        let path = match path.is_dir() && !path.join("polis.db").exists() && !path.join("DAMAGED").exists() {
            true => backups::newest(&path)?,
            false => path,
        };
        let report = check(&path)?;
        Ok::<_, CliError>((path, report))
    })
    .await??;
    let Report { societies, artifacts, memories, findings } = &report;
    if args.json {
        let found: Vec<_> = findings.iter().map(|it| json!({ "code": it.code, "message": it.message })).collect();
        let list: Vec<_> = societies.iter().map(society).collect();
        out::json(
            &json!({ "path": path, "societies": list, "artifacts": artifacts, "memories": memories, "findings": found }),
        )?;
    } else {
        for it in societies {
            let events = out::count(it.head.0 as usize, "event");
            out::line(&format!("{}: {events}, hash chain {}", it.name, it.chain))?;
        }
        let (artifacts, memories) = (out::count(*artifacts, "artifact"), out::count(*memories, "memory text"));
        out::line(&format!("{artifacts}, {memories}"))?;
        for it in findings {
            out::line(&format!("{} ({})", it.message.trim_end(), it.code))?;
        }
    }
    if findings.is_empty() {
        if !args.json {
            out::line(&format!("{} is sound", path.display()))?;
        }
        return Ok(Exit::Done);
    }
    let message =
        format!("{} in {}; docs/disaster-recovery.md says what to do", out::count(findings.len(), "problem"), path.display());
    Err(CliError::new("verify_failed", message))
}

/// Whether a backup has nothing wrong with it.
pub(super) fn is_sound(path: &Path) -> bool {
    check(path).is_ok_and(|report| report.findings.is_empty())
}

fn check(path: &Path) -> Result<Report, CliError> {
    let mut inspection = Inspection::open(path).map_err(|error| backups::about(path, error))?;
    let mut report = Report::default();
    let finding = |error: &BackupError| Finding { code: error.code(), message: error.to_string() };
    report.societies = match inspection.check_events() {
        Ok(societies) => societies,
        Err(error @ BackupError::Log(polis_ports::LogError::Full(_) | polis_ports::LogError::Failed(_))) => {
            return Err(error.into());
        }
        Err(error) => {
            report.findings.push(finding(&error));
            Vec::new()
        }
    };
    let artifacts = inspection.check_artifacts()?;
    let texts: BTreeSet<_> = inspection.memory_texts()?.into_iter().collect();
    (report.artifacts, report.memories) = (artifacts.len(), texts.len());
    let damaged = artifacts.iter().filter(|(_, is_sound)| !**is_sound);
    report.findings.extend(
        damaged.map(|(id, _)| Finding { code: "artifact_damaged", message: format!("artifact {id} is not what was stored") }),
    );
    let names: Vec<SocietyId> = report.societies.iter().map(|it| it.name.clone()).collect();
    let (mut folded, mut erased) = (Vec::new(), BTreeSet::new());
    for name in names {
        match fold(&mut inspection, &name, &mut erased) {
            Ok(spine) => folded.push((name, spine)),
            Err(error) => report.findings.push(finding(&error)),
        }
    }
    for (name, spine) in &folded {
        report.findings.extend(missing(name, spine, &artifacts, &texts, &erased));
    }
    Ok(report)
}

/// The state of a society, folded from its first event on. This also reads every event as a society does. Adds the texts of
/// memories that it has erased or replaced to `erased`.
fn fold(inspection: &mut Inspection, society: &SocietyId, erased: &mut BTreeSet<MemoryTextId>) -> Result<Spine, BackupError> {
    let mut spine = Spine::default();
    loop {
        let page = inspection.read(society, spine.seq, PAGE)?;
        if page.is_empty() {
            return Ok(spine);
        }
        for recorded in &page {
            spine.evolve(recorded);
            if matches!(recorded.event, Event::MemoryChanged { .. }) {
                erased.extend(spine.memories.removing().cloned());
            }
        }
    }
}

/// What a society refers to and what is not there. A text that any society has erased is missing on purpose: a fork, and a society
/// that was rewound, still refer to it.
fn missing(
    society: &SocietyId,
    spine: &Spine,
    artifacts: &BTreeMap<ArtifactId, bool>,
    texts: &BTreeSet<MemoryTextId>,
    erased: &BTreeSet<MemoryTextId>,
) -> Vec<Finding> {
    let of_artifact = spine.artifacts.entries().iter().map(|listed| listed.artifact.id);
    let artifacts: BTreeSet<_> = of_artifact.filter(|id| !artifacts.contains_key(id)).collect();
    let artifacts = artifacts.into_iter().map(|id| Finding {
        code: "unknown_artifact",
        message: format!("artifact {id}, which `{society}` refers to, is missing"),
    });
    let lost = spine.memories.all().filter(|memory| !texts.contains(&memory.text) && !erased.contains(&memory.text));
    let memories = lost.map(|memory| Finding {
        code: "unknown_memory",
        message: format!("the text of memory {}, which `{society}` refers to, is missing", memory.id),
    });
    artifacts.chain(memories).collect()
}
