//! A sound agent with two levels of sub-threads, and what is said of it after each change for the worse.

use std::fs;
use std::path::Path;

use super::{Rule, check_folder};

const AGENT: &str = r#"use polis::{Agent, ExecuteSubThread, Phases, PrepareSubThread};
pub struct BookPublishingAgent;
impl Agent for BookPublishingAgent {
    fn phases(&self) -> Phases {
        Phases::new()
            .on("order_intake", OrderIntakeHandler)
            .on("prepare_subthread", PrepareSubThread::new()).then("execute_subthread")
            .on(EXECUTE, ExecuteSubThread::new(ProofReadingAgent)).then("order_intake")
    }
}
const EXECUTE: &str = "execute_subthread";
"#;
const HANDLERS: &str = "use polis::{StateHandler, Turn};
/// StateHandler for HelperHandler
pub struct OrderIntakeHandler;
impl StateHandler for OrderIntakeHandler {
    async fn handle(&self, turn: &mut Turn) { turn.suggest_phase(\"prepare_subthread\"); }
}
#[cfg(test)]
mod tests { impl polis::StateHandler for Helper {} }
";
const SUB_AGENT: &str = r#"use polis::*;
pub struct ProofReadingAgent;
impl SubThreadAgent for ProofReadingAgent {
    fn units(&self) -> Units { Units::new()
        .on("initial_phase", SpellingCheckUnit).with_handler(Said).then("text_correction")
        .on("text_correction", TextCorrectionUnit::new(FactCheckingAgent)).with_handler(Said).then("completed")
    }
}
"#;
const SUB_UNITS: &str = "use polis::InteractionUnit;\nimpl InteractionUnit for SpellingCheckUnit {}\nimpl InteractionUnit for TextCorrectionUnit {}\n";
const SUB_HANDLERS: &str = "use polis::StateHandler;\nimpl StateHandler for SpellingCheckHandler {}\n";
const NESTED_AGENT: &str = r#"use polis::*;
impl SubThreadAgent for FactCheckingAgent {
    fn units(&self) -> Units { Units::new().on("claim_verification", ClaimVerificationUnit).then("completed") }
}
"#;
const NESTED_UNITS: &str = "use polis::InteractionUnit;\nimpl InteractionUnit for ClaimVerificationUnit {}\n";
const NESTED_HANDLERS: &str = "use polis::StateHandler;\nimpl StateHandler for ClaimVerificationHandler {}\n";
const UNRELATED: &str =
    "pub struct Helper;\nimpl Agent for Helper {}\ntrait BaseAgent {}\nconst USER_AGENT: &str = \"polis\";\n";

const TOP: &str = "src/book_publishing/";
const SUB: &str = "src/book_publishing/proof_reading/";
const NESTED: &str = "src/book_publishing/proof_reading/fact_checking/";

fn sound() -> Vec<(String, String)> {
    let files = [
        ("Cargo.toml".to_owned(), ""),
        ("src/lib.rs".to_owned(), "pub mod book_publishing;"),
        ("src/user_agent.rs".to_owned(), UNRELATED),
        ("src/net/user_agent.rs".to_owned(), UNRELATED),
        ("tests/fakes.rs".to_owned(), "use polis::Agent;\nimpl Agent for Fake {}"),
        ("target/old_agent.rs".to_owned(), "use polis::Agent;\nimpl Agent for Old {}"),
        (format!("{TOP}mod.rs"), "mod book_publishing_agent;"),
        (format!("{TOP}book_publishing_agent.rs"), AGENT),
        (format!("{TOP}book_publishing_state_handlers.rs"), HANDLERS),
        (format!("{TOP}formats/csv.rs"), "pub struct Csv;"),
        (format!("{TOP}prompt/order_intake_system_prompt.md"), "Take the order."),
        (format!("{TOP}prompt/claim_verification_system_prompt.md"), "Verify."),
        (format!("{TOP}prompt/README.md"), "What is here."),
        (format!("{SUB}proof_reading_agent.rs"), SUB_AGENT),
        (format!("{SUB}proof_reading_interaction_units.rs"), SUB_UNITS),
        (format!("{SUB}proof_reading_state_handlers.rs"), SUB_HANDLERS),
        (format!("{NESTED}fact_checking_agent.rs"), NESTED_AGENT),
        (format!("{NESTED}fact_checking_interaction_units.rs"), NESTED_UNITS),
        (format!("{NESTED}fact_checking_state_handlers.rs"), NESTED_HANDLERS),
    ];
    files.map(|(path, text)| (path, text.to_owned())).into()
}

/// Does things to the sound agent and compares what is found: rule, file from `book_publishing` on, line.
fn check(change: impl FnOnce(&mut Files), expected: &[(Rule, &str, usize)]) {
    let mut files = Files(sound());
    change(&mut files);
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files.0 {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let report = check_folder(home.path()).unwrap();
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|found| (found.rule, found.file.strip_prefix(TOP).unwrap_or(&found.file), found.line))
        .collect();
    assert_eq!(found, expected, "{:#?}", report.findings);
    assert!(report.findings.iter().all(|found| !found.wrong.is_empty() && !found.remedy.is_empty()));
}

struct Files(Vec<(String, String)>);

impl Files {
    /// Every path that begins so begins otherwise.
    fn moved(&mut self, from: &str, to: &str) {
        let (from, to) = (format!("{TOP}{from}"), format!("{TOP}{to}").replace(&format!("{TOP}../"), "src/"));
        assert!(self.0.iter().any(|(path, _)| path.starts_with(&from)), "{from}");
        for (path, _) in &mut self.0 {
            if let Some(rest) = path.strip_prefix(&from) {
                *path = format!("{to}{rest}");
            }
        }
    }

    fn removed(&mut self, path: &str) {
        let before = self.0.len();
        self.0.retain(|(found, _)| *found != format!("{TOP}{path}"));
        assert_eq!(self.0.len() + 1, before, "{path}");
    }

    fn added(&mut self, path: &str, text: &str) {
        self.0.push((
            format!("{TOP}{path}").replace(&format!("{TOP}../../"), "").replace(&format!("{TOP}../"), "src/"),
            text.to_owned(),
        ));
    }

    fn replaced(&mut self, path: &str, from: &str, to: &str) {
        let (_, text) = self.0.iter_mut().find(|(found, _)| *found == format!("{TOP}{path}")).unwrap();
        assert!(text.contains(from), "{from}");
        *text = text.replace(from, to);
    }
}

const TOP_AGENT: &str = "book_publishing_agent.rs";
const TOP_HANDLERS: &str = "book_publishing_state_handlers.rs";
const SUB_FILE: &str = "proof_reading/proof_reading_agent.rs";
const SUB_UNITS_FILE: &str = "proof_reading/proof_reading_interaction_units.rs";
const NESTED_FILE: &str = "proof_reading/fact_checking/fact_checking_agent.rs";

#[test]
fn a_sound_agent_passes_at_any_depth_and_unrelated_files_are_left_alone() {
    check(|_| {}, &[]);
    check(
        |files| {
            let mut folder = "proof_reading/fact_checking".to_owned();
            for word in ["source", "library", "archive", "message", "diary"] {
                folder = format!("{folder}/{word}_search");
                for (ending, text) in
                    [("agent", "SubThreadAgent"), ("interaction_units", "InteractionUnit"), ("state_handlers", "StateHandler")]
                {
                    let kind = ["Agent", "Unit", "Handler"].into_iter().find(|kind| text.ends_with(kind)).unwrap();
                    let own = format!("{}Search{kind}", super::naming::camel(word));
                    files.added(
                        &format!("{folder}/{word}_search_{ending}.rs"),
                        &format!("use polis::{text};\nimpl {text} for {own} {{}}"),
                    );
                }
            }
        },
        &[],
    );
}

#[test]
fn a_folder_without_agents_has_nothing_to_report() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("user_agent.rs"), UNRELATED).unwrap();
    fs::write(home.path().join("broken_agent.rs"), "fn (").unwrap();
    let report = check_folder(home.path()).unwrap();
    assert_eq!((report.findings, report.agents), (vec![], 0));
    assert!(check_folder(Path::new("there/is/no/such/folder")).is_err());
}

