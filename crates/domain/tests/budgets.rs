//! Budgets: what a model call reserves and costs, kept a second time from the log alone; and cases for each rule.

use std::collections::BTreeMap;

use polis_domain::*;

use crate::invariants::Law;
use crate::laws::law;
use crate::support::*;

/// The books as an auditor keeps them.
#[derive(Default)]
pub(crate) struct Books {
    budgets: Budgets,
    members: BTreeMap<AgentId, (RoleId, Option<AgentId>)>,
    detached: Vec<AgentId>,
    turns: BTreeMap<TurnId, (AgentId, TaskId)>,
    asleep: Vec<TurnId>,
    calls: BTreeMap<EffectId, (Spent, Vec<BudgetScope>)>,
    /// Models that running calls have asked.
    samples: BTreeMap<InquiryId, (Spent, Vec<BudgetScope>)>,
    spent: BTreeMap<BudgetScope, Spent>,
    granted: BTreeMap<BudgetScope, Spent>,
}

/// What a call cost at least whose end nobody saw.
const ONE_REQUEST: Spent = Spent { tokens: 0, cost_nanos: 0, requests: 1, time_ms: 0, input_tokens: 0, cached_tokens: 0 };

impl Books {
    /// The ledger is what the log says; no call begins beyond a budget; and whoever is near its end is told.
    pub(crate) fn audit(&mut self, recorded: &Recorded, spine: &Spine) -> Law {
        match &recorded.event {
            Event::BudgetsSet { budgets } => self.budgets = (**budgets).clone(),
            Event::BudgetGranted { scope, more } => add(&mut self.granted, scope, *more),
            Event::AgentSpawned { agent, role, parent, .. } => {
                self.members.insert(agent.clone(), (role.clone(), parent.clone()));
            }
            Event::ConversationStarted { agent, role, .. } => {
                self.members.insert(agent.clone(), (role.clone(), None));
            }
            Event::AgentDismissed { agent, detach: true, .. } => self.detached.push(agent.clone()),
            Event::AgentTerminated { agent } => {
                let above = self.members.remove(agent).and_then(|(_, parent)| parent);
                let orphans = self.members.values_mut().filter(|(_, parent)| parent.as_ref() == Some(agent));
                if self.detached.contains(agent) {
                    orphans.for_each(|(_, parent)| parent.clone_from(&above));
                }
            }
            Event::TurnStarted { agent, task, .. } => {
                self.turns.insert(TurnId(recorded.seq), (agent.clone(), task.id.clone()));
            }
            Event::EffectStarted { id, effect: Effect::Model { reserve, .. }, permit } => {
                let scopes = self.scopes(id.turn);
                for scope in &scopes {
                    self.may_begin(scope, *reserve)?;
                }
                let is_near = scopes.iter().any(|scope| self.is_near(scope));
                let told = permit.as_ref().is_some_and(|permit| !permit.near.is_empty());
                law!(is_near == told, "near the end: {is_near}, and told so: {told}");
                self.calls.insert(*id, (*reserve, scopes));
            }
            Event::EffectStarted { id, effect: Effect::Grant { .. }, .. } => {
                let used_up = self.scopes(id.turn).into_iter().any(|scope| self.is_used_up(&scope));
                law!(used_up, "a person is asked although something is left everywhere");
            }
            Event::EffectRetried { id, spent, .. } => self.book(*id, *spent),
            Event::MemoryChanged { change: MemoryChange::Embedded { agent, spent, .. }, .. } => {
                add(&mut self.spent, &BudgetScope::Society, *spent);
                let mut above = agent.clone();
                if let Some((role, _)) = above.as_ref().and_then(|agent| self.members.get(agent)) {
                    add(&mut self.spent, &BudgetScope::Role(role.clone()), *spent);
                }
                while let Some(agent) = above {
                    add(&mut self.spent, &BudgetScope::Agent(agent.clone()), *spent);
                    above = self.members.get(&agent).and_then(|(_, parent)| parent.clone());
                }
            }
            Event::CallInquired { id, inquiry: Inquiry::Model { reserve, .. }, .. } => {
                let scopes = self.scopes(id.turn);
                for scope in &scopes {
                    self.may_begin(scope, *reserve)?;
                }
                self.samples.insert(InquiryId { call: *id, seq: recorded.seq }, (*reserve, scopes));
            }
            Event::CallAnswered { id, spent, .. } => {
                if let Some((_, scopes)) = self.samples.remove(id) {
                    scopes.iter().for_each(|scope| add(&mut self.spent, scope, spent.unwrap_or_default()));
                }
            }
            Event::EffectDoubted { id } => self.cut_samples(|inquiry| inquiry.call == *id),
            Event::EffectEnded { id, spent, .. } => {
                self.cut_samples(|inquiry| inquiry.call == *id);
                self.book(*id, spent.unwrap_or_default());
                self.calls.remove(id);
            }
            Event::TurnParked { turn, .. } => {
                self.asleep.push(*turn);
                self.cut_samples(|inquiry| inquiry.call.turn == *turn);
            }
            Event::TurnResumed { turn, .. } => self.asleep.retain(|asleep| asleep != turn),
            Event::TurnSettled { turn, .. } => {
                self.asleep.retain(|asleep| asleep != turn);
                let cut: Vec<_> = self.calls.keys().filter(|id| id.turn == *turn).copied().collect();
                for id in cut {
                    self.book(id, ONE_REQUEST);
                    self.calls.remove(&id);
                }
                self.cut_samples(|inquiry| inquiry.call.turn == *turn);
            }
            Event::MessageSent { envelope, .. } if envelope.to.is_user() && envelope.kind != MessageKind::Message => {
                let scope = BudgetScope::Task(envelope.task_id.clone());
                if self.reserved(&scope) == Spent::default() {
                    self.spent.remove(&scope);
                    self.granted.remove(&scope);
                }
            }
            _ => {}
        }
        self.agree(spine)
    }

