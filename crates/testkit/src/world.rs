//! The environment of programmed agents: a model, three tools, and a person who makes the open decisions.

use std::sync::Arc;

use polis_domain::{CallResult, Effect, EffectClass, EffectId, Event, OpenKind, Outcome, Resolution, Seq, Stage, Verdict};
use polis_engine::Society;
use polis_ports::{ChatMessage, ModelRequest};

use crate::ScriptedTools;

/// The model's reply to a request.
pub fn model_reply(request: &ModelRequest) -> String {
    // What the engine tells an agent beside the request is no part of it.
    let is_told = |message: &&ChatMessage| matches!(message, ChatMessage::User { text, .. } if text.starts_with("[polis]"));
    match request.messages.iter().rfind(|message| !is_told(message)) {
        Some(ChatMessage::User { text: prompt, .. }) => format!("thought({prompt})"),
        _ => "thought()".to_owned(),
    }
}

/// One tool of each class: `look` reads, `stamp` may be repeated with its key, `mark` writes. Each time that one is really
/// done, `record` hears its class and key.
pub fn tools(record: impl Fn(EffectClass, &str) + Send + Sync + 'static) -> ScriptedTools {
    let record = Arc::new(record);
    let classes = [("look", EffectClass::Read), ("stamp", EffectClass::Idempotent), ("mark", EffectClass::Write)];
    classes.into_iter().fold(ScriptedTools::new(), |tools, (name, class)| {
        let record = record.clone();
        tools.with(name, class, move |argument, context| {
            record(class, &context.idempotency_key());
            result(name, argument)
        })
    })
}

fn result(tool: &str, argument: &str) -> CallResult {
    CallResult::good(format!("{tool}({argument})"))
}

/// Does what a careful person would: agrees to everything, and settles each doubtful write by looking whether it was done.
/// What fails now is tried again at the next call.
pub async fn resolve_open_decisions(society: &Society, was_done: impl Fn(&str) -> bool) {
    let asks = |kind: &OpenKind| matches!(kind, OpenKind::Approval(_) | OpenKind::Grant(_));
    let waiting = society.look(move |spine| {
        let effects = spine.turns.iter().flat_map(|(turn, state)| {
            state.open.iter().map(move |open| (EffectId { turn: *turn, n: open.n }, asks(&open.kind), open.stage))
        });
        effects.filter(|(_, asks, stage)| *asks || *stage == Stage::InDoubt).collect::<Vec<_>>()
    });
    for (id, asks, _) in waiting.await.unwrap_or_default() {
        let resolution = if asks {
            Resolution::Outcome(Outcome::Verdict(Verdict::yes()))
        } else {
            let Some((started, result)) = result_of(society, id).await else { continue };
            let Ok(seed) = society.look(move |spine| spine.seed_at(started)).await else { continue };
            match was_done(&format!("{seed:016x}/{id}")) {
                true => Resolution::Outcome(Outcome::Result(result)),
                false => Resolution::Again,
            }
        };
        let _ = society.resolve(id, resolution).await;
    }
}

/// Where a call was started, and the result that it must have had, from its arguments.
async fn result_of(society: &Society, id: EffectId) -> Option<(Seq, CallResult)> {
    let mut after = id.turn.0;
    loop {
        let page = society.log().read(society.id(), after, 256).await.ok()?;
        after = page.last().map(|recorded| recorded.seq).filter(|last| *last > Seq(0))?;
        let call = page.iter().find_map(|recorded| match &recorded.event {
            Event::EffectStarted { id: started, effect: Effect::Tool(call), .. } if *started == id => {
                Some((recorded.seq, call.clone()))
            }
            _ => None,
        });
        if let Some((started, call)) = call {
            return Some((started, result(&call.tool, &call.arguments)));
        }
    }
}