#[test]
fn each_sub_thread_has_its_three_files_and_an_agent_its_handlers() {
    check(|files| files.removed(SUB_UNITS_FILE), &[(Rule::MissingPart, SUB_FILE, 1)]);
    check(|files| files.removed(SUB_FILE), &[(Rule::MissingPart, SUB_UNITS_FILE, 1)]);
    check(|files| files.removed(TOP_HANDLERS), &[(Rule::MissingPart, TOP_AGENT, 1)]);
}

#[test]
fn folders_are_in_snake_case_and_files_begin_with_their_names() {
    check(
        |files| files.moved("proof_reading/", "ProofReading/"),
        &[(Rule::NamingStyle, "ProofReading/proof_reading_agent.rs", 1)],
    );
    check(
        |files| files.moved("proof_reading/", "proof-reading/"),
        &[(Rule::NamingStyle, "proof-reading/proof_reading_agent.rs", 1)],
    );
    check(
        |files| files.moved(TOP_HANDLERS, "BookPublishingStateHandlers.rs"),
        &[(Rule::NamingStyle, "BookPublishingStateHandlers.rs", 1)],
    );
    check(
        |files| files.moved(SUB_UNITS_FILE, "proof_reading/spelling_interaction_units.rs"),
        &[(Rule::FolderName, "proof_reading/spelling_interaction_units.rs", 1)],
    );
    check(|files| files.moved(TOP_HANDLERS, "state_handlers.rs"), &[(Rule::FolderName, "state_handlers.rs", 1)]);
    check(
        |files| files.moved("proof_reading/fact_checking/fact_checking_state", "fact_checking_state"),
        &[(Rule::FolderName, "fact_checking_state_handlers.rs", 1), (Rule::MissingPart, NESTED_FILE, 1)],
    );
}

