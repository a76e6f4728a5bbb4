//! `polis approve`, `polis deny` and `polis answer`: a person's decision. If no server runs, the request continues in this process.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin};

use polis_domain::{EffectId, InquiryId, Matching, Pattern, Seq, TurnId};
use serde_json::Value;

use crate::approval_prompt::{self, PendingApproval, PersonDecision};
use crate::cli::{Always, Answer, ApprovalMode, Approve, Deny};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestFollower, conclude};
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::stdin_lines::StdinLines;
use crate::transport::Transport;
use crate::{out, signals};

pub(crate) async fn approve(config: &Config, options: &Approve) -> Result<Exit, CliError> {
    let arguments: Option<Value> = options
        .arguments
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| CliError::usage("bad_arguments", format!("--arguments is not JSON: {error}")))?;
    if arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
        return Err(CliError::usage("bad_arguments", "--arguments is not a JSON object; give all arguments by name"));
    }
    let always = options.always.map(|always| match always {
        Always::Agent => polis_domain::Always::Agent,
        Always::Task => polis_domain::Always::Task,
        Always::Tool => polis_domain::Always::Tool,
        Always::Reads => polis_domain::Always::Reads,
    });
    let matching = matching(&options.matching)?;
    let decision = match (&options.done, options.again) {
        (Some(result), _) => PersonDecision::Done(result.clone()),
        (None, true) => PersonDecision::Again,
        (None, false) if arguments.is_some() || always.is_some() => PersonDecision::YesWith { arguments, always, matching },
        (None, false) => PersonDecision::Yes,
    };
    decide(config, &options.id, &decision).await
}

/// The patterns as they are typed: `name=value`, with `*` for any text, `name<=number`, or `any`.
fn matching(typed: &[String]) -> Result<Option<Matching>, CliError> {
    let mut patterns = BTreeMap::new();
    for text in typed {
        if text == "any" {
            patterns.extend(Matching::anything().0);
            continue;
        }
        let bad = || CliError::usage("bad_where", format!("--where {text} is neither NAME=VALUE, NAME<=NUMBER nor any"));
        let (name, pattern) = match (text.split_once("<="), text.split_once('=')) {
            (Some((name, most)), _) if !name.contains('=') => (name, Pattern::AtMost(most.trim().parse().map_err(|_| bad())?)),
            (_, Some((name, value))) if value.contains('*') => (name, Pattern::Like(value.to_owned())),
            (_, Some((name, value))) => (name, Pattern::Is(value.to_owned())),
            (_, None) => return Err(bad()),
        };
        if name.trim().is_empty() {
            return Err(bad());
        }
        patterns.insert(name.trim().to_owned(), pattern);
    }
    Ok((!patterns.is_empty()).then_some(Matching(patterns)))
}

pub(crate) async fn deny(config: &Config, options: &Deny) -> Result<Exit, CliError> {
    let decision = if options.cancel { PersonDecision::Cancel } else { PersonDecision::No(options.reason.join(" ")) };
    decide(config, &options.id, &decision).await
}

pub(crate) async fn answer(config: &Config, options: &Answer) -> Result<Exit, CliError> {
    decide(config, &options.id, &PersonDecision::Answer(options.answer.join(" "))).await
}

async fn decide(config: &Config, id: &str, decision: &PersonDecision) -> Result<Exit, CliError> {
    // Whether there is such a thing is seen without letting anything run.
    let transport = Transport::open(config, Purpose::Read).await?;
    let found = find(&transport, id).await;
    if let Transport::Http(_) = transport {
        found?.answer(&transport, decision).await?;
        out::note("polis: recorded");
        return Ok(Exit::Done);
    }
    transport.close(false).await;
    carry_on(config, &found?, decision).await
}

async fn find(transport: &Transport, id: &str) -> Result<PendingApproval, CliError> {
    let waiting = approval_prompt::list(transport).await?;
    waiting
        .into_iter()
        .find(|waiting| waiting.id == id)
        .ok_or_else(|| CliError::new("not_open", format!("nothing with the id `{id}` is pending; see polis approvals")))
}

/// Answers, and lets the society work until the request has ended or needs a person again.
async fn carry_on(config: &Config, waiting: &PendingApproval, decision: &PersonDecision) -> Result<Exit, CliError> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Run).await?;
    let carried = async {
        let last = transport.last().await?;
        let mut events = transport.events(last).await?;
        waiting.answer(&transport, decision).await?;
        let mut progress = Progress::of(waiting.task_id.clone());
        if let Some(turn) = turn_of(&waiting.id) {
            progress.add_turn(turn, waiting.agent_id.clone());
        }
        let mut lines = stdin().is_terminal().then(StdinLines::start);
        let mut follow = RequestFollower {
            transport: &transport,
            events: &mut events,
            stop: &stop,
            task: waiting.task_id.clone(),
            from: last,
            show: ProgressOutput::Progress(None),
            agree: ApprovalMode::Ask,
            lines: lines.as_mut(),
            progress,
        };
        let ended = follow.until_it_ends().await?;
        conclude(config, &waiting.task_id, ended, &mut follow.show)
    };
    let done = carried.await;
    transport.close(false).await;
    done
}

fn turn_of(id: &str) -> Option<TurnId> {
    let effect: Result<EffectId, _> = id.parse();
    let inquiry: Result<InquiryId, _> = id.parse();
    effect
        .or_else(|_| inquiry.map(|inquiry| inquiry.call))
        .map(|effect| effect.turn)
        .or_else(|_| id.parse().map(|seq| TurnId(Seq(seq))))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_as_they_are_typed() {
        let read = |typed: &str| matching(&[typed.to_owned()]).map(Option::unwrap_or_default);
        let one = |name: &str, pattern| Matching(BTreeMap::from([(name.to_owned(), pattern)]));
        assert_eq!(read("to=bob@x").unwrap(), one("to", Pattern::Is("bob@x".to_owned())));
        assert_eq!(read("path=notes/*").unwrap(), one("path", Pattern::Like("notes/*".to_owned())));
        assert_eq!(read("amount<=100").unwrap(), one("amount", Pattern::AtMost(100.into())));
        assert_eq!(read("query=a<=b").unwrap(), one("query", Pattern::Is("a<=b".to_owned())));
        assert_eq!(read("any").unwrap(), Matching::anything());
        for bad in ["to", "=x", "amount<=much"] {
            assert_eq!(read(bad).unwrap_err().code, "bad_where", "{bad}");
        }
        assert_eq!(matching(&[]).unwrap(), None);
    }
}