    fn agree(&self, spine: &Spine) -> Law {
        let scopes = self.spent.keys().chain(self.granted.keys()).chain(spine.ledger.keys());
        for scope in scopes {
            let account = spine.ledger.get(scope).copied().unwrap_or_default();
            let kept =
                Account { spent: get(&self.spent, scope), reserved: self.reserved(scope), granted: get(&self.granted, scope) };
            law!(account == kept, "{scope}: the ledger has {account:?}, the log {kept:?}");
        }
        Ok(())
    }

    fn scopes(&self, turn: TurnId) -> Vec<BudgetScope> {
        let Some((agent, task)) = self.turns.get(&turn) else { return Vec::new() };
        let mut scopes = vec![BudgetScope::Society, BudgetScope::Task(task.clone())];
        scopes.extend(self.members.get(agent).map(|(role, _)| BudgetScope::Role(role.clone())));
        let mut next = Some(agent.clone());
        while let Some(agent) = next {
            next = self.members.get(&agent).and_then(|(_, parent)| parent.clone());
            scopes.push(BudgetScope::Agent(agent));
        }
        scopes
    }

    fn may_begin(&self, scope: &BudgetScope, call: Spent) -> Law {
        let (spent, reserved) = (get(&self.spent, scope), self.reserved(scope));
        for (of, limit) in self.limits(scope) {
            law!(amount(spent, of) < limit, "{scope} has used up its {limit} {of:?}");
            let all = amount(spent, of) + amount(reserved, of) + amount(call, of);
            law!(reserved == Spent::default() || all <= limit, "{scope}: {all} {of:?} under way beyond {limit}");
        }
        Ok(())
    }

    fn is_used_up(&self, scope: &BudgetScope) -> bool {
        self.limits(scope).iter().any(|(of, limit)| amount(get(&self.spent, scope), *of) >= *limit)
    }

    fn is_near(&self, scope: &BudgetScope) -> bool {
        let used = get(&self.spent, scope).plus(self.reserved(scope));
        self.limits(scope).iter().any(|(of, limit)| amount(used, *of) * 100 >= *limit * 80)
    }

    fn limits(&self, scope: &BudgetScope) -> Vec<(Counted, u64)> {
        let (budget, granted) = (self.budgets.of(scope), get(&self.granted, scope));
        let all = [Counted::Tokens, Counted::Cost, Counted::Requests, Counted::Time];
        all.into_iter().filter_map(|of| Some((of, budget.get(of)? + amount(granted, of)))).collect()
    }