#[test]
fn folders_are_as_deep_as_the_sub_threads() {
    check(
        |files| files.moved("proof_reading/fact_checking/", "proof_reading/more/fact_checking/"),
        &[(Rule::FolderDepth, "proof_reading/more/fact_checking/fact_checking_agent.rs", 1)],
    );
    check(
        |files| files.moved("proof_reading/fact_checking/", "fact_checking/"),
        &[(Rule::FolderDepth, "fact_checking/fact_checking_agent.rs", 2)],
    );
    check(
        |files| files.moved("proof_reading/", "../proof_reading/"),
        &[
            (Rule::PromptPhase, "prompt/claim_verification_system_prompt.md", 1),
            (Rule::FolderDepth, "src/proof_reading/proof_reading_agent.rs", 3),
        ],
    );
    check(|files| files.replaced(NESTED_FILE, "SubThreadAgent", "Agent"), &[(Rule::FolderDepth, NESTED_FILE, 2)]);
}

#[test]
fn handlers_of_different_levels_are_never_in_one_file() {
    check(
        |files| {
            files.replaced(SUB_FILE, "SpellingCheckUnit)", "SpellingCheckUnit::new(SpellingCheckHandler))");
            files.removed("proof_reading/proof_reading_state_handlers.rs");
            files.added("proof_reading/proof_reading_state_handlers.rs", "use polis::StateHandler;\n");
            files.replaced(TOP_HANDLERS, "#[cfg(test)]", "impl StateHandler for SpellingCheckHandler {}\n#[cfg(test)]");
        },
        &[(Rule::MixedLevels, TOP_HANDLERS, 7)],
    );
}

