//! What happens when the todos of a plan are done: others have their say, and the verifier judges by what was recorded.

use polis_domain::Failure;

use super::super::answer::unverified;
use super::super::backend::{AgentBackend, AiMessage};
use super::super::phrases::phrases;
use super::super::proof::unproved_todos;
use super::super::transcript::results;
use super::super::work::stopped;
use super::super::{
    AgentType, Component, Done, Plan, RoleOutcome, SummaryResponse, VerifierResponse, WorkflowState, check_proof,
    verifier_message,
};
use super::Run;

/// What came of verifying.
pub(super) enum Verified {
    Answer(SummaryResponse),
    Improvements(Vec<String>),
    /// Nobody could judge.
    Nothing(Option<Failure>),
}

impl<B: AgentBackend> Run<'_, B> {
    /// What the verifier may cite of a todo.
    pub(super) fn note(&mut self, todo: &str, done: &Done) {
        let place = |index: usize| {
            if done.address.is_empty() { todo.to_owned() } else { format!("{}.messages[{index}]", done.address) }
        };
        for (at, call, result) in results(&done.transcript) {
            let call = call.meant();
            let came = if result.is_error { Err(&*result.content) } else { Ok(&*result.content) };
            let name = match &result.changed {
                Some(made) => self.evidence.changed_call(&place(at), todo, &call.name, made, came),
                None => self.evidence.call(&place(at), todo, &call.name, &call.arguments, came),
            };
            self.cited.push((name, place(at)));
        }
        if matches!(done.outcome, RoleOutcome::Executed { .. }) {
            let at = place(done.transcript.len());
            let name = self.evidence.message(&at, todo, done.text());
            self.cited.push((name, at));
        }
    }

    /// What the verifier has looked up itself, which it may cite as well.
    fn note_looks(&mut self, done: &Done) {
        for (at, call, result) in results(&done.transcript) {
            let place =
                if done.address.is_empty() { "verifier".to_owned() } else { format!("{}.messages[{at}]", done.address) };
            let came = if result.is_error { Err(&*result.content) } else { Ok(&*result.content) };
            let name = self.evidence.look(&place, &call.name, &call.arguments, came);
            self.cited.push((name, place));
        }
    }

    /// Asks the roles that others have added; gives what they want better.
    pub(super) async fn heard_of_others(&mut self, plan: &Plan) -> Result<Vec<String>, Failure> {
        let mut wanted = Vec::new();
        for role in &self.engine.roles {
            if self.backend.is_stopped() {
                return Err(stopped());
            }
            let (language, request) = (self.language, self.request.as_str());
            let state = WorkflowState { language, request, plan, evidence: &self.evidence };
            let Some(text) = role.message(&state) else { continue };
            let agent = role.agent();
            let mut order = self.order(agent.clone(), self.told(text), agent.name());
            order.rounds = role.rounds();
            let done = self.one(order).await?;
            if let RoleOutcome::Said { improvements, tasks, .. } = &done.outcome {
                self.evidence.refuse(tasks);
                let open = tasks.iter().filter(|task| !task.completed && improvements.is_empty());
                wanted.extend(improvements.iter().cloned());
                wanted.extend(open.map(|task| format!("{}: {}", task.id, task.feedback)));
                self.plan.get_or_insert_default().take_judgements(tasks);
            }
            let at = if done.address.is_empty() { agent.name().to_owned() } else { done.address.clone() };
            let name = self.evidence.word(&at, &agent, done.text());
            self.cited.push((name, at));
        }
        Ok(wanted)
    }

    /// Has the results judged. What is called done without proof is refused once (D27).
    pub(super) async fn verify(&mut self, plan: &Plan) -> Result<Verified, Failure> {
        let words = phrases(self.language);
        self.hear().await?;
        let mut objections = Vec::new();
        let mut is_refused = false;
        let mut rounds = self.settings.limits.verifier_rounds.max(1);
        let mut why = None;
        while rounds > 0 {
            if self.backend.is_stopped() {
                return Err(stopped());
            }
            let mut messages = self.told(verifier_message(self.language, &self.request, plan, &self.evidence));
            messages.extend(objections.iter().cloned());
            let done = self.one(self.order(AgentType::VERIFIER, messages, words.verifying)).await?;
            self.note_looks(&done);
            let response = match done.outcome {
                RoleOutcome::Verified { response } => response,
                RoleOutcome::Failed { failure } => {
                    why = Some(failure);
                    rounds -= 1;
                    continue;
                }
                _ => {
                    rounds -= 1;
                    continue;
                }
            };
            let problems = match check_proof(&response, plan, &self.evidence) {
                Ok(()) => return Ok(self.accepted(plan, response)),
                Err(unreadable) => unreadable,
            };
            if is_refused {
                return Ok(match response.is_final() {
                    true => {
                        let missing = self.unproved(&response, plan);
                        Verified::Answer(unverified(self.language, response.summary, missing))
                    }
                    false => self.accepted(plan, response),
                });
            }
            is_refused = true;
            objections.push(AiMessage::assistant(response.to_component().to_string()));
            let problems: String = problems.problems.iter().map(|problem| format!("\n- {problem}")).collect();
            let told = format!("[polis] {}{problems}\n{}", words.refused_proof, words.judge_again);
            objections.push(AiMessage::user(told));
        }
        Ok(Verified::Nothing(why))
    }

    /// What of an answer nothing shows, for the person.
    fn unproved(&self, response: &VerifierResponse, plan: &Plan) -> Vec<String> {
        let words = phrases(self.language);
        let todos = unproved_todos(response, plan, &self.evidence);
        let missing: Vec<_> = todos.iter().map(|todo| format!("{}: {}", todo.heading(), words.unproved)).collect();
        if missing.is_empty() { vec![words.bad_summary.to_owned()] } else { missing }
    }

    fn accepted(&mut self, plan: &Plan, response: VerifierResponse) -> Verified {
        if response.is_final() {
            return Verified::Answer(SummaryResponse { summary: response.summary, verified: true, missing: Vec::new() });
        }
        let mut judged = plan.clone();
        judged.take_judgements(&response.tasks);
        self.evidence.refuse(&response.tasks);
        self.plan = Some(judged);
        Verified::Improvements(response.improvements)
    }
}