    fn reserved(&self, scope: &BudgetScope) -> Spent {
        let awake = self.calls.iter().filter(|(id, _)| !self.asleep.contains(&id.turn));
        let here = awake.filter(|(_, (_, scopes))| scopes.contains(scope));
        let samples = self.samples.values().filter(|(_, scopes)| scopes.contains(scope)).map(|(amount, _)| *amount);
        here.map(|(_, (amount, _))| *amount).chain(samples).fold(Spent::default(), Spent::plus)
    }

    /// Nobody waits any more for what these calls asked of models.
    fn cut_samples(&mut self, of: impl Fn(&InquiryId) -> bool) {
        for (_, (_, scopes)) in self.samples.extract_if(.., |inquiry, _| of(inquiry)) {
            scopes.iter().for_each(|scope| add(&mut self.spent, scope, ONE_REQUEST));
        }
    }

    fn book(&mut self, id: EffectId, cost: Spent) {
        let Some((_, scopes)) = self.calls.get(&id) else { return };
        scopes.iter().for_each(|scope| add(&mut self.spent, scope, cost));
    }
}

fn amount(spent: Spent, of: Counted) -> u64 {
    match of {
        Counted::Tokens => spent.tokens,
        Counted::Cost => spent.cost_nanos,
        Counted::Requests => spent.requests,
        Counted::Time => spent.time_ms,
    }
}

fn get(accounts: &BTreeMap<BudgetScope, Spent>, scope: &BudgetScope) -> Spent {
    accounts.get(scope).copied().unwrap_or_default()
}

fn add(accounts: &mut BTreeMap<BudgetScope, Spent>, scope: &BudgetScope, more: Spent) {
    let account = accounts.entry(scope.clone()).or_default();
    *account = account.plus(more);
}

fn tokens(tokens: u64) -> Budget {
    Budget { tokens: Some(tokens), ..Budget::default() }
}

fn within(budgets: Budgets) -> Society {
    let mut society = four_agents();
    society.command(Command::SetBudgets { budgets: budgets.into() }, NOON).unwrap();
    society.command(submit("a", "one"), NOON).unwrap();
    society
}

fn asks(society: &Society, agent: &str, reserve: u64) -> Command {
    let turn = society.spine.agents[&AgentId::from(agent)].turn.unwrap();
    let reserve = Spent { tokens: reserve, requests: 1, ..Spent::default() };
    let model =
        Effect::Model { model: "m".into(), request: Digest::of(["r"]), reserve, tools: None, aside: false, purpose: "".into() };
    Command::DeclareEffects { turn, n: society.spine.turns[&turn].next, effects: vec![model] }
}

fn replies(society: &Society, agent: &str, tokens: u64) -> Command {
    let turn = society.spine.agents[&AgentId::from(agent)].turn.unwrap();
    let usage = Usage { output_tokens: tokens, ..Usage::default() };
    let id = EffectId { turn, n: society.spine.turns[&turn].open[0].n };
    let spent = Some(Spent::request(usage, 5));
    Command::End { id, outcome: Outcome::Reply(Reply { usage, ..Reply::default() }), spent, at: NOON }
}

fn is_grant(said: &[Said]) -> bool {
    matches!(&said[0].1, Event::EffectStarted { effect: Effect::Grant { .. }, .. })
}

#[test]
fn a_budget_that_is_used_up_asks_the_person_and_a_grant_is_one_more_measure() {
    let mut society = within(Budgets { society: tokens(100), ..Budgets::default() });
    for used in [70, 60] {
        let began = society.command(asks(&society, "a", 80), NOON).unwrap();
        assert!(!is_grant(&began));
        society.command(replies(&society, "a", used), NOON).unwrap();
    }
    assert!(is_grant(&society.command(asks(&society, "a", 1), NOON).unwrap()));
    let turn = society.spine.agents[&AgentId::from("a")].turn.unwrap();
    let verdict = |approved| Resolution::Outcome(Outcome::Verdict(Verdict { approved, ..Verdict::yes() }));
    let refused = Command::Resolve { id: EffectId { turn, n: 2 }, resolution: verdict(false) };
    assert_eq!(society.command(refused, NOON).unwrap().len(), 1, "no grant follows a no");
    assert!(is_grant(&society.command(asks(&society, "a", 1), NOON).unwrap()));
    let granted = society.command(Command::Resolve { id: EffectId { turn, n: 3 }, resolution: verdict(true) }, NOON).unwrap();
    let more = Spent { tokens: 130, ..Spent::default() };
    assert_eq!(granted[0].1, Event::BudgetGranted { scope: BudgetScope::Society, more });
    assert!(!is_grant(&society.command(asks(&society, "a", 1), NOON).unwrap()));
    society.assert_replays();
}

