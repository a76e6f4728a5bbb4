//! Phases: what they are called, where they lead, and that a sub-thread is started in two steps.

use super::naming::{self, Fault};
use super::source::{Kind, Part};
use super::tree::{File, Folder, Tree};
use super::{Findings, Rule};

const COMPLETED: &str = "completed";
const PREPARE: &str = "prepare_subthread";
const EXECUTE: &str = "execute_subthread";

/// The library's handlers for the two.
const PREPARES: &str = "PrepareSubThread";
const EXECUTES: &str = "ExecuteSubThread";

/// A phase that somebody is in or goes to.
struct Phase<'a> {
    name: Option<&'a str>,
    file: &'a File,
    line: usize,
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (at, folder) in tree.folders.iter().enumerate() {
        let registered = registered(folder);
        let targets = targets(folder);
        names(tree, &registered, findings);
        if !folder.is_readable() {
            continue;
        }
        ways(&registered, &targets, findings);
        if folder.is_sub_thread() {
            end(folder, &registered, &targets, findings);
        } else {
            two_steps(tree, at, &registered, findings);
        }
    }
}

fn registered(folder: &Folder) -> Vec<Phase<'_>> {
    let all = folder.files.iter().flat_map(|file| file.source.registered.iter().map(move |registered| (file, registered)));
    all.map(|(file, registered)| Phase { name: folder.resolve(&registered.phase), file, line: registered.line }).collect()
}

fn targets(folder: &Folder) -> Vec<Phase<'_>> {
    let all = folder.files.iter().flat_map(|file| {
        let next = file.source.registered.iter().filter_map(|registered| Some((registered.next.as_ref()?, registered.line)));
        let suggested = file.source.suggested.iter().map(|(text, line)| (text, *line));
        next.chain(suggested).map(move |(text, line)| Phase { name: folder.resolve(text), file, line })
    });
    all.collect()
}

fn names(tree: &Tree, registered: &[Phase<'_>], findings: &mut Findings) {
    for phase in registered {
        let Some(name) = phase.name else { continue };
        if naming::means_completed(name) {
            let wrong = format!("`{name}` is usually called `{COMPLETED}`");
            findings.add(
                &phase.file.path,
                phase.line,
                Rule::PhaseEnd,
                wrong,
                format!("call the last phase `{COMPLETED}`; it needs no handler"),
            );
            continue;
        }
        let (rule, wrong, remedy) = match naming::judge_phase(name, &tree.abbreviations) {
            Some(Fault::Style { remedy }) => (Rule::PhaseName, format!("the phase `{name}` is not in snake_case"), remedy),
            Some(Fault::Empty { wrong, remedy }) => (Rule::PhaseName, wrong, remedy),
            Some(Fault::Short { wrong, remedy }) => (Rule::Abbreviation, format!("`{name}`: {wrong}"), remedy),
            None => continue,
        };
        findings.add(&phase.file.path, phase.line, rule, wrong, remedy);
    }
}

/// Nobody is sent to a phase that does not exist.
fn ways(registered: &[Phase<'_>], targets: &[Phase<'_>], findings: &mut Findings) {
    let all_known = !registered.is_empty() && registered.iter().all(|phase| phase.name.is_some());
    for target in targets {
        let Some(name) = target.name.filter(|name| *name != COMPLETED) else { continue };
        if registered.iter().any(|phase| phase.name == Some(name)) {
            continue;
        }
        if naming::means_completed(name) {
            let wrong = format!("`{name}` is usually called `{COMPLETED}`");
            findings.add(&target.file.path, target.line, Rule::PhaseEnd, wrong, format!("lead to `{COMPLETED}`"));
        } else if all_known {
            let wrong = format!("this leads to `{name}`, which has no handler");
            findings.add(
                &target.file.path,
                target.line,
                Rule::PhaseUnknown,
                wrong,
                format!("register `{name}`, or lead to `{COMPLETED}`"),
            );
        }
    }
}

/// A sub-thread comes to an end.
fn end(folder: &Folder, registered: &[Phase<'_>], targets: &[Phase<'_>], findings: &mut Findings) {
    let may_end = folder.files.iter().any(|file| file.source.decides)
        || targets.iter().any(|target| target.name.is_none_or(|name| name == COMPLETED || naming::means_completed(name)));
    if let Some(last) = registered.last().filter(|_| !may_end) {
        let wrong = format!("no phase of `{}` leads to `{COMPLETED}`, so it never ends", folder.name);
        findings.add(&last.file.path, last.line, Rule::PhaseEnd, wrong, format!("let its last phase lead to `{COMPLETED}`"));
    }
}

/// An agent that starts a sub-thread shows a place for it first (the documents' 3.4.1): both phases, or neither.
fn two_steps(tree: &Tree, at: usize, registered: &[Phase<'_>], findings: &mut Findings) {
    let folder = &tree.folders[at];
    // A phase that only the running program knows may be the one that is meant: the library's handler in it will do.
    let all_known = !registered.is_empty() && registered.iter().all(|phase| phase.name.is_some());
    let find = |phase: &str, handler: &str| {
        let by_name = registered.iter().find(|found| found.name == Some(phase)).map(|found| (found.file, found.line));
        let files = || folder.files.iter().filter(|file| file.kind == Some(Kind::Agent));
        let mut mentioned = files().flat_map(|file| file.source.mentioned.iter().map(move |spot| (file, spot)));
        let mut by_handler = || mentioned.find(|(_, spot)| spot.name == handler).map(|(file, spot)| (file, spot.line));
        by_name.or_else(|| if all_known { None } else { by_handler() })
    };
    let ((file, line), absent) = match (find(PREPARE, PREPARES), find(EXECUTE, EXECUTES)) {
        (Some(present), None) => (present, EXECUTE),
        (None, Some(present)) => (present, PREPARE),
        (Some(_), Some(_)) => return,
        (None, None) => return neither(tree, at, registered, findings),
    };
    let wrong = format!("`{absent}` is not registered: a sub-thread is started in two steps, `{PREPARE}` and `{EXECUTE}`");
    findings.add(&file.path, line, Rule::TwoStepStart, wrong, format!("register a handler for `{absent}`"));
}

/// An agent that names the agents of its sub-threads starts them, and must do it in two steps; unless it declares them for
/// handlers that show their own places.
fn neither(tree: &Tree, at: usize, registered: &[Phase<'_>], findings: &mut Findings) {
    if registered.is_empty() || registered.iter().any(|phase| phase.name.is_none()) {
        return;
    }
    let folder = &tree.folders[at];
    let children = tree.folders.iter().filter(|child| child.parent == Some(at));
    let sub_threads: Vec<&str> = children
        .flat_map(Folder::declared)
        .filter(|(_, found)| found.part == Part::SubThreadAgent)
        .map(|(_, found)| found.spot.name.as_str())
        .collect();
    let Some(file) = folder.file(Kind::Agent) else { return };
    if file.source.mentioned.iter().any(|spot| spot.name == "SubThreads") {
        return;
    }
    if let Some(spot) =
        file.source.mentioned.iter().filter(|spot| sub_threads.contains(&spot.name.as_str())).min_by_key(|spot| spot.line)
    {
        let wrong = format!("`{}` is started without `{PREPARE}` and `{EXECUTE}`", spot.name);
        findings.add(&file.path, spot.line, Rule::TwoStepStart, wrong, "register a handler for each of the two phases");
    }
}