#[test]
fn each_kind_of_type_is_in_its_own_file_with_its_own_ending() {
    check(
        |files| {
            files.replaced(TOP_AGENT, "const EXECUTE", "impl polis::StateHandler for ProofDeliveryHandler {}\nconst EXECUTE")
        },
        &[(Rule::FileOfPart, TOP_AGENT, 11)],
    );
    check(
        |files| files.added("../main.rs", "use polis::Agent;\nstruct X;\nimpl Agent for OrderTracking {}"),
        &[(Rule::FileOfPart, "src/main.rs", 3), (Rule::TypeName, "src/main.rs", 3)],
    );
    check(|files| files.replaced(TOP_HANDLERS, "OrderIntakeHandler {", "OrderIntake {"), &[(Rule::TypeName, TOP_HANDLERS, 4)]);
    check(|files| files.replaced(SUB_UNITS_FILE, "SpellingCheckUnit", "SpellingCheck"), &[(Rule::TypeName, SUB_UNITS_FILE, 2)]);
    check(
        |files| files.replaced(TOP_AGENT, "for BookPublishingAgent", "for BookPrintingAgent"),
        &[(Rule::TypeName, TOP_AGENT, 3)],
    );
    check(
        |files| files.replaced(TOP_AGENT, "const EXECUTE", "trait OwnBaseAgent {}\nconst EXECUTE"),
        &[(Rule::OwnBase, TOP_AGENT, 11)],
    );
}

#[test]
fn names_say_what_is_done_in_whole_words_and_one_style() {
    for (name, rule) in [
        ("ProcessingUnit", Rule::BusinessName),
        ("SpellingHelperUnit", Rule::BusinessName),
        ("SubThreadUnit", Rule::BusinessName),
        ("MsgSpellingUnit", Rule::Abbreviation),
        ("Spelling_CheckUnit", Rule::NamingStyle),
    ] {
        check(|files| files.replaced(SUB_UNITS_FILE, "SpellingCheckUnit", name), &[(rule, SUB_UNITS_FILE, 2)]);
    }
    check(
        |files| {
            files.moved(TOP_AGENT, "helper_agent.rs");
            files.moved(TOP_HANDLERS, "helper_state_handlers.rs");
            files.moved("", "../helper/");
            for (path, text) in &mut files.0 {
                *text = text.replace("BookPublishingAgent", "HelperAgent");
                assert!(!path.contains("book_publishing"), "{path}");
            }
        },
        &[(Rule::BusinessName, "src/helper/helper_agent.rs", 3)],
    );
    let abbreviations = |files: &mut Files| files.added("../../README.md", "# Abbreviations\n- sps: spelling\n");
    let short = |files: &mut Files| files.replaced(SUB_UNITS_FILE, "TextCorrectionUnit", "SpsCorrectionUnit");
    check(short, &[(Rule::Abbreviation, SUB_UNITS_FILE, 3)]);
    // Defined now, but the handler beside it writes it out.
    check(
        |files| (abbreviations(files), short(files)).1,
        &[(Rule::Abbreviation, SUB_UNITS_FILE, 2), (Rule::Abbreviation, "proof_reading/proof_reading_state_handlers.rs", 2)],
    );
}

