//! `polis attach`, `polis wait` and `polis result`: a request that was submitted before.

use std::io::{IsTerminal, stdin, stdout};

use polis_api::{Api, Direction, MessagePaging, TaskState, TaskStatus, UserMessage};
use polis_domain::{AgentId, Seq, TaskId};
use tokio_util::sync::CancellationToken;

use crate::cli::{ApprovalMode, Attach, TaskResult, Wait};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestEnd, RequestFollower, StreamedReply, conclude};
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::stdin_lines::StdinLines;
use crate::transport::Transport;
use crate::{out, signals};

pub(crate) async fn attach(config: &Config, args: &Attach) -> Result<Exit, CliError> {
    let show = |agent: AgentId| match (args.json, stdout().is_terminal()) {
        (true, _) => ProgressOutput::Json,
        (false, true) => ProgressOutput::Progress(Some(StreamedReply::of(agent.main_thread()))),
        (false, false) => ProgressOutput::Progress(None),
    };
    follow(config, &TaskId::from(args.task.as_str()), show, Asking::AtTerminal).await
}

pub(crate) async fn wait(config: &Config, args: &Wait) -> Result<Exit, CliError> {
    follow(config, &TaskId::from(args.task.as_str()), |_| ProgressOutput::Nothing, Asking::Never).await
}

pub(crate) async fn result(config: &Config, args: &TaskResult) -> Result<Exit, CliError> {
    let task = TaskId::from(args.task.as_str());
    let transport = Transport::open(config, Purpose::Read).await?;
    let state = transport.api().task(&task).await?;
    if args.json {
        out::json(&state)?;
    }
    let status = state.status;
    if !status.is_over() {
        let attach = config.command_line(&format!("attach {task}"));
        let message =
            format!("the request has no result yet, its status is {}; follow it with `{attach}`", out::name_of(&status));
        let exit = if status == TaskStatus::NeedsPerson { Exit::NeedsPerson } else { Exit::Failed };
        return Err(CliError { exit, ..CliError::new("still_open", message) });
    }
    let show = if args.json { ProgressOutput::Nothing } else { ProgressOutput::Answer };
    replay(config, &transport, &state, show, &signals::watch()).await
}

/// Whether a person is asked about what waits for them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    AtTerminal,
    Never,
}

/// Follows a request to its end. If no server runs and it has not ended, it continues in this process.
async fn follow(
    config: &Config,
    task: &TaskId,
    show: impl FnOnce(AgentId) -> ProgressOutput,
    asking: Asking,
) -> Result<Exit, CliError> {
    let stop = signals::watch();
    // Whether there is such a request is seen without letting anything run.
    let transport = Transport::open(config, Purpose::Read).await?;
    let state = transport.api().task(task).await?;
    if state.status.is_over() {
        let show = show(Messages::about(transport.api(), task).await?.agent);
        return replay(config, &transport, &state, show, &stop).await;
    }
    let transport = match transport {
        Transport::InProcess(_) => {
            transport.close(false).await;
            Transport::open(config, Purpose::Run).await?
        }
        Transport::Http(_) => transport,
    };
    transport.announce(config);
    let followed = async {
        let Messages { first, last, agent } = Messages::about(transport.api(), task).await?;
        let mut events = transport.events(before(first)).await?;
        let mut lines = (asking == Asking::AtTerminal && stdin().is_terminal()).then(StdinLines::start);
        let mut follow = RequestFollower {
            transport: &transport,
            events: &mut events,
            stop: &stop,
            task: task.clone(),
            from: last,
            show: show(agent),
            agree: ApprovalMode::Ask,
            lines: lines.as_mut(),
            progress: Progress::of(task.clone()),
        };
        let ended = follow.until_it_ends().await?;
        let ended = follow.until_nothing_is_open(ended).await?;
        conclude(config, task, ended, &mut follow.show)
    };
    let done = followed.await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

/// Reads again how a request went that has ended.
async fn replay(
    config: &Config,
    transport: &Transport,
    state: &TaskState,
    show: ProgressOutput,
    stop: &CancellationToken,
) -> Result<Exit, CliError> {
    let task = &state.id;
    if state.answer.is_none() && state.failure.is_none() {
        // A message that nobody has to answer.
        return Ok(Exit::Done);
    }
    let Messages { first, last, .. } = Messages::about(transport.api(), task).await?;
    let mut events = transport.events(before(first)).await?;
    let mut follow = RequestFollower {
        transport,
        events: &mut events,
        stop,
        task: task.clone(),
        from: last,
        show,
        agree: ApprovalMode::Ask,
        lines: None,
        progress: Progress::of(task.clone()),
    };
    let (mut state, mut ended) = (state.clone(), follow.read_to_its_end().await?);
    // An agent answers again when it hears later that a part of the work failed, and a person may retry meanwhile.
    while !is_end_of(&state, &ended) {
        state = transport.api().task(task).await?;
        if !is_end_of(&state, &ended) {
            ended = follow.read_to_its_end().await?;
        }
    }
    let exit = conclude(config, task, ended, &mut follow.show)?;
    match (&state.failure, state.status) {
        (Some(failure), TaskStatus::Partial) => {
            out::note(&format!("polis: a part of the request failed: {failure}"));
            Ok(Exit::Partly)
        }
        _ => Ok(exit),
    }
}

/// Whether a request is in this state because it ended like this.
fn is_end_of(state: &TaskState, ended: &RequestEnd) -> bool {
    match ended {
        RequestEnd::Answered(text, _) => state.answer.as_deref() == Some(&**text),
        RequestEnd::Failed(failure) => state.answer.is_none() && state.failure.as_ref() == Some(failure),
        RequestEnd::NeedsPerson(_) | RequestEnd::Stopped => true,
    }
}

/// The messages that matter for following a request.
struct Messages {
    first: Seq,
    /// The last one of the person. What ended before it was another attempt.
    last: Seq,
    /// The agent that it went to.
    agent: AgentId,
}

impl Messages {
    async fn about(api: &dyn Api, task: &TaskId) -> Result<Self, CliError> {
        let (mut found, mut after) = (None::<Self>, None);
        loop {
            let page = api.messages(task, MessagePaging { direction: Direction::All, after, limit: None }).await?;
            for UserMessage { seq, from, to, .. } in page.messages {
                let first = found.as_ref().map_or(seq, |found| found.first);
                if found.is_none() || from.is_user() {
                    found = Some(Self { first, last: seq, agent: to });
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        found.ok_or_else(|| {
            CliError::new("unknown_task", format!("there is no request `{task}`; `polis tasks` lists those that are open"))
        })
    }
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}
