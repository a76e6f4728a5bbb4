//! Models that write code: it is taken out of their words, run, and believed only as far as it can be checked.

use std::sync::{Arc, Mutex};

use polis::ModelRequest;
use polis::ports::ChatMessage;
use polis_testkit::{ScriptedModel, ScriptedReply};

use crate::place::Place;
use crate::table::shown;

const TABLE: &str = "Analyse this:\ncity,amount\nLisbon,3\nPorto,4.5\nLisbon,5\nPorto,\n";

/// The scripts that do what each phase wants.
const GOOD: [&str; 4] = [
    include_str!("../../src/table_report/data_pipeline/scripts/data_prep.sh"),
    include_str!("../../src/table_report/data_pipeline/scripts/transform.sh"),
    include_str!("../../src/table_report/data_pipeline/scripts/analysis.sh"),
    include_str!("../../src/table_report/data_pipeline/scripts/formatter.sh"),
];

/// What a model heard.
type Heard = Arc<Mutex<Vec<ModelRequest>>>;

/// The phase of a request for code, by what the model is told about it; none for a request for words.
fn phase(request: &ModelRequest) -> Option<usize> {
    let steps = ["prepares the data", "transforms the data", "analyses the data", "makes the report"];
    let is_code = request.settings.temperature == Some(0.7);
    is_code.then(|| steps.iter().position(|step| request.system.contains(&format!("This step {step}"))).unwrap())
}

/// How often the code of this phase was tried before.
fn tries(request: &ModelRequest) -> usize {
    request.messages.iter().filter(|message| matches!(message, ChatMessage::Assistant { .. })).count()
}

/// A model that writes what `code` gives for a phase and the number of tries before, and `words` about it.
fn model(code: impl Fn(usize, usize) -> String + Send + Sync + 'static, words: &'static str) -> (ScriptedModel, Heard) {
    let heard = Heard::default();
    let ears = heard.clone();
    let model = ScriptedModel::new(move |request| {
        ears.lock().unwrap().push(request.clone());
        match phase(request) {
            Some(phase) => ScriptedReply::text(&format!(
                "Certainly. Here it is:\n\n```bash\n{}\n```\nIt is fast.",
                code(phase, tries(request))
            )),
            None => ScriptedReply::text(words),
        }
    });
    (model, heard)
}

fn good(phase: usize) -> String {
    format!("# by the model\n{}", GOOD[phase])
}

