//! A turn that does not come to its end still answers with what there is.

use std::sync::{Arc, Mutex};

use polis_agents::Converse;
use polis_domain::{
    AnswerRules, Budget, Budgets, CallResult, Effect, EffectClass, Envelope, Event, Finish, MessageKind, OpenKind, Outcome,
    Resolution, Role, SubThreadPath, Task, ThreadId, Timestamp, ToolChoice, Verdict,
};
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelError, ModelRequest};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Map, json};

struct Bed {
    society: Society,
    log: Arc<MemoryLog>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

/// A society with a budget of rounds whose model gives these replies, by how many requests there were before.
async fn bed(rounds: usize, replies: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> Bed {
    bed_within(Budgets::default(), rounds, replies).await
}

/// The same, within these budgets for model calls.
async fn bed_within(budgets: Budgets, rounds: usize, replies: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> Bed {
    let (log, asked) = (Arc::new(MemoryLog::new()), Arc::<Mutex<Vec<ModelRequest>>>::default());
    let heard = asked.clone();
    let model = ScriptedModel::new(move |request| {
        let mut heard = heard.lock().unwrap();
        heard.push(request.clone());
        replies(heard.len() - 1)
    });
    let tools = ScriptedTools::new()
        .with("look", EffectClass::Read, |arguments, _| CallResult::good(format!("seen {arguments}")))
        .with("write", EffectClass::Write, |_, _| CallResult::good("written"));
    let ports = Ports {
        log: log.clone(),
        model: Arc::new(model),
        clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
        toolbox: Arc::new(tools),
        ..Ports::new(MemoryLog::new())
    };
    let cast = Cast::new().with("converse", Converse { max_rounds: rounds, ..Converse::default() });
    let options = Options { budgets, ..Options::new(7, Role::new("root", "converse")) };
    let society = Society::open("main".into(), ports, cast, options).await.unwrap();
    Bed { society, log, asked }
}

impl Bed {
    async fn ask(&self, text: &str) -> Arc<Envelope> {
        let sent = self.society.submit(text).await.unwrap();
        self.society.answer(&sent).await.unwrap()
    }

    fn request(&self, n: usize) -> ModelRequest {
        self.asked.lock().unwrap()[n].clone()
    }

    fn calls(&self, tool: &str) -> usize {
        let is_call =
            |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Tool(call), .. } if &*call.tool == tool);
        self.log.events(&"main".into()).iter().filter(|recorded| is_call(&recorded.event)).count()
    }

    /// Why the last answer is not finished.
    async fn unfinished(&self) -> Option<String> {
        let thread = self.society.thread(&ThreadId::from("root"), &SubThreadPath::main()).await.unwrap();
        let meta = &thread.messages.last().unwrap().meta;
        meta.get("unfinished").map(|why| why["code"].as_str().unwrap().to_owned())
    }
}

fn last_text(request: &ModelRequest) -> &str {
    match request.messages.last().unwrap() {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text,
        ChatMessage::Tool { content, .. } => content,
    }
}

fn look(n: usize) -> ScriptedReply {
    ScriptedReply::call("c", "look", &format!("{{\"n\":\"{}\"}}", "i".repeat(n)))
}

#[tokio::test(start_paused = true)]
async fn after_the_last_round_the_model_answers_without_tools_and_can_go_on_later() {
    let bed = bed(8, |n| match n {
        8 => ScriptedReply::text("half of it is done"),
        10 => ScriptedReply::text("all of it"),
        n => look(n),
    })
    .await;
    let answer = bed.ask("do it").await;
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, "half of it is done"));
    assert_eq!((bed.calls("look"), bed.unfinished().await.as_deref()), (8, Some("too_many_rounds")));
    let warned = bed.request(5);
    assert!(last_text(&warned).contains("in 3 more rounds"), "{}", last_text(&warned));
    assert!(!last_text(&bed.request(4)).contains("more rounds") && !last_text(&bed.request(6)).contains("more rounds"));
    let last = bed.request(8);
    assert_eq!(
        (last.tool_choice.clone(), last.tools.is_empty()),
        (ToolChoice::None, false),
        "vendors want tools that were used"
    );
    assert!(last_text(&last).contains("No more tools can be used"), "{}", last_text(&last));
    assert!((0..8).all(|n| bed.request(n).tool_choice == ToolChoice::Auto));
    // The next turn knows what the first one did.
    bed.ask("go on").await;
    let shown = bed.request(9).messages;
    assert_eq!(shown.iter().filter(|message| matches!(message, ChatMessage::Tool { .. })).count(), 8);
    assert_eq!(bed.unfinished().await, None);
}