#[test]
fn phases_are_named_well_and_lead_to_completed() {
    let rename = |from: &'static str, to: &'static str| move |files: &mut Files| files.replaced(SUB_FILE, from, to);
    check(rename("text_correction", "textCorrection"), &[(Rule::PhaseName, SUB_FILE, 6)]);
    check(rename("text_correction", "correction"), &[(Rule::PhaseName, SUB_FILE, 6)]);
    check(rename("text_correction", "second_phase"), &[(Rule::PhaseName, SUB_FILE, 6)]);
    check(rename("initial_phase", "start"), &[(Rule::PhaseName, SUB_FILE, 5)]);
    check(rename("\"completed\"", "\"done\""), &[(Rule::PhaseEnd, SUB_FILE, 6)]);
    check(rename(".then(\"completed\")", ""), &[(Rule::PhaseEnd, SUB_FILE, 6)]);
    check(rename(".then(\"text_correction\")", ".then(\"text_corection\")"), &[(Rule::PhaseUnknown, SUB_FILE, 5)]);
    check(rename(".then(\"completed\")", ".then(next_of(self))"), &[]);
    check(
        |files| files.replaced(TOP_HANDLERS, "suggest_phase(\"prepare_subthread\")", "suggest_phase(\"prepare_it\")"),
        &[(Rule::PhaseUnknown, TOP_HANDLERS, 5)],
    );
    let suggest = "turn.suggest_phase(\"prepare_subthread\");";
    for response in
        ["to_phase(Phase::new(\"prepare_it\")?)", "or_to_phase(Phase::new(\"prepare_it\").map_err(told).expect(\"good\"))"]
    {
        check(
            |files| files.replaced(TOP_HANDLERS, suggest, &format!("Response::new(text).{response}")),
            &[(Rule::PhaseUnknown, TOP_HANDLERS, 5)],
        );
    }
    // A handler may be the one that ends the sub-thread.
    check(
        |files| {
            files.replaced(SUB_FILE, ".then(\"completed\")", "");
            files.replaced(
                "proof_reading/proof_reading_state_handlers.rs",
                "SpellingCheckHandler {}",
                "SpellingCheckHandler { fn handle() { Response::new(text).to_phase(Phase::new(\"completed\")?) } }",
            );
        },
        &[],
    );
}

#[test]
fn modules_for_tests_are_left_alone_wherever_they_are() {
    let fake = "use polis::*;\nstruct Fake;\nimpl Agent for Fake {}\n";
    check(
        |files| {
            files.added("../lib.rs", "#[cfg(test)]\nmod acting;\n#[cfg(all(test, unix))]\nmod staging;");
            files.added("../acting.rs", fake);
            files.added("../acting/props_agent.rs", fake);
            files.added("../staging/mod.rs", fake);
            files.replaced(TOP_HANDLERS, "#[cfg(test)]", "#[cfg(test)]\nmod rehearsal;\n#[cfg(test)]");
            files.added("book_publishing_state_handlers/rehearsal.rs", fake);
        },
        &[],
    );
    check(
        |files| {
            files.added("../lib.rs", "#[cfg(not(test))]\nmod acting;");
            files.added("../acting.rs", "use polis::Agent;\nimpl Agent for StageActingAgent {}\n");
        },
        &[(Rule::FileOfPart, "src/acting.rs", 2)],
    );
}

#[test]
fn a_file_that_is_no_rust_is_named_and_nothing_is_concluded_from_what_it_lacks() {
    check(
        |files| {
            files.removed(TOP_AGENT);
            files.added(TOP_AGENT, "\u{fffd} no Rust");
        },
        &[(Rule::Unreadable, TOP_AGENT, 1)],
    );
}

