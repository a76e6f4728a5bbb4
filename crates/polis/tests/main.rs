//! The code in the documents stands here too, word for word, so it is compiled and run. `polis-app` checks that each block is here.
#![cfg(test)]

use std::sync::Arc;

use polis::{
    Agent, ExecuteSubThread, Failure, InteractionUnit, Message, Operation, Phase, Phases, PrepareSubThread, Progress, Response,
    StateHandler, SubThreadAgent, Turn, Units,
};
use polis_testkit::{ScriptedModel, ScriptedReply, ask, society};

/// Has the model say something about the phase and the request.
struct Thinks;

impl StateHandler for Thinks {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let prompt = format!("{} {}", turn.phase(), turn.task().message);
        Ok(Response::new(turn.generate(prompt).await?))
    }
}

/// Reports that it has read what was said.
struct Reads;

impl InteractionUnit for Reads {
    async fn user_message(&self, bot: &Message, _turn: &mut Turn) -> Result<String, Failure> {
        Ok(format!("read {}", bot.text))
    }
}

use Reads as DraftReviewUnit;
use Reads as DraftWritingUnit;
use Reads as SourceSearchUnit;
use Reads as SourceWeighingUnit;
use Thinks as DraftReviewHandler;
use Thinks as DraftWritingHandler;
use Thinks as OutlineHandler;
use Thinks as SourceSearchHandler;
use Thinks as SourceWeighingHandler;

struct ArticleAgent;

#[rustfmt::skip]
impl Agent for ArticleAgent {
    fn operations(&self) -> Vec<Operation> {
        vec![Operation::new("again", "Try again", "again").with_meta("_ui_action", "retry").translated("zh", "再试一次", "再来一次")]
    }

    #[rustfmt::skip]
    fn phases(&self) -> Phases {
        Phases::new()
            .on("initial_phase", OutlineHandler).then("draft_writing")
            .on("draft_writing", DraftWritingHandler).then("completed")
    }
}

#[rustfmt::skip]
fn sources() -> Units {
    Units::new()
        .on("initial_phase", SourceSearchUnit).with_handler(SourceSearchHandler).then("source_weighing")
        .on("source_weighing", SourceWeighingUnit).with_handler(SourceWeighingHandler).then("completed")
}

struct ReviewAgent;

#[rustfmt::skip]
impl SubThreadAgent for ReviewAgent {
    fn units(&self) -> Units {
        Units::new()
            .on("draft_writing", DraftWritingUnit).with_handler(DraftWritingHandler).then("draft_review")
            .on("draft_review", DraftReviewUnit).with_handler(DraftReviewHandler).then("completed")
    }

    fn max_interactions(&self) -> usize {
        8
    }

    fn is_terminal(&self, phase: &Phase) -> bool {
        phase.as_str() == "completed"
    }

    // `progress` has what was done (`results`), the sub-thread (`thread`) and what its units suggest (`next`).
    async fn next_unit(&self, progress: &Progress, _turn: &mut Turn) -> Result<Phase, Failure> {
        let is_sent_back = progress.results.last().is_some_and(|last| last.bot.text.starts_with("Again"));
        if is_sent_back { Ok(Phase::new("draft_writing")?) } else { Ok(progress.next.clone()) }
    }

    async fn summarize(&self, progress: &Progress, turn: &mut Turn) -> Result<String, Failure> {
        turn.generate(format!("Sum up:\n{}", progress.last_bot_text())).await
    }

    async fn system_prompt(&self, _turn: &mut Turn) -> Result<Arc<str>, Failure> {
        Ok(include_str!("prompt/draft_review_system_prompt.md").into())
    }
}

/// Starts a sub-thread in two steps.
fn two_steps(agent: impl SubThreadAgent) -> Phases {
    let prepare = Phases::new().on("prepare_subthread", PrepareSubThread::default()).then("execute_subthread");
    prepare.on("execute_subthread", ExecuteSubThread::of(agent)).then("prepare_subthread")
}

