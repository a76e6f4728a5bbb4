//! `polis verify`: looks through a data directory or a backup, and reports everything that is not as it should be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polis_domain::{ArtifactId, Erasure, Event, MemoryTextId, Recorded, Seq, SocietyId, Spine};
use polis_store_local::{BackupError, InspectedSociety, Inspection};
use serde_json::json;

use super::backup::{refuse_url, society};
use crate::backups;
use crate::cli::Verify;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::store::needs_local_log;

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
    if args.path.is_none() {
        needs_local_log(
            config,
            "`polis replay` reads all of a society there and checks each event against its checksum; name a data directory or a \
             backup to verify that",
        )?;
    }
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
            let erased = match it.redacted.len() {
                0 => String::new(),
                count => format!(" ({count} without their content, which was erased)"),
            };
            out::line(&format!("{}: {events}{erased}, hash chain {}", it.name, it.chain))?;
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
    let mut covered = Covered::default();
    for name in names {
        match fold(&mut inspection, &name, &mut erased).and_then(|spine| covered.add(&mut inspection, &name).map(|()| spine)) {
            Ok(spine) => folded.push((name, spine)),
            Err(error) => report.findings.push(finding(&error)),
        }
    }
    for (name, spine) in &folded {
        report.findings.extend(missing(name, spine, &artifacts, &texts, &erased));
    }
    report.findings.extend(report.societies.iter().flat_map(|society| covered.faults(society)));
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

/// The events that erasures cover, by the societies that they belong to, with whether nothing is left of their content.
#[derive(Default)]
struct Covered(BTreeMap<SocietyId, BTreeMap<Seq, bool>>);

impl Covered {
    /// Adds those that the erasures in the log of a society cover, also in what it shares with others.
    fn add(&mut self, inspection: &mut Inspection, society: &SocietyId) -> Result<(), BackupError> {
        let mut conversations = Vec::new();
        let mut through = Seq(0);
        each(inspection, society, |_, recorded| {
            if let Event::ConversationErased { agent, .. } = &recorded.event {
                conversations.push(agent.clone());
                through = recorded.seq;
            }
        })?;
        if conversations.is_empty() {
            return Ok(());
        }
        let mut erasure = Erasure::of(conversations);
        each(inspection, society, |inspection, recorded| {
            if erasure.covers(recorded)
                && recorded.seq <= through
                && let Some(owner) = inspection.owner(society, recorded.seq)
            {
                let is_empty = recorded.event.redacted() == recorded.event;
                self.0.entry(owner.clone()).or_default().insert(recorded.seq, is_empty);
            }
        })
    }

    /// The redacted events of a society that no erasure covers, or that have content all the same.
    fn faults(&self, society: &InspectedSociety) -> Vec<Finding> {
        let covered = self.0.get(&society.name);
        let of = |seq: &Seq| covered.and_then(|covered| covered.get(seq)).copied();
        let fault = |what: &str, seq: Seq| {
            let message = format!("event {seq} of `{}` is damaged: its content was erased, and {what}", society.name);
            Finding { code: "data_damaged", message }
        };
        let faults = society.redacted.iter().filter_map(|seq| match of(seq) {
            Some(true) => None,
            Some(false) => Some(fault("there is another in its place", *seq)),
            None => Some(fault("no event of the log says so", *seq)),
        });
        faults.collect()
    }
}

/// Passes each event of a society to `take`.
fn each(
    inspection: &mut Inspection,
    society: &SocietyId,
    mut take: impl FnMut(&Inspection, &Recorded),
) -> Result<(), BackupError> {
    let mut after = Seq(0);
    loop {
        let page = inspection.read(society, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.iter().for_each(|recorded| take(inspection, recorded));
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
