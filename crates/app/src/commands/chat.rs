//! `polis chat`: the console endpoint. A line goes to root, or with `@name` to any agent; the answer is shown as it comes.

use std::io::{IsTerminal, stdin};

use polis_api::{Accepted, Send};
use polis_domain::AgentId;
use tokio_util::sync::CancellationToken;

use crate::cli::Agree;
use crate::config::Config;
use crate::follow::{Follow, Show, Words, conclude};
use crate::lines::{Line, Lines};
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::transport::{Events, Transport};
use crate::trouble::{Exit, Trouble};
use crate::{out, signals};

pub(crate) async fn chat(config: &Config) -> Result<Exit, Trouble> {
    let stop = signals::watch();
    let transport = Transport::open(config, Purpose::Work).await?;
    transport.announce(config);
    let done = console(config, &transport, &stop).await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

/// Takes lines until there are no more.
pub(crate) async fn console(config: &Config, transport: &Transport, stop: &CancellationToken) -> Result<Exit, Trouble> {
    let terminal = stdin().is_terminal();
    if terminal {
        out::note("Talk to root, or with @name to any agent. /quit exits.");
    }
    let mut lines = Lines::start();
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
                exit = out::trouble(&Trouble::new("invalid_utf8", "that line is not UTF-8; nothing was sent"));
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
            // What is wrong with one line is not the end of the conversation.
            Err(trouble) if trouble.code != "server_gone" && !trouble.message.is_empty() => exit = out::trouble(&trouble),
            Err(trouble) => return Err(trouble),
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
    // Off a terminal a line is what somebody wrote beforehand, not a word about what waits now.
    lines: Option<&mut Lines>,
    stop: &CancellationToken,
    (agent, text): (&str, &str),
) -> Result<Exit, Trouble> {
    let request = Send {
        agent_id: agent.into(),
        text: text.to_owned(),
        task_id: None,
        plan_approval: config.typed_plan_approval,
        artifacts: Vec::new(),
    };
    let Accepted { task_id: task, seq, .. } = transport.api().send(request).await?;
    let mut follow = Follow {
        transport,
        events,
        stop,
        task: task.clone(),
        from: seq,
        show: Show::Words(Words::of(AgentId::from(agent).main_thread())),
        agree: Agree::Ask,
        lines,
        progress: Progress::of(task.clone()),
    };
    let ended = follow.until_it_ends().await;
    match ended {
        Ok(ended) => conclude(config, &task, ended, &mut follow.show),
        Err(trouble) => {
            if let Show::Words(words) = &mut follow.show {
                words.break_off()?;
            }
            Err(trouble)
        }
    }
}

/// Who is meant, and what is said; none for an empty line.
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
