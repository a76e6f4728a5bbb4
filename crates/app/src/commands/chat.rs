//! `polis chat`: the console endpoint. A line goes to root, or with `@name` to any agent; the answer is shown as it comes.

use std::io::{IsTerminal, stdin};

use polis_api::{Accepted, Send};
use polis_domain::AgentId;
use tokio_util::sync::CancellationToken;

use crate::cli::ApprovalMode;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestFollower, StreamedReply, conclude};
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::stdin_lines::{Line, StdinLines};
use crate::transport::{Events, Transport};
use crate::{out, signals};

pub(crate) async fn chat(config: &Config) -> Result<Exit, CliError> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Run).await?;
    transport.announce(config);
    let done = console(config, &transport, &stop).await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

/// Takes lines until there are no more.
pub(crate) async fn console(config: &Config, transport: &Transport, stop: &CancellationToken) -> Result<Exit, CliError> {
    let terminal = stdin().is_terminal();
    if terminal {
        out::note("Talk to root, or with @name to any agent. /quit exits.");
    }
    let mut lines = StdinLines::start();
    let mut events = transport.events(transport.last().await?).await?;
    let mut exit = Exit::Done;
    loop {
        if terminal {
            out::prompt("> ");
        }
        let line = tokio::select! {
            () = stop.cancelled() => return Ok(Exit::Stopped),
            line = lines.next() => line,
        };
        let text = match line {
            None => return Ok(exit),
            Some(Line::Garbled) => {
                exit = out::report_error(&CliError::new("invalid_utf8", "that line is not UTF-8; nothing was sent"));
                continue;
            }
            Some(Line::Text(text)) => text,
        };
        let Some((agent, text)) = addressed(&text) else { continue };
        if text == "/quit" {
            return Ok(exit);
        }
        match converse(config, transport, &mut events, terminal.then_some(&mut lines), stop, (agent, text)).await {
            Ok(Exit::Done) => {}
            Ok(stopped @ (Exit::Stopped | Exit::NeedsPerson)) => return Ok(stopped),
            Ok(failed) => exit = failed,
            // An error in one line does not end the conversation.
            Err(error) if error.code != "server_gone" && !error.message.is_empty() => exit = out::report_error(&error),
            Err(error) => return Err(error),
        }
        if terminal {
            exit = Exit::Done;
        }
    }
}

async fn converse(
    config: &Config,
    transport: &Transport,
    events: &mut Events,
    // Without a terminal, a line was written beforehand and cannot be a decision on what is pending now.
    lines: Option<&mut StdinLines>,
    stop: &CancellationToken,
    (agent, text): (&str, &str),
) -> Result<Exit, CliError> {
    let request = Send {
        agent_id: agent.into(),
        text: text.to_owned(),
        task_id: None,
        plan_approval: config.plan_approval_flag,
        artifacts: Vec::new(),
    };
    let Accepted { task_id: task, seq, .. } = transport.api().send(request).await?;
    let mut follow = RequestFollower {
        transport,
        events,
        stop,
        task: task.clone(),
        from: seq,
        show: ProgressOutput::StreamedReply(StreamedReply::of(AgentId::from(agent).main_thread())),
        agree: ApprovalMode::Ask,
        lines,
        progress: Progress::of(task.clone()),
    };
    let ended = follow.until_it_ends().await;
    match ended {
        Ok(ended) => conclude(config, &task, ended, &mut follow.show),
        Err(error) => {
            if let ProgressOutput::StreamedReply(words) = &mut follow.show {
                words.break_off()?;
            }
            Err(error)
        }
    }
}

/// The addressee and the text; none for an empty line.
fn addressed(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (agent, text) = match line.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        None => (AgentId::ROOT, line),
    };
    (!line.is_empty()).then_some((agent, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_to_root_unless_it_names_somebody() {
        for (line, want) in [
            ("hello there", Some(("root", "hello there"))),
            ("  @bob  how are you ", Some(("bob", "how are you"))),
            ("@小明 你好", Some(("小明", "你好"))),
            ("@bob", Some(("bob", ""))),
            ("a@b.c is an address", Some(("root", "a@b.c is an address"))),
            ("   ", None),
        ] {
            assert_eq!(addressed(line), want, "{line:?}");
        }
    }
}
