//! What the model is shown of a long conversation (D10, D11, P9, P10).

use std::sync::{Arc, Mutex};

use polis_agents::{ContextLimits, Converse};
use polis_domain::{Effect, Event, MessageKind, Role, ThreadId, Timestamp};
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply};

type Asked = Arc<Mutex<Vec<ModelRequest>>>;

struct Bed {
    log: Arc<MemoryLog>,
    asked: Asked,
    context: ContextLimits,
    window: Option<u64>,
    summary: &'static str,
}

fn bed() -> Bed {
    let context = ContextLimits { max_context_messages: 6, keep_recent_count: 2, compress: true };
    Bed { log: Arc::new(MemoryLog::new()), asked: Asked::default(), context, window: None, summary: "notes" }
}

fn is_summary(request: &ModelRequest) -> bool {
    request.system.starts_with("Summarise")
}

impl Bed {
    async fn open(&self) -> Society {
        let (asked, summary) = (self.asked.clone(), self.summary);
        let model = ScriptedModel::new(move |request| {
            asked.lock().unwrap().push(request.clone());
            if is_summary(request) {
                ScriptedReply::text(summary)
            } else {
                ScriptedReply::text("an answer of some length, so that it counts")
            }
        });
        let model = match self.window {
            Some(window) => model.seeing(window),
            None => model,
        };
        let ports = Ports {
            log: self.log.clone(),
            model: Arc::new(model),
            clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
            ..Ports::new(MemoryLog::new())
        };
        let role = Role::new("root", "converse").with_prompt("Be kind.");
        let cast = Cast::new().with("converse", Converse { context: self.context, ..Converse::default() });
        Society::open("main".into(), ports, cast, Options::new(7, role)).await.unwrap()
    }

    fn last(&self) -> ModelRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }

    fn summaries(&self) -> usize {
        self.asked.lock().unwrap().iter().filter(|request| is_summary(request)).count()
    }

    fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.log.events(&"main".into()).iter().filter(|recorded| which(&recorded.event)).count()
    }
}

async fn say(society: &Society, text: &str) {
    let sent = society.submit(text).await.unwrap();
    let answer = society.answer(&sent).await.unwrap();
    assert_eq!(answer.kind, MessageKind::Answer, "{:?}", answer.payload.text);
}

fn texts(request: &ModelRequest) -> Vec<String> {
    let text = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } | ChatMessage::Assistant { text, .. } => text.to_string(),
        ChatMessage::Tool { content, .. } => content.to_string(),
    };
    request.messages.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_compressed_and_prompt_summaries_and_newest_messages_stay() {
    let bed = bed();
    let society = bed.open().await;
    for n in 0..3 {
        say(&society, &format!("question {n}")).await;
    }
    assert_eq!(bed.summaries(), 0, "six messages are not too many");
    say(&society, "question 3").await;
    assert_eq!(bed.summaries(), 1);
    let shown = bed.last();
    assert_eq!(&*shown.system, "Be kind.");
    assert_eq!(texts(&shown), ["[历史摘要] notes", "question 2", "an answer of some length, so that it counts", "question 3"]);
    // The thread itself has lost nothing.
    let whole = society.thread(&ThreadId::from("root"), &polis_domain::SubThreadPath::main()).await.unwrap();
    assert_eq!(whole.messages.len(), 8);

    for n in 4..7 {
        say(&society, &format!("question {n}")).await;
    }
    assert_eq!(bed.summaries(), 2);
    let shown = texts(&bed.last());
    assert_eq!(shown[0], "[历史摘要] notes", "the second summary takes the place of the first");
    let second = bed.asked.lock().unwrap().iter().filter(|request| is_summary(request)).nth(1).unwrap().clone();
    assert_eq!(texts(&second)[0], "[历史摘要] notes", "the second summary knows the first");

    society.restore_context("root".into()).await.unwrap();
    say(&society, "question 7").await;
    let notes = texts(&bed.last())[0].matches("[历史摘要]").count();
    assert!(bed.summaries() == 3 && notes == 1, "undone, and compressed again since it is too long");
    assert!(bed.asked.lock().unwrap().iter().all(|request| request.aside == is_summary(request)), "notes are told to nobody");
    let aside = |event: &Event| matches!(event, Event::EffectStarted { effect: Effect::Model { aside: true, .. }, .. });
    assert_eq!(bed.count(aside), 3, "and the log says so");
}

