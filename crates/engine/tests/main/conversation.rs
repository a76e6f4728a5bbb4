//! What was said so far, and the second step that asks several sub-threads.

use polis_domain::{Failure, Message, Response, Sender};
use polis_engine::{
    Agent, ExecuteSubThread, InteractionUnit, Phases, PrepareSubThread, Society, StateHandler, SubThreadAgent, SubThreads,
    Turn, Units,
};
use polis_ports::ModelError;
use polis_testkit::{ScriptedModel, ScriptedReply, ask, crash, society};

/// Says the phase and the newest three messages.
struct RecountHandler;

impl StateHandler for RecountHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let said = turn.conversation(3).await?;
        Ok(Response::new(format!("{}[{said}]", turn.phase())))
    }
}

/// Says what was said in each phase.
struct LookBackHandler;

impl StateHandler for LookBackHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.say("aside").await?;
        let mut found = Vec::new();
        for phase in ["topic_outline", "draft_writing", "nothing_there"] {
            found.push(turn.said_in(phase).await?.map_or("-".to_owned(), |message| message.text.clone()));
        }
        Ok(Response::new(found.join(" | ")))
    }
}

struct EchoHandler;

impl StateHandler for EchoHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let asked = format!("{} {}", turn.phase(), turn.task().message);
        Ok(Response::new(turn.generate(asked).await?))
    }
}

struct ReportUnit;

impl InteractionUnit for ReportUnit {
    async fn user_message(&self, bot: &Message, _: &mut Turn) -> Result<String, Failure> {
        Ok(format!("read: {}", bot.text))
    }
}

struct WritingAgent;

impl SubThreadAgent for WritingAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("topic_outline", ReportUnit)
            .with_handler(EchoHandler)
            .then("draft_writing")
            .on("draft_writing", ReportUnit)
            .with_handler(EchoHandler)
            .then("last_look")
            .on("last_look", ReportUnit)
            .with_handler(LookBackHandler)
            .then("completed")
    }
}

struct DrawingAgent;

impl SubThreadAgent for DrawingAgent {
    fn units(&self) -> Units {
        Units::new().on("picture_drawing", ReportUnit).with_handler(EchoHandler).then("completed")
    }
}

struct MagazineAgent;