#[tokio::test(start_paused = true)]
async fn where_a_model_says_nothing_in_the_last_round_what_it_did_is_told_for_it() {
    let bed = bed(2, |n| if n < 2 { look(n) } else { ScriptedReply::call("c", "look", "{}") }).await;
    let answer = bed.ask("do it").await;
    let text = "[polis] The agent came to no answer: no answer after 2 rounds of tool use; ask it to go on, or for less at once.\n\n\
                What it did:\n- look {\"n\":\"\"}: seen {\"n\":\"\"}\n- look {\"n\":\"i\"}: seen {\"n\":\"i\"}";
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, text));
    assert_eq!(bed.calls("look"), 2, "a call that it was not allowed is not made");
    assert_eq!(bed.unfinished().await.as_deref(), Some("too_many_rounds"));
}

#[tokio::test(start_paused = true)]
async fn of_thousands_of_calls_in_one_reply_some_are_made() {
    let bed = bed(5, |n| match n {
        0 => (0..1_000)
            .fold(ScriptedReply::text("all"), |reply, n| reply.and_call(&format!("c{n}"), "look", &format!("{{\"n\":{n}}}"))),
        _ => ScriptedReply::text("done"),
    })
    .await;
    bed.ask("do it").await;
    assert_eq!(bed.calls("look"), 64);
    let request = bed.request(1);
    let calls = request.messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => Some(tool_calls.len()),
        _ => None,
    });
    let results = request.messages.iter().filter(|message| matches!(message, ChatMessage::Tool { .. })).count();
    assert_eq!((calls.sum::<usize>(), results), (256, 256), "the others are dropped, and each that is left has a result");
    let note = last_text(&request);
    assert!(note.starts_with("[polis] Your reply had more than 256 calls."), "{note}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_makes_the_rest_of_its_calls_in_the_next_reply_is_not_taken_for_a_loop() {
    let writes = |files: std::ops::Range<usize>| {
        let write = |reply: ScriptedReply, n| reply.and_call(&format!("c{n}"), "write", &format!("{{\"path\":\"file {n}\"}}"));
        files.fold(ScriptedReply::text(""), write)
    };
    let bed = bed(9, move |n| match n {
        0 => writes(0..130),
        1 => writes(64..128),
        2 => writes(128..130),
        _ => ScriptedReply::text("all written"),
    })
    .await;
    assert_eq!(&*bed.ask("write").await.payload.text, "all written");
    assert_eq!(bed.calls("write"), 130);
    let notes = bed
        .request(1)
        .messages
        .iter()
        .filter(|message| matches!(message, ChatMessage::User { text, .. } if text.contains("of its kind")))
        .count();
    assert_eq!(notes, 0, "they were not made, so they did not come to the same");
}

