//! Replies that cannot be read, models that fail, tools that fail, prompts that cannot be rendered.

use std::sync::Arc;

use polis_agents::workflow::{AgentWorkflowEngine, Language, PromptManager};
use polis_ports::ModelError;
use polis_testkit::ScriptedReply;

use super::bed::{Team, engine, executed, open, plan, team, verified};

#[tokio::test(start_paused = true)]
async fn a_reply_with_small_faults_is_repaired_without_asking_again() {
    let sloppy = |line: &str| format!("<think>hm</think>Here it is:\n```json\n{}\n```", line.replace("}]", "},]"));
    let planner = sloppy(
        "{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"p\",\"needsMorePlanning\":\"false\",\
         \"todos\":[{\"id\":\"a\",\"description\":\"Do a\",\"priority\":\"1\"},{\"id\":\"b\",\"description\":\"Do b\",\"priority\":1}]}",
    );
    let bed = open(&Team { planner: Arc::new(move |_| ScriptedReply::text(&planner)), ..team() }, engine()).await;
    assert_eq!(bed.ask("a and b?").await, "a is 1 and b is 2.");
    assert_eq!(bed.counts(), [1, 4, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_cannot_be_read_is_asked_for_again_with_every_reason() {
    for (name, bad, said) in [
        ("prose", "I will do a, then b.", "JSON"),
        ("cut off", "{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"p", "JSON"),
        ("another shape", "{\"plan\":[1,2]}", "summary"),
        (
            "bad fields",
            "{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"p\",\"needsMorePlanning\":false,\"todos\":[{\"id\":\"a\",\"description\":\"Do\",\"priority\":\"high\"}]}",
            "todos[0].priority: must be a whole number from 1 up",
        ),
        (
            "a circle",
            "{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"p\",\"needsMorePlanning\":false,\"todos\":[{\"id\":\"a\",\"description\":\"Do\",\"priority\":1,\"dependencies\":[\"a\"]}]}",
            "wait for each other in a circle",
        ),
    ] {
        let planner = move |heard: &super::bed::Heard| match heard.replies {
            0 => ScriptedReply::text(bad),
            _ => plan(&[("a", 1, &[]), ("b", 1, &[])]),
        };
        let bed = open(&Team { planner: Arc::new(planner), ..team() }, engine()).await;
        assert_eq!(bed.ask("a and b?").await, "a is 1 and b is 2.", "{name}");
        assert_eq!(bed.counts()[0], 2, "{name}");
        let told = &bed.heard("planner")[1].last;
        assert!(told.contains("could not be used") && told.contains(said), "{name}: {told}");
        let messages = bed.thread("messages[1].meta._thread.messages[0].meta._thread").await.messages;
        assert_eq!(messages[1].text, bad, "{name}: what it said can be read");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_just_a_word_is_asked_for_again_once_and_then_taken() {
    let team = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("call_a", "look", "{\"at\":\"a\"}"),
            _ => executed(todo, "completed"),
        }),
        verifier: Arc::new(|_| verified("The file says: completed.", &[("a", &["c1"])])),
    };
    let bed = open(&team, engine()).await;
    assert_eq!(bed.ask("a?").await, "The file says: completed.");
    assert_eq!(bed.counts(), [1, 3, 1]);
    assert!(bed.heard("executor")[2].last.contains("only says that it is done"), "{}", bed.heard("executor")[2].last);
}

#[tokio::test(start_paused = true)]
async fn asking_again_has_an_end() {
    let hopeless = Team { planner: Arc::new(|_| ScriptedReply::text("")), ..team() };
    let bed = open(&hopeless, engine()).await;
    let failure = polis_testkit::ask(&bed.society, "a?").await.unwrap_err();
    assert_eq!(&*failure.code, "unreadable_reply", "{failure}");
    assert_eq!((bed.counts(), bed.heard("fallback").len()), ([3, 0, 0], 3));

    let mumbling = Team { executor: Arc::new(|_, _| ScriptedReply::text("…")), ..team() };
    let bed = open(&mumbling, engine()).await;
    let answer = bed.ask("a and b?").await;
    assert!(
        answer.contains("a is 1 and b is 2.") || answer.contains("the executor gave no report that can be used"),
        "{answer}"
    );
    assert_eq!(bed.counts()[1], 3, "one todo of two, since the other depends on it");

    let rambling = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|_, _| ScriptedReply::text("I found that it is 7, roughly.")),
        verifier: Arc::new(|_| ScriptedReply::text("Looks good to me!")),
    };
    let answer = open(&rambling, engine()).await.ask("a?").await;
    assert!(
        answer.contains("What it said last: I found that it is 7, roughly."),
        "what was said in prose is not lost: {answer}"
    );

    let speechless = Team { verifier: Arc::new(|_| ScriptedReply::text("")), ..team() };
    let bed = open(&speechless, engine()).await;
    let answer = bed.ask("a and b?").await;
    assert!(
        answer.contains("- Do a: a is 1\n- Do b: b is 2")
            && answer.ends_with("- the verifier gave no judgement that can be used"),
        "{answer}"
    );
    assert_eq!(bed.counts(), [1, 4, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_is_read_by_the_executor_and_proves_nothing() {
    let stumbling = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[])])),
        executor: Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("x", "look", "{\"at\":\"nowhere\"}").and_call("y", "nothing", "{"),
            1 => ScriptedReply::call("z", "look", "{\"at\":\"a\"}"),
            _ => executed(todo, "a is 1"),
        }),
        verifier: Arc::new(|heard| match heard.replies {
            0 => verified("a is 1.", &[("a", &["c1"])]),
            _ => verified("a is 1.", &[("a", &["c3"])]),
        }),
    };
    let bed = open(&stumbling, engine()).await;
    assert_eq!(bed.ask("a?").await, "a is 1.");
    assert!(bed.heard("verifier")[1].last.contains("cites only calls that failed"));
    let messages = bed.thread("messages[1].meta._thread.messages[2].meta._thread").await.messages;
    assert_eq!(messages[2].text, "there is nothing");
    assert_eq!(messages[2].meta["workflow"]["is_error"], true);
    assert!(messages[3].text.contains("nothing"), "each call has one result: {}", messages[3].text);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_for_good_costs_its_todo_and_no_more() {
    let refusing = Team {
        executor: Arc::new(|todo, heard| match (todo, heard.replies) {
            ("b", _) => ScriptedReply::error(ModelError::Rejected { reason: "too long".to_owned() }),
            (_, 0) => ScriptedReply::call("call", "look", "{\"at\":\"a\"}"),
            _ => executed(todo, "a is 1"),
        }),
        verifier: Arc::new(|_| super::bed::unsatisfied("b is missing", &[("a", true, &["c1"]), ("b", false, &[])])),
        ..team()
    };
    let bed = open(&refusing, engine()).await;
    let answer = bed.ask("a and b?").await;
    assert!(answer.contains("- Do a: a is 1") && answer.contains("rejects the request: too long"), "{answer}");

    let nobody =
        Team { planner: Arc::new(|_| ScriptedReply::error(ModelError::Rejected { reason: "no".to_owned() })), ..team() };
    let bed = open(&nobody, engine()).await;
    assert_eq!(&*polis_testkit::ask(&bed.society, "a?").await.unwrap_err().code, "model_rejected");
}

#[tokio::test(start_paused = true)]
async fn a_business_context_that_cannot_be_used_is_told_and_a_good_one_is_in_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("planner.md"), "---\nodd: 1\n---\nx").unwrap();
    let prompts = || PromptManager::new(Language::En).with_folder(folder.path());
    let bed = open(&team(), AgentWorkflowEngine::new(prompts())).await;
    assert_eq!(&*polis_testkit::ask(&bed.society, "a?").await.unwrap_err().code, "bad_business_context");
    std::fs::write(folder.path().join("planner.md"), "We sell tea.").unwrap();
    let bed = open(&team(), AgentWorkflowEngine::new(prompts())).await;
    bed.ask("a and b?").await;
    assert!(bed.heard("planner")[0].request.system.contains("We sell tea."));
}