#[test]
fn one_word_for_a_budget_answers_all_who_wait_for_it() {
    for approved in [true, false] {
        let mut society = within(Budgets { society: tokens(100), ..Budgets::default() });
        society.command(submit("b", "two"), NOON).unwrap();
        society.command(asks(&society, "a", 80), NOON).unwrap();
        society.command(replies(&society, "a", 130), NOON).unwrap();
        assert!(is_grant(&society.command(asks(&society, "a", 1), NOON).unwrap()));
        assert!(is_grant(&society.command(asks(&society, "b", 1), NOON).unwrap()));
        let turn = |society: &Society, agent: &str| society.spine.agents[&AgentId::from(agent)].turn.unwrap();
        let waits = |society: &Society, agent: &str| !society.spine.turns[&turn(society, agent)].open.is_empty();
        let verdict = Verdict { approved, ..Verdict::yes() };
        let id = EffectId { turn: turn(&society, "a"), n: 1 };
        let resolve = |verdict| Command::Resolve { id, resolution: Resolution::Outcome(Outcome::Verdict(verdict)) };
        let wordy = resolve(Verdict { always: Some(Always::Tool), ..verdict.clone() });
        assert!(matches!(society.command(wordy, NOON), Err(Refusal::BadAnswer(_))));
        let said = society.command(resolve(verdict), NOON).unwrap();
        assert_eq!((waits(&society, "a"), waits(&society, "b")), (false, !approved), "{said:?}");
        let grants = said.iter().filter(|said| matches!(said.1, Event::BudgetGranted { .. })).count();
        assert_eq!(grants, usize::from(approved), "granted once");
        society.assert_replays();
    }
}

#[test]
fn calls_beside_each_other_stay_within_a_budget_and_wait_for_room() {
    let mut society = within(Budgets { society: tokens(100), ..Budgets::default() });
    society.command(submit("b", "two"), NOON).unwrap();
    society.command(asks(&society, "a", 60), NOON).unwrap();
    assert_eq!(society.command(asks(&society, "b", 41), NOON), Err(Refusal::BudgetBusy));
    society.command(replies(&society, "a", 59), NOON).unwrap();
    society.command(asks(&society, "b", 41), NOON).unwrap();
}

#[test]
fn an_agent_spends_from_the_accounts_above_it_and_a_request_from_its_own() {
    let budgets = Budgets { agent: tokens(100), task: tokens(50), ..Budgets::default() };
    let mut society = within(budgets);
    society.command(asks(&society, "a", 10), NOON).unwrap();
    society.command(replies(&society, "a", 30), NOON).unwrap();
    let spent = |scope: &str| society.spine.ledger[&scope.parse().unwrap()].spent.tokens;
    assert_eq!(["society", "agent:root", "agent:a", "role:worker", "task:t"].map(spent), [30; 5]);
    assert!(!society.spine.ledger.contains_key(&BudgetScope::Agent("b".into())));
    // Near its end, the agent is told.
    let began = society.command(asks(&society, "a", 10), NOON).unwrap();
    assert!(matches!(&began[0].1, Event::EffectStarted { permit: Some(permit), .. } if permit.near.is_empty()));
    society.command(replies(&society, "a", 15), NOON).unwrap();
    let began = society.command(asks(&society, "a", 10), NOON).unwrap();
    let Event::EffectStarted { permit: Some(permit), .. } = &began[0].1 else { panic!("{began:?}") };
    assert_eq!(permit.near.iter().map(ToString::to_string).collect::<Vec<_>>(), ["45 of 50 tokens of task `t` are used"]);
}