/// What was said in the sub-thread of the second message.
async fn inside(society: &polis::Society) -> Vec<String> {
    let thread = society.thread(&"root".into(), &polis::SubThreadPath::create(1)).await.unwrap();
    thread.messages.into_iter().map(|message| message.text.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_test_in_the_documents_runs() -> Result<(), Failure> {
    let society = polis_testkit::society(ArticleAgent, ScriptedModel::saying("1. Gills")).await;
    assert_eq!(polis_testkit::ask(&society, "fish").await?, "1. Gills");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_sub_threads_in_the_documents_do_what_is_said_of_them() {
    let said = || ScriptedModel::new(|request| ScriptedReply::text(&polis_testkit::world::model_reply(request)));
    let society = society(two_steps(sources()), said()).await;
    ask(&society, "fish").await.unwrap();
    assert_eq!(inside(&society).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_review_in_the_documents_sends_back_and_gives_up() {
    for (verdict, rounds, told) in [("Good.", 3, "summed up"), ("Again.", 12, "(too_many_interactions)")] {
        let model = ScriptedModel::new(move |request| match format!("{:?}", request.messages.last()) {
            asked if asked.contains("Sum up") => ScriptedReply::text("summed up"),
            asked if asked.contains("draft_review") => ScriptedReply::text(verdict),
            _ => ScriptedReply::text(&request.system),
        });
        let society = society(two_steps(ReviewAgent), model).await;
        let answer = ask(&society, "fish").await.unwrap();
        assert!(answer.ends_with(told), "{answer}");
        let inside = inside(&society).await;
        assert_eq!((inside.len(), inside[0].starts_with("You review a draft.")), (rounds, true), "{inside:?}");
    }
}

/// Measures what a task is about.
struct Measure;

impl polis::role::Action for Measure {
    async fn run(
        &self,
        turn: &mut Turn,
        _: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<polis::role::ActionResult, Failure> {
        Ok(format!("{} messages", turn.task().message.len()).into())
    }
}

#[rustfmt::skip]
#[test]
fn the_role_in_the_documents_can_be_cast() {
    use polis::Cast;
    use polis::role::{AgentBaseRole, InternalPlan, InternalStep, Member, RoleParts, Sops, TaskInfo, WORK};

    struct AnalystRole { parts: RoleParts }

    impl AgentBaseRole for AnalystRole {
        fn parts(&self) -> &RoleParts { &self.parts }
        fn create_simple_plan(&self, task: &TaskInfo) -> InternalPlan {
            InternalPlan::new([InternalStep::action("look", "Measure", "measure it"), InternalStep::action("tell", WORK, task.description.clone())])
        }
    }

    let parts = RoleParts::new("analyst").with_action("Measure", Measure).with_sops(Sops::folder("sops")).with_collaborator("writer", "texts");
    let cast = Cast::new().with("analyst", Member(AnalystRole { parts }));
    assert!(cast.check().is_ok());
}

/// A tool that the turn does itself, written against this library alone.
struct NamingTool;

impl polis::TurnTool for NamingTool {
    fn spec(&self) -> polis::ToolSpec {
        let (description, parameters) = ("Says who you are.".to_owned(), ().into());
        polis::ToolSpec { name: "name".into(), description, parameters, class: polis::EffectClass::Read, volatile: false }
    }

    async fn call(&self, turn: &mut Turn, _arguments: &str) -> polis::CallResult {
        polis::CallResult::good(turn.agent().as_str())
    }
}

/// Calls it.
struct NamingAgent;

impl Agent for NamingAgent {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let call = polis::ToolCall { id: "1".into(), name: "name".into(), arguments: "{}".into() };
        Ok(Response::new(turn.call_tool(call).await.content.to_string()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_ones_own_needs_no_other_crate() {
    let cast = polis::Cast::new().with("root", NamingAgent).with_tool(NamingTool);
    let society = polis_testkit::open(cast, polis::Ports::new(polis_testkit::MemoryLog::new())).await;
    assert_eq!(ask(&society, "Who are you?").await.unwrap(), "root");
}

/// Compiled by the step `feature sets` of `cargo xtask test`, which builds these tests with all features.
#[cfg(feature = "serve")]
mod served {
    use super::ArticleAgent;
    use polis::prelude::*;

    #[allow(dead_code, reason = "it serves until Ctrl-C")]
    #[rustfmt::skip]
    fn main() -> std::process::ExitCode {
        polis::serve(Cast::new().with("article", ArticleAgent), Role::new("root", "article"))
    }
}

/// Calls whose code has changed while turns are open.
struct ChangedAgent;

#[rustfmt::skip]
impl Agent for ChangedAgent {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let prompt = "draft";
        let request = ModelRequest { purpose: "draft".into(), ..prompt.into() };
        let reply = turn.model(request).await?;
        if turn.version("review", 1..=2).await >= 2 {
            turn.generate("check the draft").await?;
        }
        Ok(Response::new(reply.text))
    }
}

use ChangedAgent as OldArticleAgent;
use polis::{Cast, ModelRequest};

#[rustfmt::skip]
#[tokio::test(start_paused = true)]
async fn the_changes_in_the_documents_are_versions() {
    let society = society(ChangedAgent, ScriptedModel::saying("said")).await;
    assert_eq!(ask(&society, "fish").await.unwrap(), "said");
    let cast = Cast::new().with_version("article", 2, ArticleAgent).with_version("article", 1, OldArticleAgent);
    assert!(cast.check().is_ok());
}

#[rustfmt::skip]
#[test]
fn the_prompts_in_the_documents_have_their_business_context() -> Result<(), Box<dyn std::error::Error>> {
    use polis::workflow::{AgentType, Language, PromptManager};

    let text = "Prices are with tax.".to_owned();
    let mut prompts = PromptManager::new(Language::En).with_folder("prompts");
    prompts.set_business_context(AgentType::PLANNER, "We sell tea.");      // comes before the file
    prompts.set_all_business_contexts([(AgentType::VERIFIER, text)]);
    prompts.set_system_context("Prices are in euros.");                    // for roles that have neither
    let prompt = prompts.get_prompt(&AgentType::PLANNER)?;                 // text, language, where the context came from
    assert!(prompt.text.contains("We sell tea."));
    Ok(())
}
