//! Waiting is local: what waits for a person, or has failed, delays nothing that does not depend on it.

use std::sync::Arc;

use polis_domain::{EffectId, Event, OpenKind, Outcome, Resolution, Ruling, Spine, Verdict};
use polis_engine::{ConversationStart, Ports, Society};
use polis_testkit::{Op, Program, world};
use serde_json::Map;

use crate::bed::*;

/// A person must agree to every call whose argument begins with `ask`.
async fn open(bed: &Bed) -> Society {
    let done = bed.done.clone();
    let tools = world::tools(move |class, key| done.lock().unwrap().push((class, key.to_owned())));
    let tools = tools.ruled(|_, argument| match argument.starts_with("ask") {
        true => Ruling::Ask("Is it right?".to_owned()),
        false => Ruling::Allow,
    });
    let ports = Ports { toolbox: Arc::new(tools), ..bed.ports(bed.log.clone()) };
    Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
}

fn calls(calls: &[(&str, &str)]) -> Vec<Op> {
    vec![Op::Call(calls.iter().map(|(tool, argument)| ((*tool).to_owned(), (*argument).to_owned())).collect())]
}

fn yes() -> Resolution {
    Resolution::Outcome(Outcome::Verdict(Verdict::yes()))
}

/// Waits until exactly so many approvals are open and nothing else is left to do; which they are.
async fn approvals(society: &Society, count: usize) -> Vec<EffectId> {
    let find = move |spine: &Spine| {
        let open = spine.turns.iter().flat_map(|(turn, state)| state.open.iter().map(move |open| (*turn, open)));
        let open = open.filter(|(_, open)| matches!(open.kind, OpenKind::Approval(_)));
        let open: Vec<_> = open.map(|(turn, open)| EffectId { turn, n: open.n }).collect();
        (open.len() == count && !spine.turns.values().any(|turn| turn.is_owed())).then_some(open)
    };
    until(society, find).await
}

/// The results of tools in the log.
fn results(bed: &Bed) -> Vec<String> {
    let result = |event: Event| match event {
        Event::EffectEnded { outcome: Outcome::Result(result), .. } => Some(result.content.to_string()),
        _ => None,
    };
    bed.events().into_iter().filter_map(|recorded| result(recorded.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_that_need_no_approval_have_their_results_in_the_log_while_another_waits() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let sent = submit(&society, calls(&[("look", "ask a"), ("stamp", "b"), ("look", "c")])).await;
    let open = approvals(&society, 1).await;
    let mut done = results(&bed);
    done.sort();
    assert_eq!(done, ["look(c)", "stamp(b)"]);
    society.resolve(open[0], yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "look(ask a),stamp(b),look(c)");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_as_soon_as_it_is_agreed_to_although_another_still_waits() {
    let bed = Bed::new();
    let three = [("look", "ask a"), ("stamp", "ask b"), ("look", "ask c")];
    let society = open(&bed).await;
    let sent = submit(&society, calls(&three)).await;
    let open_first = approvals(&society, 3).await;
    society.resolve(open_first[1], yes()).await.unwrap();
    assert_eq!(approvals(&society, 2).await, [open_first[0], open_first[2]]);
    assert_eq!(results(&bed), ["stamp(ask b)"], "the first one is not decided yet");

    // The next decision arrives after a restart: the turn left memory, and comes back for it.
    drop(society);
    let society = open(&bed).await;
    society.resolve(open_first[2], yes()).await.unwrap();
    assert_eq!(approvals(&society, 1).await, [open_first[0]]);
    assert_eq!(results(&bed), ["stamp(ask b)", "look(ask c)"]);
    society.resolve(open_first[0], yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "look(ask a),stamp(ask b),look(ask c)", "in the order of the calls");
    assert_eq!(bed.done.lock().unwrap().len(), 3, "each is made once");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_more_approvals_is_not_blamed_for_restarts() {
    let bed = Bed::new();
    let first = open(&bed).await;
    let sent = submit(&first, calls(&[("look", "ask a"), ("look", "ask b")])).await;
    let open_first = approvals(&first, 2).await;
    first.resolve(open_first[1], yes()).await.unwrap();
    approvals(&first, 1).await;
    drop(first);
    for _ in 0..8 {
        let society = open(&bed).await;
        approvals(&society, 1).await;
        drop(society);
    }
    let society = open(&bed).await;
    society.resolve(open_first[0], yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "look(ask a),look(ask b)");
}

#[tokio::test(start_paused = true)]
async fn nothing_that_waits_or_fails_in_one_conversation_delays_another() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let start = async |ops: Vec<Op>| {
        let text = Program(ops).text();
        society.converse(ConversationStart::default(), &text, None, Map::new()).await.unwrap()
    };
    let approval = start(calls(&[("mark", "ask a")])).await;
    let question = start(vec![Op::Approve("may I?".into())]).await;
    let slow = start(vec![Op::Sleep(86_400_000)]).await;
    let failed = start(vec![Op::Fail("broken".into())]).await;
    assert_eq!(answer(&society, &failed).await, Err("broken".to_owned()));
    let open_now = approvals(&society, 2).await;
    let other = start(calls(&[("mark", "b")])).await;
    assert_eq!(answer(&society, &other).await.unwrap(), "mark(b)");
    // The conversation that failed takes the next message as well.
    let again = society.send(failed.to.clone(), &Program(calls(&[("look", "c")])).text(), None).await.unwrap();
    assert_eq!(answer(&society, &again).await.unwrap(), "look(c)");
    for id in open_now {
        society.resolve(id, yes()).await.unwrap();
    }
    assert_eq!(answer(&society, &approval).await.unwrap(), "mark(ask a)");
    assert_eq!(answer(&society, &question).await.unwrap(), "approved");
    assert_eq!(answer(&society, &slow).await.unwrap(), "slept");
}