#[test]
fn an_answer_says_what_the_request_cost_and_closes_its_account() {
    let mut society = within(Budgets::default());
    society.command(asks(&society, "a", 10), NOON).unwrap();
    society.command(replies(&society, "a", 30), NOON).unwrap();
    let turn = society.spine.agents[&AgentId::from("a")].turn.unwrap();
    let result = TurnResult::Done { message: None, answer: "so".into(), next: Vec::new() };
    let settled = society.command(Command::Settle { turn, result }, NOON).unwrap();
    let envelope = settled.iter().find_map(|(_, event)| event.envelope()).unwrap();
    assert_eq!(envelope.payload.meta["usage"], serde_json::json!({ "tokens": 30, "costNanos": 0, "requests": 1, "timeMs": 5 }));
    assert!(!society.spine.ledger.contains_key(&BudgetScope::Task("t".into())));
    assert_eq!(society.spine.ledger[&BudgetScope::Society].spent.tokens, 30);
}

#[test]
fn one_call_alone_may_be_too_large() {
    let mut society = within(Budgets { call: tokens(50), ..Budgets::default() });
    let refused = society.command(asks(&society, "a", 51), NOON).unwrap();
    assert!(matches!(&refused[0].1, Event::EffectRefused { failure, .. } if &*failure.code == "call_too_large"));
    society.command(asks(&society, "a", 50), NOON).unwrap();
}

fn retry(turn: TurnId, code: &'static str) -> Command {
    let attempt = Attempt {
        model: "m".into(),
        attempt: 1,
        max_retries: 3,
        failure: Failure::new(code, "down"),
        delay_ms: 1_000,
        next: "m".into(),
    };
    Command::Retry { id: EffectId { turn, n: 0 }, attempt, spent: Spent::request(Usage::default(), 0) }
}

#[test]
fn an_attempt_that_a_restart_notes_is_no_step_further_and_one_that_failed_is() {
    for (code, revived) in [("model_interrupted", 1), ("model_failed", 0)] {
        let mut society = within(Budgets::default());
        society.command(asks(&society, "a", 60), NOON).unwrap();
        let turn = society.spine.agents[&AgentId::from("a")].turn.unwrap();
        society.command(Command::Revive, NOON).unwrap();
        society.command(retry(turn, code), NOON).unwrap();
        assert_eq!(society.spine.turns[&turn].revived, revived, "{code}");
    }
}

#[test]
fn an_attempt_in_vain_counts_as_a_request_and_what_stands_still_reserves_nothing() {
    let mut society = within(Budgets { society: tokens(100), ..Budgets::default() });
    society.command(asks(&society, "a", 60), NOON).unwrap();
    let turn = society.spine.agents[&AgentId::from("a")].turn.unwrap();
    society.command(retry(turn, "model_failed"), NOON).unwrap();
    let account = |society: &Society| society.spine.ledger[&BudgetScope::Society];
    assert_eq!((account(&society).spent.requests, account(&society).reserved.tokens), (1, 60));
    society.command(Command::Park { turn, reason: Failure::new("x", "x") }, NOON).unwrap();
    assert_eq!(account(&society).reserved, Spent::default());
    society.command(Command::Resume { turn }, NOON).unwrap();
    assert_eq!(account(&society).reserved.tokens, 60);
    society.command(replies(&society, "a", 10), NOON).unwrap();
    let spent = Spent { tokens: 10, requests: 2, time_ms: 5, ..Spent::default() };
    assert_eq!((account(&society).spent, account(&society).reserved), (spent, Spent::default()));
}

#[test]
fn a_budget_that_is_raised_frees_whoever_waits_for_more() {
    let mut society = within(Budgets { society: tokens(10), ..Budgets::default() });
    society.command(asks(&society, "a", 10), NOON).unwrap();
    society.command(replies(&society, "a", 30), NOON).unwrap();
    assert!(is_grant(&society.command(asks(&society, "a", 1), NOON).unwrap()));
    let set = |limit| Command::SetBudgets { budgets: Budgets { society: tokens(limit), ..Budgets::default() }.into() };
    assert_eq!(society.command(set(30), NOON).unwrap().len(), 1, "30 of 30 are used");
    let freed = society.command(set(31), NOON).unwrap();
    assert!(matches!(&freed[0].1, Event::EffectEnded { outcome: Outcome::Verdict(verdict), .. } if verdict.approved));
}