impl Agent for MagazineAgent {
    fn phases(&self) -> Phases {
        let both = SubThreads::new().with("writing", WritingAgent).with("drawing", DrawingAgent);
        Phases::new()
            .on("prepare_subthread", PrepareSubThread::default())
            .then("execute_subthread")
            .on("execute_subthread", ExecuteSubThread::each_of(both))
            .then("prepare_subthread")
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::new(|request| match request.messages.last() {
        Some(polis_ports::ChatMessage::User { text, .. }) if text.ends_with("nothing") && text.starts_with("picture") => {
            ScriptedReply::error(ModelError::Rejected { reason: "no paint".to_owned() })
        }
        Some(polis_ports::ChatMessage::User { text, .. }) => ScriptedReply::text(&format!("<{text}>")),
        _ => ScriptedReply::text(""),
    })
}

async fn told(society: &Society) -> Vec<String> {
    let thread = society.thread(&"root".into(), &polis_domain::SubThreadPath::main()).await.unwrap();
    let name = |sender| if sender == Sender::Bot { "bot" } else { "user" };
    thread.messages.iter().map(|message| format!("{}: {}", name(message.sender), message.text)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_newest_messages_are_a_text_for_a_prompt() {
    let society = society(Phases::new().on("initial_phase", RecountHandler), model()).await;
    assert_eq!(ask(&society, "one").await.unwrap(), "initial_phase[User: one]");
    let second = ask(&society, "two\nlines").await.unwrap();
    assert_eq!(second, "initial_phase[User: one\n\nBot: initial_phase[User: one]\n\nUser: two\nlines]");
    let third = ask(&society, "three").await.unwrap();
    assert!(third.starts_with("initial_phase[User: two\nlines\n\nBot: "), "{third}");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_in_a_phase_is_found_again_in_a_later_one() {
    let society = society(WritingAgent, model()).await;
    let told = ask(&society, "fish").await.unwrap();
    assert_eq!(told, "<topic_outline fish> | <draft_writing fish> | -");
}

#[tokio::test(start_paused = true)]
async fn in_a_main_thread_it_is_the_last_time_that_counts() {
    struct DraftHandler;
    impl StateHandler for DraftHandler {
        async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
            let before = turn.said_in("draft_writing").await?.map_or("-".to_owned(), |message| message.text.clone());
            Ok(Response::new(format!("{} after {before}", turn.task().message)))
        }
    }
    let phases = Phases::new().on("draft_writing", DraftHandler).then("last_look").on("last_look", DraftHandler);
    let society = society(phases.then("draft_writing"), model()).await;
    // The first turn of a thread stands in `initial_phase`, whoever serves it.
    assert_eq!(ask(&society, "a").await.unwrap(), "a after -");
    assert_eq!(ask(&society, "b").await.unwrap(), "b after -");
    assert_eq!(ask(&society, "c").await.unwrap(), "c after -");
    assert_eq!(ask(&society, "d").await.unwrap(), "d after c after -");
    assert_eq!(ask(&society, "e").await.unwrap(), "e after c after -");
    assert_eq!(ask(&society, "f").await.unwrap(), "f after e after c after -");
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_thread_came_to_was_said_in_the_phase_that_ran_it() {
    struct AfterwardsHandler;
    impl StateHandler for AfterwardsHandler {
        async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
            let mut found = Vec::new();
            for phase in ["prepare_subthread", "execute_subthread"] {
                found.push(turn.said_in(phase).await?.map_or("-".to_owned(), |message| message.text.clone()));
            }
            Ok(Response::new(found.join(" | ")))
        }
    }
    let phases = Phases::new()
        .on("prepare_subthread", PrepareSubThread::default())
        .then("execute_subthread")
        .on("execute_subthread", ExecuteSubThread::of(DrawingAgent))
        .then("process_results")
        .on("process_results", AfterwardsHandler)
        .then("prepare_subthread");
    let society = society(phases, model()).await;
    assert_eq!(ask(&society, "fish").await.unwrap(), "<picture_drawing fish>");
    assert_eq!(ask(&society, "and now?").await.unwrap(), "- | <picture_drawing fish>");
    assert_eq!(ask(&society, "birds").await.unwrap(), "<picture_drawing birds>");
    assert_eq!(ask(&society, "and now?").await.unwrap(), "- | <picture_drawing birds>");
}

#[tokio::test(start_paused = true)]
async fn the_second_step_asks_several_sub_threads_the_same_and_puts_the_results_together() {
    let society = society(MagazineAgent, model()).await;
    let written = "<topic_outline fish> | <draft_writing fish> | -";
    let together = format!("{written}\n\n<picture_drawing fish>");
    assert_eq!(ask(&society, "fish").await.unwrap(), together);
    let drawn = "bot: <picture_drawing fish>".to_owned();
    assert_eq!(told(&society).await[1..], [format!("bot: {written}"), drawn, format!("bot: {together}")]);

    // What fails beside another is a sentence in the whole.
    let told = ask(&society, "nothing").await.unwrap();
    let (written, failed) = told.split_once("\n\n").unwrap();
    assert_eq!(written, "<topic_outline nothing> | <draft_writing nothing> | -");
    assert!(failed.starts_with("This came to nothing: ") && failed.contains("no paint"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn several_in_the_second_step_survive_a_crash_at_every_commit() {
    // The picture takes its time: else either might be the first to end.
    let model = || {
        ScriptedModel::new(|request| match request.messages.last() {
            Some(polis_ports::ChatMessage::User { text, .. }) if text.starts_with("picture") => {
                ScriptedReply::text("drawn").after(std::time::Duration::from_secs(3_600))
            }
            _ => ScriptedReply::text("written"),
        })
    };
    let cast = polis_engine::Cast::new().with("root", MagazineAgent);
    let survived = crash::at_every_commit(&cast, model, &["fish"]).await.unwrap();
    assert!(survived.stops > 20, "{} stops", survived.stops);
}