#[tokio::test(start_paused = true)]
async fn a_loop_ends_with_an_answer_without_tools() {
    let bed = bed(25, |n| if n < 9 { look(0) } else { ScriptedReply::text("always the same") }).await;
    let answer = bed.ask("do it").await;
    let requests = bed.asked.lock().unwrap().len();
    let last = bed.request(requests - 1);
    assert_eq!((&answer.kind, last.tool_choice), (&MessageKind::Answer, ToolChoice::None));
    assert_eq!(bed.unfinished().await.as_deref(), Some("call_loop"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_reply_is_asked_for_again() {
    let told = bed(5, |n| if n == 0 { ScriptedReply::text(" ") } else { ScriptedReply::text("well") }).await;
    assert_eq!(&*told.ask("do it").await.payload.text, "well");
    assert!(last_text(&told.request(1)).contains("Your reply was empty"));
    let silent = bed(5, |_| ScriptedReply::text("")).await;
    let answer = silent.ask("do it").await;
    assert!(matches!(&answer.kind, MessageKind::Failure(failure) if &*failure.code == "empty_reply"), "{:?}", answer.kind);
    assert_eq!(silent.asked.lock().unwrap().len(), 4, "twice more, and once without tools");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_falls_silent_is_asked_for_an_answer_without_tools() {
    // Two empty replies after each call: they are counted anew.
    let halting = bed(8, |n| match n {
        0 | 3 => look(n),
        6 => ScriptedReply::text("well"),
        _ => ScriptedReply::text(""),
    })
    .await;
    assert_eq!(&*halting.ask("do it").await.payload.text, "well");
    assert_eq!(halting.unfinished().await, None);
    let late = bed(8, |n| match n {
        0 => look(0),
        1..=3 => ScriptedReply::text(""),
        _ => ScriptedReply::text("seen"),
    })
    .await;
    assert_eq!(&*late.ask("do it").await.payload.text, "seen");
    assert_eq!((late.request(4).tool_choice, late.unfinished().await.as_deref()), (ToolChoice::None, Some("empty_reply")));
    let silent = bed(8, |n| if n == 0 { look(0) } else { ScriptedReply::text("") }).await;
    let answer = silent.ask("do it").await;
    assert_eq!(answer.kind, MessageKind::Answer);
    assert!(answer.payload.text.ends_with("What it did:\n- look {\"n\":\"\"}: seen {\"n\":\"\"}"), "{}", answer.payload.text);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_cut_before_it_says_anything_is_asked_for_again() {
    let cut = || ScriptedReply::text("").ending(Finish::Length);
    let bed_of = bed(8, move |n| match n {
        0 => look(0),
        1 => cut(),
        _ => ScriptedReply::text("short"),
    });
    let late = bed_of.await;
    assert_eq!(&*late.ask("do it").await.payload.text, "short");
    assert!(last_text(&late.request(2)).contains("the limit of tokens"), "{}", last_text(&late.request(2)));
    let never = bed(8, move |n| if n == 0 { look(0) } else { cut() }).await;
    let answer = never.ask("do it").await;
    assert!(answer.payload.text.contains("What it did:\n- look"), "{}", answer.payload.text);
    assert_eq!(never.unfinished().await.as_deref(), Some("reply_stopped"));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_prescribes_the_answer_gets_the_failure() {
    let bed = bed(2, look).await;
    let tool = json!({ "name": "fill", "parameters": { "type": "object" } });
    let rules = AnswerRules { must_call: true, ..AnswerRules::default() };
    let meta = Map::from_iter([(Task::CLIENT_TOOLS.to_owned(), json!([tool])), (Task::ANSWER_RULES.to_owned(), json!(rules))]);
    let sent = bed.society.send_with_meta("root".into(), "do it", None, meta).await.unwrap();
    let answer = bed.society.answer(&sent).await.unwrap();
    assert!(matches!(&answer.kind, MessageKind::Failure(failure) if &*failure.code == "too_many_rounds"), "{:?}", answer.kind);
}

#[tokio::test(start_paused = true)]
async fn the_same_call_many_times_in_one_reply_is_made_a_few_times_and_a_write_once() {
    for (tool, most, told) in
        [("look", 6, "was not called"), ("write", 1, "write was called once: this reply has the same call twice")]
    {
        let bed = bed(5, move |n| match n {
            0 => (0..20).fold(ScriptedReply::text("all at once"), |reply, n| reply.and_call(&format!("c{n}"), tool, "{}")),
            _ => ScriptedReply::text("done"),
        })
        .await;
        bed.ask("do it").await;
        assert_eq!(bed.calls(tool), most, "{tool}");
        let results: Vec<_> =
            bed.request(1).messages.into_iter().filter(|message| matches!(message, ChatMessage::Tool { .. })).collect();
        assert_eq!(results.len(), 20, "each call has a result");
        assert!(matches!(&results[19], ChatMessage::Tool { content, is_error: true, .. } if content.contains(told)));
    }
}

fn requests(most: u64) -> Budgets {
    Budgets { task: Budget { requests: Some(most), ..Budget::default() }, ..Budgets::default() }
}

#[tokio::test(start_paused = true)]
async fn the_last_reply_within_a_budget_concludes_without_tools() {
    let bed = bed_within(requests(5), 25, |n| if n < 4 { look(n) } else { ScriptedReply::text("half of it") }).await;
    let answer = bed.ask("do it").await;
    assert_eq!((&answer.kind, &*answer.payload.text), (&MessageKind::Answer, "half of it"));
    assert_eq!((bed.calls("look"), bed.unfinished().await.as_deref()), (4, Some("budget_exhausted")));
    let last = bed.request(4);
    assert_eq!((last.tool_choice.clone(), last.tools.is_empty()), (ToolChoice::None, false));
    assert!(last_text(&last).contains("the last reply that the budget allows"), "{}", last_text(&last));
    assert!((0..4).all(|n| bed.request(n).tool_choice == ToolChoice::Auto));
    // A request that needs one call is not cut short.
    let one = bed_within(requests(5), 25, |_| ScriptedReply::text("done")).await;
    one.ask("do it").await;
    assert_eq!(one.unfinished().await, None);
}

#[tokio::test(start_paused = true)]
async fn where_no_more_budget_is_granted_what_was_done_is_told() {
    let bed = bed_within(requests(2), 25, look).await;
    let sent = bed.society.submit("do it").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let open = bed.society.look(|spine| {
        let asks = |kind: &OpenKind| matches!(kind, OpenKind::Grant(_));
        spine.turns.iter().find_map(|(turn, it)| {
            it.open.iter().find(|open| asks(&open.kind)).map(|open| polis_domain::EffectId { turn: *turn, n: open.n })
        })
    });
    let grant = open.await.unwrap().expect("a person is asked");
    bed.society.resolve(grant, Resolution::Outcome(Outcome::Verdict(Verdict::no("enough")))).await.unwrap();
    let answer = bed.society.answer(&sent).await.unwrap();
    assert_eq!(answer.kind, MessageKind::Answer);
    assert!(
        answer.payload.text.contains("no more was granted: enough") && answer.payload.text.contains("What it did:\n- look"),
        "{}",
        answer.payload.text
    );
    assert_eq!(bed.unfinished().await.as_deref(), Some("budget_exhausted"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_is_told_and_the_text_before_it_is_kept() {
    let bed = bed(9, move |n| match n {
        0 => ScriptedReply::text("I write it down.").and_call("c2", "write", "{\"text\":\"lo").ending(Finish::Length),
        1 => ScriptedReply::call("c1", "look", "{}").and_call("c2", "write", "{\"text\":\"lo").ending(Finish::Length),
        _ => ScriptedReply::text("written in parts"),
    })
    .await;
    assert_eq!(&*bed.ask("write").await.payload.text, "written in parts");
    let told = "[polis] Your reply reached the limit of tokens within a call of write, so this call was not made. Make it again with \
                shorter arguments, or in several parts.";
    let text = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.to_string(),
        ChatMessage::Tool { content, .. } => content.to_string(),
    };
    let shown: Vec<_> = bed.request(2).messages.iter().map(text).collect();
    assert_eq!(shown, ["write", "I write it down.", told, "", "seen {}", told]);
}

#[tokio::test(start_paused = true)]
async fn notes_for_the_model_are_in_the_language_of_the_conversation() {
    let bed = bed(8, |n| match n {
        0 => ScriptedReply::text(" "),
        8 => ScriptedReply::text("做完了一半"),
        9 => ScriptedReply::error(ModelError::Rejected { reason: "on holiday".to_owned() }),
        10 => ScriptedReply::text("完成"),
        n => look(n),
    })
    .await;
    bed.ask("请完成它").await;
    bed.ask("go on").await;
    bed.ask("and now?").await;
    assert_eq!(last_text(&bed.request(1)), "[polis] 你的回复是空的。请回答，或者调用工具。");
    assert_eq!(last_text(&bed.request(5)), "[polis] 这一回合还可以调用 3 轮工具。先做最重要的。");
    assert!(last_text(&bed.request(8)).starts_with("[polis] 这一回合不能再使用工具。"), "{}", last_text(&bed.request(8)));
    let shown = bed.request(10).messages;
    let failed = |message: &ChatMessage| matches!(message, ChatMessage::User { text, .. } if text.starts_with("[polis] 你的这一回合在回答之前失败："));
    assert!(shown.iter().any(failed), "{shown:#?}");
}
