//! `polis run`: one request, start to finish. The answer alone goes to stdout.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use polis_api::{Accepted, RequestContext, Submit};
use polis_domain::ModelSettings;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::attached_files::{self, AttachedFile};
use crate::cli::{self, ApprovalMode, Strategy};
use crate::config::Config;
use crate::conversation_choice::ConversationChoice;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestFollower, StreamedReply, conclude};
use crate::out;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::request_text::RequestText;
use crate::signals;
use crate::stdin_lines::StdinLines;
use crate::transport::Transport;

/// The request, and how to run it.
pub(crate) struct RunArgs {
    request: RequestText,
    files: Vec<PathBuf>,
    conversation: ConversationChoice,
    strategy: Option<polis_api::Strategy>,
    json: bool,
    agree: ApprovalMode,
    settings: ModelSettings,
    context: Map<String, Value>,
}

impl TryFrom<cli::Run> for RunArgs {
    type Error = CliError;

    fn try_from(typed: cli::Run) -> Result<Self, CliError> {
        let strategy = typed.strategy.map(|strategy| match strategy {
            Strategy::Auto => polis_api::Strategy::Auto,
            Strategy::Simple => polis_api::Strategy::Simple,
            Strategy::Template => polis_api::Strategy::Template,
            Strategy::Workflow => polis_api::Strategy::Workflow,
        });
        let conversation = ConversationChoice::from(&typed.conversation);
        let settings = typed.conversation.settings.read()?;
        let context = typed.context.iter().map(|entry| context_entry(entry)).collect::<Result<_, _>>()?;
        let cli::Run { request, file: files, json, approve: agree, .. } = typed;
        Ok(Self { request: request.into(), files, conversation, strategy, json, agree, settings, context })
    }
}

/// An entry of the context, as in `currentResourceId=doc-7`. The value is a text.
fn context_entry(entry: &str) -> Result<(String, Value), CliError> {
    let (name, value) = entry.split_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
        let message = format!("`{entry}` says nothing; write NAME=VALUE, for example currentResourceId=doc-7");
        CliError::usage("bad_context", message)
    })?;
    Ok((name.trim().to_owned(), value.into()))
}

pub(crate) async fn run(config: &Config, args: &RunArgs) -> Result<Exit, CliError> {
    let stop = signals::watch();
    // What the person gives is read before a society is opened or created for it.
    let files = attached_files::open(&args.files)?;
    let Some(text) = args.request.read(&stop).await? else { return Ok(Exit::Stopped) };
    let transport = Transport::open(config, Purpose::Run).await?;
    transport.announce(config);
    let done = one_request(config, args, Given { text, files }, &transport, &stop).await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

/// What a person gives with a request.
struct Given {
    text: String,
    files: Vec<AttachedFile>,
}

async fn one_request(
    config: &Config,
    args: &RunArgs,
    given: Given,
    transport: &Transport,
    stop: &CancellationToken,
) -> Result<Exit, CliError> {
    let continued = args.conversation.find(transport.api()).await?;
    let role_id = args.conversation.role(transport.api()).await?;
    let mut artifacts = Vec::new();
    for file in given.files {
        artifacts.push(file.store(transport.api()).await?);
    }
    let request = Submit {
        text: given.text,
        conversation: continued.as_ref().map(|conversation| conversation.id.clone()),
        role_id: role_id.clone(),
        context: RequestContext::Application(args.context.clone()),
        strategy: args.strategy,
        settings: args.settings.clone(),
        plan_approval: config.plan_approval_flag,
        artifacts,
        ..Submit::default()
    };
    // Watching begins first, so that nothing is missed.
    let mut events = transport.events(transport.last().await?).await?;
    let Accepted { task_id: task, conversation, seq, .. } = transport.api().submit(request).await?;
    let mut progress = Progress::of(task.clone());
    continued.iter().for_each(|continued| progress.name(&continued.id, &continued.role_id));
    role_id.iter().for_each(|role| progress.name(&conversation, role));
    out::note(&match continued {
        None => format!(
            "polis: conversation {conversation} (continue it with --continue or --conversation {conversation}), request {task}"
        ),
        Some(continued) => format!("polis: conversation {conversation} ({}), request {task}", continued.title),
    });
    let show = match (args.json, stdout().is_terminal()) {
        (true, _) => ProgressOutput::Json,
        (false, true) => ProgressOutput::Progress(Some(StreamedReply::of(conversation.main_thread()))),
        (false, false) => ProgressOutput::Progress(None),
    };
    let can_ask = args.agree == ApprovalMode::Ask && stdin().is_terminal() && !args.request.takes_stdin;
    let mut lines = can_ask.then(StdinLines::start);
    let mut follow = RequestFollower {
        transport,
        events: &mut events,
        stop,
        task: task.clone(),
        from: seq,
        show,
        agree: args.agree,
        lines: lines.as_mut(),
        progress,
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
