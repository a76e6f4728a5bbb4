//! `polis run`: one request, start to finish. The answer alone goes to stdout.

use std::io::{IsTerminal, stdin, stdout};

use polis_api::{Accepted, Submit};
use tokio_util::sync::CancellationToken;

use crate::cli::{self, ApprovalMode, Strategy};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestFollower, StreamedReply, conclude};
use crate::out;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::signals;
use crate::stdin_lines::StdinLines;
use crate::transport::Transport;

/// The request, and how to run it.
pub(crate) struct RunArgs {
    request: String,
    strategy: Option<polis_api::Strategy>,
    json: bool,
    agree: ApprovalMode,
}

impl From<cli::Run> for RunArgs {
    fn from(typed: cli::Run) -> Self {
        let strategy = match typed.strategy {
            Strategy::Auto => None,
            Strategy::Simple => Some(polis_api::Strategy::Simple),
            Strategy::Template => Some(polis_api::Strategy::Template),
            Strategy::Workflow => Some(polis_api::Strategy::Workflow),
        };
        Self { request: typed.request.join(" "), strategy, json: typed.json, agree: typed.approve }
    }
}

pub(crate) async fn run(config: &Config, args: &RunArgs) -> Result<Exit, CliError> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Run).await?;
    transport.announce(config);
    let done = one_request(config, args, &transport, &stop).await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

async fn one_request(
    config: &Config,
    args: &RunArgs,
    transport: &Transport,
    stop: &CancellationToken,
) -> Result<Exit, CliError> {
    let request = Submit {
        text: args.request.clone(),
        strategy: args.strategy,
        plan_approval: config.plan_approval_flag,
        ..Submit::default()
    };
    // Watching begins first, so that nothing is missed.
    let mut events = transport.events(transport.last().await?).await?;
    let Accepted { task_id: task, conversation, seq, .. } = transport.api().submit(request).await?;
    let show = match (args.json, stdout().is_terminal()) {
        (true, _) => ProgressOutput::Json,
        (false, true) => ProgressOutput::Progress(Some(StreamedReply::of(conversation.main_thread()))),
        (false, false) => ProgressOutput::Progress(None),
    };
    let mut lines = (args.agree == ApprovalMode::Ask && stdin().is_terminal()).then(StdinLines::start);
    let mut follow = RequestFollower {
        transport,
        events: &mut events,
        stop,
        task: task.clone(),
        from: seq,
        show,
        agree: args.agree,
        lines: lines.as_mut(),
        progress: Progress::of(task.clone()),
    };
    let ended = match follow.until_it_ends().await {
        Ok(ended) => ended,
        Err(error) => {
            out::note(&format!(
                "polis: the request is in the log as {task} and continues once this is settled; do not submit it again"
            ));
            return Err(error);
        }
    };
    conclude(config, &task, ended, &mut follow.show)
}
