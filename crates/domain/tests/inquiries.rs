//! Questions to the person, and what running calls ask: of the person, and of models.

use polis_domain::*;
use serde_json::json;

use crate::commands::Chooser;
use crate::support::*;

/// Questions of random societies.
impl Chooser<'_> {
    /// What an answer must be.
    pub(crate) fn wanted(&mut self) -> Wanted {
        let options = || vec!["yes".to_owned(), "red".to_owned()];
        let schema = json!({ "properties": { "colour": { "type": "string" } } });
        let all = [
            Wanted::Agreement,
            Wanted::Agreement,
            Wanted::Text { options: Vec::new() },
            Wanted::Text { options: options() },
            Wanted::Form { schema },
            Wanted::Visit { url: "https://a.example".to_owned() },
        ];
        self.pick(&all).clone()
    }

    /// Words that answer some questions and not others.
    pub(crate) fn words(&mut self) -> Value {
        self.pick(&[json!("red"), json!("yes"), json!({ "colour": "red" }), json!({ "size": 1 })]).clone()
    }
}

fn at_work(effects: Vec<Effect>) -> Society {
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    society.command(begin(effect(8, 0), effects), NOON).unwrap();
    society
}

fn person(wanted: Wanted) -> Inquiry {
    Inquiry::Person {
        question: Question { text: "who?".to_owned(), wanted, patience_ms: None },
        details: ().into(),
        about: None,
    }
}

fn model(reserve: u64, ruling: Ruling) -> Inquiry {
    let reserve = Spent { tokens: reserve, requests: 1, ..Spent::default() };
    let (model, request, prompt) = ("m".into(), Digest::of(["r"]), "say".to_owned());
    Inquiry::Model { model, request, prompt, reserve, about: "s__sampling".into(), ruling }
}

fn inquire(inquiry: Inquiry) -> Command {
    Command::Inquire { id: effect(8, 0), by: "s".into(), inquiry }
}

fn answer(id: InquiryId, answer: Answer) -> Command {
    Command::Answer { id, answer, spent: Some(Spent { tokens: 7, requests: 1, ..Spent::default() }) }
}

/// The inquiry that was asked last.
fn last(society: &Society) -> InquiryId {
    InquiryId { call: effect(8, 0), seq: society.spine.seq }
}

fn resolve(n: u32, verdict: Verdict) -> Command {
    Command::Resolve { id: effect(8, n), resolution: Resolution::Outcome(Outcome::Verdict(verdict)) }
}

#[test]
fn a_tool_that_is_a_question_waits_for_words_and_takes_only_those_that_answer_it() {
    let Effect::Tool(tool) = call(EffectClass::Read) else { panic!() };
    let options = vec!["red".to_owned(), "blue".to_owned()];
    let ruling = Ruling::Person(Question::words("which?", options));
    let mut society = at_work(vec![Effect::Tool(Box::new(Call { ruling, ..*tool }))]);
    assert!(matches!(society.spine.open_effect(effect(8, 0)).unwrap().kind, OpenKind::Question(_)));
    for wrong in [Verdict::yes(), Verdict::words("green"), Verdict { answer: Some(json!(7)), ..Verdict::yes() }] {
        let refused = society.command(resolve(0, wrong), NOON).unwrap_err();
        assert_eq!(refused.code(), "bad_answer");
    }
    let said = society.command(resolve(0, Verdict::words("blue")), NOON).unwrap();
    assert_eq!(said, [under("a", ended(effect(8, 0), Outcome::Verdict(Verdict::words("blue"))))]);
    assert_eq!(society.command(resolve(0, Verdict::words("red")), NOON), Err(Refusal::NotOpen(effect(8, 0))));
}

