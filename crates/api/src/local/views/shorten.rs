//! Makes records small: cuts long texts and leaves out what a view does not show at first.

use std::collections::HashSet;

use polis_domain::{Effect, EffectId, Meta, Spent, TaskId, ThreadId, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fold::Records;
use crate::{CallCost, EffectRecord, ThreadItem, TurnRecord};

/// The longest text of a brief record, in characters.
const BRIEF_TEXT: usize = 240;

/// The most entries of a list in a brief record.
const BRIEF_LIST: usize = 40;

/// The longest text of a step that is shown in full, in characters; a longer one is in the log and in its artifact.
const STEP_TEXT: usize = 16_000;

/// The most steps of a turn that a view shows in full.
pub(super) const MAX_STEPS: usize = 60;

/// The same value with long texts and lists cut.
pub(super) fn brief<T: Serialize + DeserializeOwned + Clone>(value: &T) -> T {
    cut(value, BRIEF_TEXT)
}

fn cut<T: Serialize + DeserializeOwned + Clone>(value: &T, most: usize) -> T {
    let cut = serde_json::to_value(value).map(|value| cut_value(value, most));
    cut.and_then(serde_json::from_value).unwrap_or_else(|_| value.clone())
}

fn cut_value(value: Value, most: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut_text(text, most)),
        Value::Array(list) => list.into_iter().take(BRIEF_LIST.max(most / 10)).map(|value| cut_value(value, most)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, cut_value(value, most))).collect::<Map<_, _>>().into(),
        other => other,
    }
}

