//! Questions of running calls: to the person, and to models within the budgets of the calling agent.

use serde_json::json;

use super::budget::{self, Allowance};
use super::draft::Draft;
use super::effect;
use crate::spine::{OpenEffect, OpenKind, Stage};
use crate::{Answer, EffectId, Event, Inquiry, InquiryId, Level, OpenInquiry, Question, Refusal, Ruling, Spent, Verdict};

/// A running call asks the person or a model.
pub(super) fn inquire(draft: &mut Draft<'_>, id: EffectId, by: std::sync::Arc<str>, inquiry: Inquiry) -> Result<(), Refusal> {
    let turn = draft.turn(id.turn)?;
    if !matches!(draft.effect(id)?, OpenEffect { stage: Stage::Working, kind: OpenKind::Tool(_), .. }) {
        return Err(Refusal::NotWaiting(id));
    }
    let limit = draft.spine.limits.open_effects;
    if draft.spine.inquiries.keys().filter(|inquiry| inquiry.call == id).count() >= limit {
        return Err(Refusal::TooManyEffects { limit });
    }
    let (inquiry, permit) = match inquiry {
        inquiry @ Inquiry::Person { .. } => (inquiry, None),
        Inquiry::Model { model, request, prompt, reserve, about, ruling } => match ruling {
            Ruling::Deny(why) => return Err(Refusal::Denied { what: about, why }),
            Ruling::Ask(why) if !draft.spine.may_sample(&about, &turn.agent, &turn.task) => {
                let text =
                    format!("May the server `{by}` ask a model, on account of {}? {why}", draft.spine.shown_name(&turn.agent));
                let question =
                    Question { text: text.trim_end().to_owned(), wanted: crate::Wanted::Agreement, patience_ms: None };
                let details = json!({ "prompt": prompt, "tokens": reserve.tokens });
                (Inquiry::Person { question, details, about: Some(about) }, None)
            }
            ruling => {
                budget::check_call(draft, reserve)?;
                let permit = match budget::permit(draft, turn, reserve) {
                    Allowance::May(permit) => permit,
                    Allowance::Ask(lacking) => return Err(Refusal::UsedUp(lacking.iter().map(Level::to_string).collect())),
                    Allowance::Later => return Err(Refusal::BudgetBusy),
                };
                (Inquiry::Model { model, request, prompt, reserve, about, ruling }, permit)
            }
        },
    };
    if let Inquiry::Person { question, .. } = &inquiry {
        super::message::check_text(draft, &question.text)?;
    }
    draft.push_of(id, Event::CallInquired { id, by, inquiry, permit });
    Ok(())
}

/// Records the answer to a question, or that it is void.
pub(super) fn answer(draft: &mut Draft<'_>, id: InquiryId, answer: Answer, spent: Option<Spent>) -> Result<(), Refusal> {
    let open = draft.spine.inquiries.get(&id).ok_or(Refusal::NotAsked(id))?;
    let answer = match (open, answer) {
        (OpenInquiry::Person { wanted, .. }, Answer::Verdict(verdict)) => {
            Answer::Verdict(wanted.with_defaults(Verdict { by: draft.person.clone(), ..verdict }))
        }
        (_, answer) => answer,
    };
    match (open, &answer) {
        (OpenInquiry::Person { wanted, about }, Answer::Verdict(verdict)) => {
            effect::check_answer(draft, wanted, verdict)?;
            if let Some(about) = about {
                effect::allow_sampling(draft, id.call, about.clone(), verdict)?;
            }
        }
        (OpenInquiry::Person { .. }, Answer::Cancelled | Answer::Failed(_))
        | (OpenInquiry::Model(_), Answer::Reply(_) | Answer::Failed(_)) => {}
        _ => return Err(Refusal::NotWaiting(id.call)),
    }
    let spent = spent.filter(|_| matches!(open, OpenInquiry::Model(_)));
    draft.push_of(id.call, Event::CallAnswered { id, answer, spent });
    Ok(())
}