#[test]
fn a_call_asks_while_it_runs_and_its_question_goes_with_it() {
    let wanted = || Wanted::Form { schema: json!({ "properties": { "name": { "type": "string" } } }) };
    let filled = || Verdict { answer: Some(json!({ "name": "Ada" })), ..Verdict::yes() };
    let mut society = at_work(vec![call(EffectClass::Write)]);
    society.command(inquire(person(wanted())), NOON).unwrap();
    let id = last(&society);
    assert!(society.spine.is_asking(effect(8, 0)) && !society.spine.is_asking(effect(8, 1)));
    let bad = society.command(answer(id, Answer::Verdict(Verdict::words("Ada"))), NOON).unwrap_err();
    assert_eq!(bad.code(), "bad_answer");
    let said = society.command(answer(id, Answer::Verdict(filled())), NOON).unwrap();
    assert_eq!(said, [under("a", Event::CallAnswered { id, answer: Answer::Verdict(filled()), spent: None })]);
    assert_eq!(society.command(answer(id, Answer::Cancelled), NOON), Err(Refusal::NotAsked(id)));

    for (end, is_open) in [
        (Command::End { id: effect(8, 0), outcome: result("done"), spent: None, at: NOON }, false),
        (Command::Doubt { id: effect(8, 0) }, true),
        (Command::Park { turn: turn(8), reason: Failure::new("stuck", "stuck") }, true),
        (Command::Cancel { target: Target::Turn(turn(8)), reason: String::new(), said: Vec::new() }, false),
    ] {
        let mut society = at_work(vec![call(EffectClass::Write)]);
        society.command(inquire(person(Wanted::Agreement)), NOON).unwrap();
        let id = last(&society);
        society.command(end, NOON).unwrap();
        assert!(society.spine.inquiries.is_empty());
        assert_eq!(society.command(answer(id, Answer::Cancelled), NOON), Err(Refusal::NotAsked(id)));
        assert_eq!(society.spine.open_effect(effect(8, 0)).is_some(), is_open);
        society.command(inquire(person(Wanted::Agreement)), NOON).unwrap_err();
        society.assert_replays();
    }
}

#[test]
fn what_a_call_asks_of_a_model_is_reserved_booked_and_given_back_in_the_callers_accounts() {
    let mut society = at_work(vec![call(EffectClass::Write)]);
    let society_budget = Budget { tokens: Some(10), ..Budget::default() };
    let budgets = Budgets { society: society_budget, ..Budgets::default() };
    society.command(Command::SetBudgets { budgets: budgets.into() }, NOON).unwrap();
    let account = |society: &Society, scope: &str| society.spine.ledger[&scope.parse().unwrap()];
    society.command(inquire(model(6, Ruling::Allow)), NOON).unwrap();
    let first = last(&society);
    assert_eq!([account(&society, "agent:a"), account(&society, "task:t")].map(|it| it.reserved.tokens), [6, 6]);
    assert_eq!(society.command(inquire(model(6, Ruling::Allow)), NOON), Err(Refusal::BudgetBusy));
    society.command(answer(first, Answer::Reply(Reply::default())), NOON).unwrap();
    assert_eq!((account(&society, "agent:root").spent.tokens, account(&society, "agent:root").reserved.tokens), (7, 0));
    society.command(inquire(model(6, Ruling::Allow)), NOON).unwrap();
    // The call is cut: what was reserved comes back, and the request that went out is counted.
    society.command(Command::Doubt { id: effect(8, 0) }, NOON).unwrap();
    assert_eq!(account(&society, "society").reserved, Spent::default());
    assert_eq!(account(&society, "society").spent.requests, 2);

    let mut society = at_work(vec![call(EffectClass::Write)]);
    let budgets = Budgets { society: Budget { tokens: Some(7), ..Budget::default() }, ..Budgets::default() };
    society.command(Command::SetBudgets { budgets: budgets.into() }, NOON).unwrap();
    society.command(inquire(model(6, Ruling::Allow)), NOON).unwrap();
    let id = last(&society);
    society.command(answer(id, Answer::Failed(Failure::new("model_cut", "cut"))), NOON).unwrap();
    let refused = society.command(inquire(model(1, Ruling::Allow)), NOON).unwrap_err();
    assert_eq!(refused.code(), "budget_exhausted");
}

#[test]
fn a_server_asks_a_model_only_as_the_policy_says_and_a_word_for_always_is_kept() {
    let ask = || Ruling::Ask("It is not trusted.".to_owned());
    let mut society = at_work(vec![call(EffectClass::Write)]);
    let denied = society.command(inquire(model(1, Ruling::Deny("no models".to_owned()))), NOON).unwrap_err();
    assert_eq!(denied.to_string(), "s__sampling may not be used here: no models");
    let said = society.command(inquire(model(1, ask())), NOON).unwrap();
    let Event::CallInquired { inquiry: Inquiry::Person { question, details, .. }, by, .. } = &said[0].1 else { panic!() };
    assert!(question.text.contains("the server `s`") && details["prompt"] == "say" && &**by == "s", "{question:?}");
    let id = last(&society);
    society.command(answer(id, Answer::Reply(Reply::default())), NOON).unwrap_err();
    let always = Verdict { always: Some(Always::Tool), ..Verdict::yes() };
    let said = society.command(answer(id, Answer::Verdict(always)), NOON).unwrap();
    assert!(matches!(&said[0].1, Event::ToolAllowed { allowed } if &*allowed.tool == "s__sampling"));
    let said = society.command(inquire(model(1, ask())), NOON).unwrap();
    assert!(matches!(&said[0].1, Event::CallInquired { inquiry: Inquiry::Model { .. }, .. }));
}