/// The first `most` characters of a text, with a sign that there is more.
pub(super) fn cut_text(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Records {
    /// Keeps of everything below the turns `top` what a conversation shows before a step is opened: settled turns with their
    /// delegations only, open turns with their newest steps, and the lists of todos.
    pub(super) fn shorten(&mut self, top: &[TurnId]) {
        self.count_steps();
        let top: HashSet<TurnId> = top.iter().copied().collect();
        let open: HashSet<TurnId> = self.turns.values().filter(|turn| turn.settlement.is_none()).map(|turn| turn.id).collect();
        let mut retained: HashSet<EffectId> = HashSet::new();
        for turn in self.turns.values_mut() {
            let effects = std::mem::take(&mut turn.effects);
            let all = effects.len();
            let first = all.saturating_sub(MAX_STEPS);
            let is_open = open.contains(&turn.id);
            let is_kept = |(n, id): &(usize, EffectId)| {
                let delegates = self.effects.get(id).is_some_and(EffectRecord::is_delegation);
                delegates || (is_open && *n >= first)
            };
            turn.effects = effects.into_iter().enumerate().filter(is_kept).map(|(_, id)| id).collect();
            turn.omitted = all - turn.effects.len();
            turn.brief = !is_open || turn.omitted > 0;
            retained.extend(&turn.effects);
            if !is_open || !top.contains(&turn.id) {
                turn.task = brief(&turn.task);
            }
        }
        self.effects.retain(|id, _| retained.contains(id));
        for effect in self.effects.values_mut() {
            *effect = if open.contains(&effect.turn) { cut(effect, STEP_TEXT) } else { brief(effect) };
        }
        let shown: HashSet<ThreadId> = top.iter().filter_map(|id| self.turns.get(id)).map(|turn| turn.thread.clone()).collect();
        // Of turns below settled ones, those are kept that a delegation names.
        let named: HashSet<TurnId> = self.effects.values().flat_map(|effect| effect.children.iter().copied()).collect();
        self.turns.retain(|id, _| top.contains(id) || named.contains(id) || open.contains(id));
        for thread in self.threads.values_mut().filter(|thread| !shown.contains(&thread.id)) {
            if thread.turn.is_none() {
                let lists: Vec<u32> =
                    thread.messages.iter().filter(|(_, message)| is_todo_list(&message.meta)).map(|(n, _)| *n).collect();
                thread.messages.retain(|index, _| lists.contains(index));
                thread.items.retain(|item| match item {
                    ThreadItem::Message { index, .. } => lists.contains(index),
                    ThreadItem::Turn { turn } => self.turns.contains_key(turn),
                    ThreadItem::Heard { .. } => false,
                });
            }
            thread.meta = brief_order(&thread.meta);
        }
        self.threads.retain(|_, thread| thread.turn.is_some() || !thread.items.is_empty() || shown.contains(&thread.id));
    }

    /// Cuts the texts of all steps. At most `most` steps are kept.
    pub(super) fn outline(&mut self, most: usize) {
        self.count_steps();
        let retained: HashSet<EffectId> = self.effects.keys().copied().take(most).collect();
        self.effects.retain(|id, _| retained.contains(id));
        self.effects.values_mut().for_each(|effect| *effect = brief(effect));
        for turn in self.turns.values_mut() {
            let all = turn.effects.len();
            turn.effects.retain(|id| retained.contains(id));
            (turn.omitted, turn.brief) = (all - turn.effects.len(), true);
            turn.task = brief(&turn.task);
        }
        for thread in self.threads.values_mut() {
            thread.messages.values_mut().for_each(|message| *message = brief(message));
            thread.meta = brief_order(&thread.meta);
        }
    }

    /// Keeps the newest steps of one turn before a number in full, and of what was done for them only the turns themselves.
    pub(super) fn only_turn(&mut self, id: TurnId, before: u32) {
        self.count_steps();
        let Some(turn) = self.turns.get_mut(&id) else { return };
        let all = turn.effects.len();
        turn.effects.retain(|effect| effect.n < before);
        let first = turn.effects.len().saturating_sub(MAX_STEPS);
        turn.effects.drain(..first);
        turn.omitted = all - turn.effects.len();
        let retained: HashSet<EffectId> = turn.effects.iter().copied().collect();
        let thread = turn.thread.clone();
        self.effects.retain(|id, _| retained.contains(id));
        self.effects.values_mut().for_each(|effect| *effect = cut(effect, STEP_TEXT));
        let named: HashSet<TurnId> = self.effects.values().flat_map(|effect| effect.children.iter().copied()).collect();
        self.turns.retain(|turn, _| *turn == id || named.contains(turn));
        for turn in self.turns.values_mut().filter(|turn| turn.id != id) {
            (turn.omitted, turn.brief) = (turn.effects.len(), true);
            turn.effects.clear();
            turn.task = brief(&turn.task);
        }
        self.threads.retain(|id, _| *id == thread);
    }

    /// What single calls cost.
    pub(super) fn costs(&self) -> Vec<CallCost> {
        let spending = |effect: &EffectRecord| {
            let spent = effect.spent.filter(|spent| *spent != Spent::default())?;
            let turn = self.turns.get(&effect.turn)?;
            let name = match &effect.effect {
                Effect::Model { model, .. } => model.to_string(),
                Effect::Tool(call) => call.tool.to_string(),
                _ => String::new(),
            };
            let at = effect.ended_at.unwrap_or(effect.started_at);
            Some(CallCost { task: turn.task.id.clone(), agent: turn.agent.clone(), name, at, spent })
        };
        self.effects.values().filter_map(spending).collect()
    }

    /// What was spent for a request by the turns that are here.
    pub(super) fn spent_for(&self, task: &TaskId) -> Spent {
        let is_top = |turn: &&TurnRecord| turn.parent.is_none_or(|effect| !self.turns.contains_key(&effect.turn));
        let top = self.turns.values().filter(is_top).filter(|turn| turn.task.id == *task);
        top.fold(Spent::default(), |sum, turn| sum.plus(turn.spent))
    }

    fn count_steps(&mut self) {
        for turn in self.turns.values_mut() {
            let is_model = |id: &&EffectId| self.effects.get(id).is_some_and(|one| matches!(one.effect, Effect::Model { .. }));
            let last = turn.effects.iter().rfind(is_model).filter(|_| turn.settlement.is_some());
            let is_step = |id: &&EffectId| self.effects.get(id).is_some_and(|one| one.is_step(last == Some(id)));
            turn.steps = turn.effects.iter().filter(is_step).count();
        }
    }
}

fn is_todo_list(meta: &Meta) -> bool {
    meta.get("component").is_some_and(|component| component["component"] == "todo-list")
}

/// The order of a unit without its prompt: which todo it is about.
fn brief_order(meta: &Meta) -> Meta {
    let Some(order) = meta.get("workflow") else { return brief(meta) };
    Map::from_iter([("workflow".to_owned(), json!({ "todo": order["todo"] }))]).into()
}