/// The last thing that was said to the model.
fn last(request: &ModelRequest) -> &str {
    match request.messages.last() {
        Some(ChatMessage::User { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_code_of_a_model_is_saved_run_and_named_in_the_report() {
    let Some(place) = Place::new("the_code_of_a_model_is_saved_run_and_named_in_the_report").await else { return };
    let (model, heard) = model(|phase, _| good(phase), "Analysis complete: 4 records, 12.5 in all.");
    let outcome = place.ask(TABLE, model).await;
    let page = outcome.page();
    assert_eq!(shown(page)[&vec!["amount".to_owned()]], [3.0, 12.5, 4.16666666667, 3.0, 5.0]);
    assert_eq!(page.matches("<td class=\"words\">the model</td><td class=\"words\">attempts: 1</td>").count(), 4, "{page}");
    let texts = outcome.texts();
    assert_eq!(texts.len(), 8);
    for (round, file) in texts.chunks(2).zip(["data_prep.sh", "transform.sh", "analysis.sh", "formatter.sh"]) {
        assert!(
            round[0].contains("```sh\n# by the model\n#!/bin/sh\n")
                && round[0].contains(&format!("Save this code as {file} and run it.")),
            "{}",
            round[0]
        );
        assert!(
            round[1].contains(&format!("- {file}: exit status 0\n")) && round[1].contains("lines written: "),
            "{}",
            round[1]
        );
    }
    // Its words are used where they are about this phase and keep to the facts; there are others for all the rest.
    assert!(texts[1].starts_with("Execution result: the code was saved and run; "), "{}", texts[1]);
    assert!(
        texts[5].starts_with("Analysis complete:\n4 records, 12.5 in all.\n- analysis.sh: exit status 0\n"),
        "{}",
        texts[5]
    );
    let temperatures: Vec<_> = heard.lock().unwrap().iter().map(|request| request.settings.temperature).collect();
    assert_eq!(temperatures, [0.7, 0.3].repeat(4).into_iter().map(Some).collect::<Vec<_>>());
    let first = heard.lock().unwrap()[0].clone();
    assert!(first.system.starts_with("你是一个数据处理助手，负责数据准备、转换、分析和结果格式化。"), "{}", first.system);
    assert!(last(&first).contains("city,amount\nLisbon,3"), "{}", last(&first));
    let folder = std::fs::read_dir(place.workspace().join("runs")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(folder.join("transform.sh")).unwrap(), good(1));
}

#[tokio::test]
async fn words_that_make_numbers_up_are_not_used() {
    let Some(place) = Place::new("words_that_make_numbers_up_are_not_used").await else { return };
    let (model, _) = model(|phase, _| good(phase), "Processing complete: 1024 records were processed, 40.2 % of them high.");
    let outcome = place.ask(TABLE, model).await;
    assert!(!outcome.texts().concat().contains("1024"));
    assert!(
        outcome.answer.unwrap().starts_with("All steps are done and the report is written.\n- formatter.sh: exit status 0\n")
    );
}

#[tokio::test]
async fn an_error_goes_back_to_the_model_which_may_mend_its_code() {
    let Some(place) = Place::new("an_error_goes_back_to_the_model_which_may_mend_its_code").await else { return };
    let broken = |phase: usize, tries: usize| match (phase, tries) {
        (1, 0) => "echo half > transformed_data.tsv; echo 'no such column: amonut' >&2; exit 3".to_owned(),
        // It says that all is well.
        (1, 1) => "sed 's/^/x\t/' prepared_data.tsv > transformed_data.tsv".to_owned(),
        (phase, _) => good(phase),
    };
    let (model, heard) = model(broken, "");
    let outcome = place.ask(TABLE, model).await;
    let texts = outcome.texts();
    assert_eq!(texts.len(), 12);
    assert_eq!(texts[3], "transform.sh was saved and run, and failed.\nexit status 3: no such column: amonut");
    assert!(texts[5].contains("transformed_data.tsv is not what it should be: exit status 5: line 1: `x\tcity\tamount` should be `id\tvalue\tcategory\tcity\tamount`"), "{}", texts[5]);
    let heard = heard.lock().unwrap();
    let again: Vec<_> = heard.iter().filter(|request| phase(request) == Some(1)).collect();
    assert_eq!(again.len(), 3);
    assert_eq!((last(again[1]), last(again[2])), (texts[3], texts[5]));
    assert!(outcome.page().contains(
        "<tr><th>data_transformation</th><td class=\"words\">the model</td><td class=\"words\">attempts: 3</td></tr>"
    ));
    assert_eq!(shown(outcome.page())[&vec!["amount".to_owned()]][1], 12.5);
}

#[tokio::test]
async fn code_that_never_works_gives_way_to_the_built_in_script_and_the_report_says_so() {
    let Some(place) = Place::new("code_that_never_works_gives_way_to_the_built_in_script_and_the_report_says_so").await else {
        return;
    };
    // Everything seems fine, but the sums are wrong.
    let wrong = |phase: usize, _| match phase {
        2 => good(2).replace("mv analysis_results.part", "sed -i 's/12.5/99/' analysis_results.part; mv analysis_results.part"),
        phase => good(phase),
    };
    let (model, heard) = model(wrong, "");
    let outcome = place.ask(TABLE, model).await;
    let page = outcome.page();
    assert_eq!(heard.lock().unwrap().iter().filter(|request| phase(request) == Some(2)).count(), 3);
    assert!(page.contains("<tr><th>data_analysis</th><td class=\"words\">built-in script</td><td class=\"words\">the model&#39;s code failed 3 times, at last with analysis_results.tsv is not what it should be: exit status 5: line 3, cell 5: `99` should be `12.5`</td></tr>"), "{page}");
    assert_eq!(shown(page)[&vec!["amount".to_owned()]][1], 12.5);
    let last = outcome.texts()[10];
    assert!(last.starts_with("[Built-in script, because the model's code failed 3 times"), "{last}");
}

#[tokio::test]
async fn code_reaches_nothing_outside_and_what_it_tried_is_reported() {
    let Some(place) = Place::new("code_reaches_nothing_outside_and_what_it_tried_is_reported").await else { return };
    let secret = place.secret().display().to_string();
    let outside = place.secret().with_file_name("outside").display().to_string();
    let tries_to = [format!("cat {secret}"), format!("cp {secret} prepared_data.tsv"), format!("echo here > {outside}")];
    let bad = move |phase: usize, tries: usize| if phase == 0 { tries_to[tries].clone() } else { good(phase) };
    let (model, _) = model(bad, "");
    let outcome = place.ask(TABLE, model).await;
    let texts = outcome.texts();
    for (text, said) in [(texts[1], "secret"), (texts[3], "secret"), (texts[5], "outside")] {
        let is_refused = ["ermission denied", "No such file", "cannot create"].iter().any(|why| text.contains(why));
        assert!(
            text.starts_with("data_prep.sh was saved and run, and failed.\nexit status ") && text.contains(said) && is_refused,
            "{text}"
        );
    }
    assert!(!place.secret().with_file_name("outside").exists());
    assert!(!texts.concat().contains("the secret") && !outcome.page().contains("the secret"));
    assert!(outcome.page().contains("built-in script"));
}

#[tokio::test]
async fn a_report_that_runs_something_or_hides_a_figure_is_not_shown() {
    let Some(place) = Place::new("a_report_that_runs_something_or_hides_a_figure_is_not_shown").await else { return };
    let bad = |phase: usize, tries: usize| match (phase, tries) {
        (3, 0) => format!("{}\nsed -i 's|</body>|<script>alert(1)</script></body>|' final_report.html", good(3)),
        (3, 1) => format!("{}\nsed -i 's|12.5|13|' final_report.html", good(3)),
        (3, 2) => format!("sed -i 's/12.5/13/' analysis_results.tsv\n{}", good(3)),
        (phase, _) => good(phase),
    };
    let (model, _) = model(bad, "");
    let outcome = place.ask(TABLE, model).await;
    let texts = outcome.texts();
    assert!(texts[7].contains("the report has `<script>alert(1)</script>"), "{}", texts[7]);
    assert!(texts[9].contains("the report does not have 12.5 of the line `number amount"), "{}", texts[9]);
    assert!(texts[11].contains("the program changed analysis_results.tsv, which it may only read"), "{}", texts[11]);
    assert!(!outcome.page().contains("<script") && outcome.page().contains("<td>12.5</td>"), "{}", outcome.page());
}