#[test]
fn a_sub_thread_is_started_in_two_steps() {
    check(
        |files| {
            files.replaced(TOP_AGENT, "\"prepare_subthread\", Prepare", "\"place_marking\", Prepare");
            files.replaced(TOP_AGENT, "then(\"execute_subthread\")", "then(\"proof_reading\")");
            files.replaced(TOP_AGENT, "on(EXECUTE, ", "on(\"proof_reading\", ");
            files.replaced(TOP_HANDLERS, "prepare_subthread", "place_marking");
        },
        &[(Rule::TwoStepStart, TOP_AGENT, 8)],
    );
    let execute = "            .on(EXECUTE, ExecuteSubThread::new(ProofReadingAgent)).then(\"order_intake\")\n";
    check(
        |files| files.replaced(TOP_AGENT, execute, ""),
        &[(Rule::PhaseUnknown, TOP_AGENT, 7), (Rule::TwoStepStart, TOP_AGENT, 7)],
    );
    let prepare = "            .on(\"prepare_subthread\", PrepareSubThread::new()).then(\"execute_subthread\")\n";
    check(
        |files| files.replaced(TOP_AGENT, prepare, ""),
        &[(Rule::TwoStepStart, TOP_AGENT, 7), (Rule::PhaseUnknown, TOP_HANDLERS, 5)],
    );
    check(
        |files| {
            files.replaced(TOP_AGENT, prepare, "");
            files.replaced(TOP_AGENT, execute, "            .start(ProofReadingAgent)\n");
            files.replaced(TOP_HANDLERS, "prepare_subthread", "order_intake");
        },
        &[(Rule::TwoStepStart, TOP_AGENT, 7)],
    );
    // By the handlers, where an agent has several sub-threads and other names for the phases.
    check(
        |files| {
            files.replaced(TOP_AGENT, prepare, "");
            files.replaced(TOP_AGENT, "EXECUTE,", "\"proof_correction\",");
            files.replaced(TOP_HANDLERS, "prepare_subthread", "proof_correction");
        },
        &[(Rule::TwoStepStart, TOP_AGENT, 7)],
    );
}

#[test]
fn prompts_are_in_their_folder_and_named_after_a_phase_that_exists() {
    let prompt = "prompt/order_intake_system_prompt.md";
    check(
        |files| files.moved(prompt, "prompt/order_taking_system_prompt.md"),
        &[(Rule::PromptPhase, "prompt/order_taking_system_prompt.md", 1)],
    );
    check(|files| files.moved(prompt, "prompt/order_intake.md"), &[(Rule::PromptFile, "prompt/order_intake.md", 1)]);
    check(
        |files| files.moved(prompt, "order_intake_system_prompt.md"),
        &[(Rule::PromptFile, "order_intake_system_prompt.md", 1)],
    );
    check(|files| files.moved("prompt/claim_verification", "proof_reading/prompt/claim_verification"), &[]);
    check(
        |files| files.moved(prompt, "proof_reading/prompt/order_intake_system_prompt.md"),
        &[(Rule::PromptPhase, "proof_reading/prompt/order_intake_system_prompt.md", 1)],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    check(|files| files.replaced(SUB_UNITS_FILE, "{}", "{"), &[(Rule::Unreadable, SUB_UNITS_FILE, 3)]);
}

#[test]
fn every_rule_is_explained() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/naming.md")).unwrap();
    for rule in Rule::ALL {
        assert!(page.contains(&format!("| `{}` |", rule.id())), "{}", rule.id());
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.id());
    }
}

#[test]
fn a_handler_and_a_unit_persist_within_their_duty() {
    let handler =
        "{ turn.suggest_phase(\"prepare_subthread\");\n turn.save_thread(&path, &thread).await?; turn.update_message(&path); }";
    check(
        |files| files.replaced(TOP_HANDLERS, "{ turn.suggest_phase(\"prepare_subthread\"); }", handler),
        &[(Rule::Duty, TOP_HANDLERS, 6)],
    );
    let unit = "impl InteractionUnit for SpellingCheckUnit {\n async fn user(&self, turn: &mut Turn) { turn.add_message(&path);\n \
                turn.batch_update(vec![turn.open_sub_thread(&path)]);\n turn.update_thread_settings(&path); } }";
    let units = "proof_reading/proof_reading_interaction_units.rs";
    check(
        |files| files.replaced(units, "impl InteractionUnit for SpellingCheckUnit {}", unit),
        &[(Rule::Duty, units, 4), (Rule::Duty, units, 4), (Rule::Duty, units, 5)],
    );
    let agent = "fn later(turn: &mut Turn) { turn.save_thread(&path, &thread); }\n    fn phases(&self)";
    check(|files| files.replaced(TOP_AGENT, "fn phases(&self)", agent), &[]);
}