#[tokio::test(start_paused = true)]
async fn by_default_fifty_messages_are_shown_and_the_newest_ten_stay_after_a_compression() {
    let bed = Bed { context: ContextLimits::default(), ..bed() };
    let society = bed.open().await;
    for n in 0..25 {
        say(&society, &format!("question {n}")).await;
    }
    assert_eq!((bed.summaries(), texts(&bed.last()).len()), (0, 50));
    say(&society, "one more").await;
    assert_eq!(bed.summaries(), 1, "51 messages are too many");
    let shown = texts(&bed.last());
    let newest: Vec<_> = shown.iter().filter(|text| text.starts_with("question")).collect();
    assert_eq!((newest.first().unwrap().as_str(), shown.last().unwrap().as_str()), ("question 20", "one more"), "{shown:?}");
    assert_eq!(newest.len(), 5, "each with its answer: ten messages");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_not_shorter_is_refused_and_after_two_the_agent_is_only_warned() {
    let long = "These notes are much longer than everything that they stand for, which was short. ";
    let bed = Bed { summary: Box::leak(long.repeat(9).into_boxed_str()), ..bed() };
    let society = bed.open().await;
    for n in 0..7 {
        say(&society, &format!("question {n}")).await;
    }
    assert_eq!(bed.summaries(), 2, "the third is not tried");
    assert_eq!(bed.count(|event| matches!(event, Event::ContextKept { .. })), 2);
    assert_eq!(bed.count(|event| matches!(event, Event::ContextCompressed { .. })), 0);
    let shown = bed.last();
    let told: Vec<_> = texts(&shown).into_iter().filter(|text| text.starts_with("[polis]")).collect();
    assert_eq!(told.len(), 2, "near the limit and beyond it, each once: {told:?}");
    assert!(told[1].contains("is longer than its limit (6 messages)"), "{told:?}");
    assert_eq!(shown.messages.len(), 13 + told.len(), "nothing is left out");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_compressed_before_the_window_is_full() {
    let bed = Bed { window: Some(100), context: ContextLimits { max_context_messages: 50, ..bed().context }, ..bed() };
    let society = bed.open().await;
    for n in 0..8 {
        say(&society, &format!("question {n}")).await;
    }
    assert!(bed.summaries() >= 1);
    let most = bed.asked.lock().unwrap().iter().filter(|request| !is_summary(request)).map(|it| it.messages.len()).max();
    assert!(most.unwrap() < 13, "{most:?}");
}

#[tokio::test(start_paused = true)]
async fn a_compressed_conversation_goes_on_after_a_restart() {
    let bed = bed();
    let first = bed.open().await;
    for n in 0..4 {
        say(&first, &format!("question {n}")).await;
    }
    first.stop(std::time::Duration::ZERO).await;
    let second = bed.open().await;
    say(&second, "question 4").await;
    let shown = texts(&bed.last());
    assert_eq!((&*bed.last().system, &*shown[0], shown.len()), ("Be kind.", "[历史摘要] notes", 7), "{shown:?}");
    assert!(shown[5].contains("has reached 80 % of its limit (6 messages)"), "{shown:?}");
    assert_eq!(bed.summaries(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_how_full_its_conversation_is_before_it_is_compressed() {
    let bed = bed();
    let society = bed.open().await;
    for n in 0..2 {
        say(&society, &format!("question {n}")).await;
        assert_eq!(&*bed.last().system, "Be kind.", "there is room enough, and the prompt stays as it is");
    }
    say(&society, "question 2").await;
    let shown = texts(&bed.last());
    assert!(shown[4].contains("80 % of its limit (6 messages)") && shown[4].contains("compress_context"), "{shown:?}");
    assert_eq!((&*bed.last().system, &*shown[5]), ("Be kind.", "question 2"));
    assert_eq!(bed.summaries(), 0, "the agent comes first");
    let small = Bed { window: Some(100), context: ContextLimits { max_context_messages: 50, ..bed.context }, ..self::bed() };
    let society = small.open().await;
    while !small
        .asked
        .lock()
        .unwrap()
        .iter()
        .any(|request| texts(request).iter().any(|text| text.contains("or about 60 tokens")))
    {
        assert_eq!(small.summaries(), 0, "it is told first");
        say(&society, "a question").await;
    }
}
