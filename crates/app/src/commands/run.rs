//! `polis run`: one request, start to finish. The answer alone goes to stdout.

use std::io::{IsTerminal, stdin, stdout};

use polis_api::{Accepted, Submit};
use polis_domain::AgentId;
use tokio_util::sync::CancellationToken;

use crate::cli::{self, Agree, Strategy};
use crate::config::Config;
use crate::follow::{Follow, Show, Words, conclude};
use crate::lines::Lines;
use crate::out;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::signals;
use crate::transport::Transport;
use crate::trouble::{Exit, Trouble};

/// What is to be done, and how.
pub(crate) struct RunArgs {
    request: String,
    strategy: Option<polis_api::Strategy>,
    json: bool,
    agree: Agree,
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

pub(crate) async fn run(config: &Config, args: &RunArgs) -> Result<Exit, Trouble> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Work).await?;
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
) -> Result<Exit, Trouble> {
    let request = Submit {
        text: args.request.clone(),
        strategy: args.strategy,
        plan_approval: config.typed_plan_approval,
        artifacts: Vec::new(),
    };
    // Watching begins first, so that nothing is missed.
    let mut events = transport.events(transport.last().await?).await?;
    let Accepted { task_id: task, seq, .. } = transport.api().submit(request).await?;
    let show = match (args.json, stdout().is_terminal()) {
        (true, _) => Show::Json,
        (false, true) => Show::Progress(Some(Words::of(AgentId::root().main_thread()))),
        (false, false) => Show::Progress(None),
    };
    let mut lines = (args.agree == Agree::Ask && stdin().is_terminal()).then(Lines::start);
    let mut follow = Follow {
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
        Err(trouble) => {
            out::note(&format!(
                "polis: the request is in the log as {task} and continues once this is settled; do not submit it again"
            ));
            return Err(trouble);
        }
    };
    conclude(config, &task, ended, &mut follow.show)
}
