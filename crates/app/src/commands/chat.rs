//! `polis chat`: the console endpoint. A line goes to the conversation, or with `@name` to any agent; the answer is shown as it
//! comes. Lines that begin with `/` are commands.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use polis_api::{Accepted, Attachment, Cancel, ChangeConversation, ConversationPaging, Send, Submit};
use polis_domain::{AgentId, ModelSettings, RoleId, TaskId};
use tokio_util::sync::CancellationToken;

use super::conversations::line as conversation_line;
use crate::approval_prompt;
use crate::attached_files;
use crate::cli::{self, ApprovalMode};
use crate::config::Config;
use crate::conversation_choice::ConversationChoice;
use crate::error::{CliError, Exit};
use crate::follow::{ProgressOutput, RequestEnd, RequestFollower, StreamedReply, conclude};
use crate::out;
use crate::progress::Progress;
use crate::purpose::Purpose;
use crate::signals::Interrupts;
use crate::stdin_lines::{Line, StdinLines};
use crate::suggest;
use crate::transport::{Events, Transport};

/// The file of the data directory with the lines that were typed.
const HISTORY: &str = "chat_history";

/// What stands for the model of the role.
const DEFAULT: &str = "default";

/// How many conversations `/list` shows.
const LISTED: u32 = 20;

/// The words that commands begin with.
const COMMANDS: [&str; 9] = ["/new", "/list", "/switch", "/file", "/model", "/effort", "/set", "/approve", "/quit"];

const HELP: &str = "\
/new           start another conversation with the next message
/list          list the conversations
/switch NAME   continue a conversation: its id, or words of its title
/file PATH     attach a file to the next message
/model [NAME]  show or change the model of this conversation; `default` is that of its role
/effort [HOW]  show or change how much its model reasons: none, minimal, low, medium, high, xhigh, max; `default`
/set NAME=VALUE  change how it calls models, for example temperature=0.2; an empty value takes it back
/approve       decide what waits for you
/quit          leave; so does the end of input
@name text     send a message to an agent
A backslash at the end of a line continues it on the next one. The arrow keys edit the line and recall earlier ones; Ctrl-R
searches them.
Ctrl-C stops the request under way, and otherwise leaves.";

pub(crate) async fn chat(config: &Config, args: &cli::Chat) -> Result<Exit, CliError> {
    let settings = args.conversation.settings.read()?;
    let interrupts = Interrupts::watch();
    let transport = Transport::open(config, Purpose::Run).await?;
    transport.announce(config);
    let begun = Begun { choice: ConversationChoice::from(&args.conversation), settings };
    let done = console(config, &transport, &interrupts, begun).await;
    transport.close(matches!(done, Ok(Exit::Stopped))).await;
    done
}

/// What the command line says about the conversation.
#[derive(Default)]
pub(crate) struct Begun {
    pub(crate) choice: ConversationChoice,
    pub(crate) settings: ModelSettings,
}

/// Takes lines until there are no more.
pub(crate) async fn console(
    config: &Config,
    transport: &Transport,
    interrupts: &Interrupts,
    begun: Begun,
) -> Result<Exit, CliError> {
    let is_terminal = stdin().is_terminal();
    let Begun { choice, settings } = begun;
    let continued = choice.find(transport.api()).await?;
    let role = choice.role(transport.api()).await?;
    if is_terminal {
        out::note("Type a message, or @name and a message for any agent. /help lists the commands, /quit exits.");
    }
    if let Some(continued) = &continued {
        out::note(&format!("polis: conversation {}: {}", continued.id, continued.title));
    }
    let events = transport.events(transport.last().await?).await?;
    let conversation = continued.map(|continued| continued.id);
    let history = config.data.join(HISTORY);
    let lines = if is_terminal && stdout().is_terminal() { StdinLines::edited(history) } else { StdinLines::start() };
    let files = Vec::new();
    Console { config, transport, interrupts, is_terminal, lines, events, conversation, role, model: None, settings, files }
        .run()
        .await
}

struct Console<'a> {
    config: &'a Config,
    transport: &'a Transport,
    interrupts: &'a Interrupts,
    is_terminal: bool,
    lines: StdinLines,
    events: Events,
    /// The conversation; none until the first message starts it.
    conversation: Option<AgentId>,
    /// The role of new conversations; none for that of root.
    role: Option<RoleId>,
    /// The model of a conversation that has not started.
    model: Option<String>,
    /// How models are called for its messages, over the settings of the conversation.
    settings: ModelSettings,
    /// The files that go with the next message.
    files: Vec<Attachment>,
}

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
enum Input<'a> {
    /// A message to the conversation.
    Say(&'a str),
    /// A message to an agent.
    Send(&'a str, &'a str),
    New,
    List,
    Switch(&'a str),
    File(&'a str),
    Model(&'a str),
    Effort(&'a str),
    Set(&'a str),
    Approve,
    Help,
    Quit,
    /// It looks like a command, but is none.
    Unknown(&'a str),
}

impl Console<'_> {
    async fn run(mut self) -> Result<Exit, CliError> {
        let mut exit = Exit::Done;
        loop {
            let line = tokio::select! {
                () = self.interrupts.stop.cancelled() => return Ok(Exit::Stopped),
                line = read_line(&mut self.lines, self.is_terminal) => line,
            };
            let done = match line {
                None => return Ok(exit),
                Some(Line::Garbled) => Err(CliError::new("invalid_utf8", "that line is not UTF-8; nothing was sent")),
                Some(Line::Text(text)) => match Input::of(&text) {
                    None => continue,
                    Some(Input::Quit) => return Ok(exit),
                    Some(input) => self.handle(input).await,
                },
            };
            match done {
                Ok(Exit::Done) => {}
                Ok(stopped @ (Exit::Stopped | Exit::NeedsPerson)) => return Ok(stopped),
                Ok(failed) => exit = failed,
                // An error in one line does not end the conversation.
                Err(error) if error.code != "server_gone" && !error.message.is_empty() => exit = out::report_error(&error),
                Err(error) => return Err(error),
            }
            if self.is_terminal {
                exit = Exit::Done;
            }
        }
    }

    async fn handle(&mut self, input: Input<'_>) -> Result<Exit, CliError> {
        match input {
            Input::Say(text) => return self.say(text).await,
            Input::Send(agent, text) => return self.send(agent, text).await,
            Input::New => {
                (self.conversation, self.model) = (None, None);
                out::note("polis: the next message starts a conversation");
            }
            Input::List => self.list().await?,
            Input::Switch(name) => self.switch(name).await?,
            Input::File(path) => self.attach(path).await?,
            Input::Model(name) => self.set_model(name).await?,
            Input::Effort("") => self.show_settings().await?,
            Input::Effort(DEFAULT) => self.set("effort=").await?,
            Input::Effort(effort) => self.set(&format!("effort={effort}")).await?,
            Input::Set(assignment) => self.set(assignment).await?,
            Input::Approve => self.approve().await?,
            Input::Help => out::note(HELP),
            Input::Quit => {}
            Input::Unknown(name) => {
                let hint = suggest::hint(name, COMMANDS.iter().copied());
                let end = if hint.is_empty() { "." } else { "" };
                let commands = COMMANDS.join(", ");
                out::note(&format!("polis: there is no command {name}{hint}{end} The commands are {commands} and /help."));
                return Ok(Exit::Failed);
            }
        }
        Ok(Exit::Done)
    }

    async fn say(&mut self, text: &str) -> Result<Exit, CliError> {
        let request = Submit {
            text: text.to_owned(),
            conversation: self.conversation.clone(),
            role_id: self.role.clone().filter(|_| self.conversation.is_none()),
            model: self.model.clone(),
            settings: self.settings.clone(),
            plan_approval: self.config.plan_approval_flag,
            artifacts: self.files.clone(),
            ..Submit::default()
        };
        let accepted = self.transport.api().submit(request).await?;
        self.files.clear();
        if self.conversation.is_none() {
            let id = &accepted.conversation;
            let again = self.config.command_line(&format!("chat --conversation {id}"));
            out::note(&format!("polis: conversation {id} (continue it with `{again}`)"));
        }
        (self.conversation, self.model) = (Some(accepted.conversation.clone()), None);
        self.follow(accepted).await
    }

    async fn send(&mut self, agent: &str, text: &str) -> Result<Exit, CliError> {
        let request = Send {
            agent_id: agent.into(),
            text: text.to_owned(),
            task_id: None,
            settings: self.settings.clone(),
            plan_approval: self.config.plan_approval_flag,
            context: Default::default(),
            artifacts: self.files.clone(),
        };
        let api = self.transport.api();
        let accepted = match api.send(request).await {
            Ok(accepted) => accepted,
            Err(error) => return Err(suggest::about_agent(error, api, agent).await),
        };
        self.files.clear();
        self.follow(accepted).await
    }

    /// Shows the reply. On a terminal Ctrl-C stops the request, and the chat goes on.
    async fn follow(&mut self, accepted: Accepted) -> Result<Exit, CliError> {
        let stop = if self.is_terminal { self.interrupts.begin_request() } else { self.interrupts.stop.clone() };
        let followed = self.follow_until(accepted, &stop).await;
        self.interrupts.end_request();
        followed
    }

    async fn follow_until(&mut self, accepted: Accepted, stop: &CancellationToken) -> Result<Exit, CliError> {
        let Accepted { task_id: task, conversation, seq, .. } = accepted;
        let mut follow = RequestFollower {
            transport: self.transport,
            events: &mut self.events,
            stop,
            task: task.clone(),
            from: seq,
            show: ProgressOutput::StreamedReply(StreamedReply::of(conversation.main_thread())),
            agree: ApprovalMode::Ask,
            // Without a terminal, a line was written beforehand and cannot be a decision on what is pending now.
            lines: self.is_terminal.then_some(&mut self.lines),
            progress: Progress::of(task.clone()),
        };
        let ended = follow.until_it_ends().await;
        let is_interrupted = matches!(ended, Ok(RequestEnd::Stopped)) && !self.interrupts.stop.is_cancelled();
        if let (ProgressOutput::StreamedReply(words), true) = (&mut follow.show, is_interrupted || ended.is_err()) {
            words.break_off()?;
        }
        match ended {
            Ok(_) if is_interrupted => self.cancel(&task).await,
            Ok(ended) => conclude(self.config, &task, ended, &mut follow.show),
            Err(error) => Err(error),
        }
    }

    async fn cancel(&self, task: &TaskId) -> Result<Exit, CliError> {
        let request = Cancel { reason: "the person pressed Ctrl-C".to_owned(), turn: None };
        match self.transport.api().cancel(task, request).await {
            // It has ended in the meantime.
            Err(error) if error.code() == "unknown_task" => {}
            cancelled => drop(cancelled?),
        }
        out::note("polis: the request is cancelled, the conversation goes on; press Ctrl-C again to leave");
        Ok(Exit::Done)
    }

    async fn list(&self) -> Result<(), CliError> {
        let paging = ConversationPaging { limit: Some(LISTED), ..ConversationPaging::default() };
        let page = self.transport.api().conversations(paging).await?;
        for one in &page.conversations {
            let mark = if self.conversation.as_ref() == Some(&one.id) { "*" } else { " " };
            out::note(&format!("{mark} {}", conversation_line(one)));
        }
        if page.next.is_some() {
            out::note("polis: there are more; `polis conversations` lists them all");
        }
        Ok(())
    }

    async fn switch(&mut self, name: &str) -> Result<(), CliError> {
        if let Some(found) = ConversationChoice::Named(name.to_owned()).find(self.transport.api()).await? {
            out::note(&format!("polis: conversation {}: {}", found.id, found.title));
            (self.conversation, self.model) = (Some(found.id), None);
        }
        Ok(())
    }

    async fn attach(&mut self, path: &str) -> Result<(), CliError> {
        for file in attached_files::open(&[PathBuf::from(path)])? {
            self.files.push(file.store(self.transport.api()).await?);
        }
        let names: Vec<_> = self.files.iter().filter_map(|file| file.name.as_deref()).collect();
        out::note(&format!("polis: the next message brings {}", names.join(", ")));
        Ok(())
    }

    async fn set_model(&mut self, name: &str) -> Result<(), CliError> {
        let api = self.transport.api();
        let model = match (&self.conversation, name) {
            (Some(id), "") => api.conversation(id).await?.model.map(|model| model.to_string()),
            (None, "") => self.model.clone(),
            (None, DEFAULT) => {
                self.model = None;
                None
            }
            (Some(id), name) => {
                let name = if name == DEFAULT { "" } else { name };
                let request = ChangeConversation { model: Some(name.to_owned()), ..ChangeConversation::default() };
                api.change_conversation(id, request).await?.model.map(|model| model.to_string())
            }
            (None, name) => {
                self.model = Some(name.to_owned());
                self.model.clone()
            }
        };
        out::note(&match model {
            Some(model) => format!("polis: this conversation asks {model}"),
            None => "polis: this conversation asks the model of its role".to_owned(),
        });
        Ok(())
    }

    /// Changes a setting of the conversation, or of the one that the next message starts.
    async fn set(&mut self, assignment: &str) -> Result<(), CliError> {
        let mut changed = self.settings.clone();
        cli::assign(&mut changed, assignment)?;
        if let Some(id) = &self.conversation {
            let api = self.transport.api();
            let mut settings = api.conversation(id).await?.settings;
            cli::assign(&mut settings, assignment)?;
            let request = ChangeConversation { settings: Some(settings), ..ChangeConversation::default() };
            api.change_conversation(id, request).await?;
        }
        self.settings = changed;
        self.show_settings().await
    }

    async fn show_settings(&self) -> Result<(), CliError> {
        let settings = match &self.conversation {
            Some(id) => self.settings.clone().over(&self.transport.api().conversation(id).await?.settings),
            None => self.settings.clone(),
        };
        out::note(&if settings.is_default() {
            "polis: this conversation calls models as its role does".to_owned()
        } else {
            format!("polis: this conversation calls models with {}", serde_json::to_string(&settings).unwrap_or_default())
        });
        Ok(())
    }

    async fn approve(&mut self) -> Result<(), CliError> {
        let waiting = approval_prompt::list(self.transport).await?;
        if waiting.is_empty() {
            out::note("polis: nothing waits for you");
        }
        for one in &waiting {
            if !self.is_terminal {
                out::note(&format!("  {}\n    {}", one.describe(), one.advice(self.config)));
                continue;
            }
            let answered = tokio::select! {
                () = self.interrupts.stop.cancelled() => return Ok(()),
                answered = one.ask(self.transport, &mut self.lines) => answered,
            };
            match answered {
                Ok(true) => out::note("polis: recorded"),
                // The input has ended.
                Ok(false) => return Ok(()),
                Err(error) if error.code == "not_open" => out::note("polis: it was decided in the meantime"),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The next line. On a terminal there is a prompt, and a backslash at the end continues the line on the next one.
async fn read_line(lines: &mut StdinLines, is_terminal: bool) -> Option<Line> {
    if !is_terminal {
        return lines.next().await;
    }
    let mut whole = String::new();
    loop {
        match lines.prompt_kept(if whole.is_empty() { "> " } else { "… " }).await? {
            Line::Garbled => return Some(Line::Garbled),
            Line::Text(text) => match text.strip_suffix('\\') {
                Some(begun) => {
                    whole.push_str(begun);
                    whole.push('\n');
                }
                None => return Some(Line::Text(whole + &text)),
            },
        }
    }
}

impl<'a> Input<'a> {
    /// What a line means; none for an empty one.
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if let Some(agent) = word.strip_prefix('@') {
            return Some(Self::Send(agent, rest));
        }
        Some(match (word, rest) {
            ("", _) => return None,
            ("/new", "") => Self::New,
            ("/list", "") => Self::List,
            ("/switch", name) if !name.is_empty() => Self::Switch(name),
            ("/file", path) if !path.is_empty() => Self::File(path),
            ("/model", name) => Self::Model(name),
            ("/effort", effort) => Self::Effort(effort),
            ("/set", assignment) if assignment.contains('=') => Self::Set(assignment),
            ("/approve", "") => Self::Approve,
            ("/help", "") => Self::Help,
            ("/quit", "") => Self::Quit,
            // A path is no command.
            (word, "") if word.strip_prefix('/').is_some_and(|name| !name.contains(['/', '.'])) => Self::Unknown(word),
            _ => Self::Say(line),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_to_the_conversation_unless_it_names_somebody_or_is_a_command() {
        for (line, want) in [
            ("hello there", Some(Input::Say("hello there"))),
            ("  @bob  how are you ", Some(Input::Send("bob", "how are you"))),
            ("@小明 你好", Some(Input::Send("小明", "你好"))),
            ("@bob", Some(Input::Send("bob", ""))),
            ("a@b.c is an address", Some(Input::Say("a@b.c is an address"))),
            ("   ", None),
            ("/new", Some(Input::New)),
            (" /switch  a trip ", Some(Input::Switch("a trip"))),
            ("/switch", Some(Input::Unknown("/switch"))),
            ("/file  a b.png ", Some(Input::File("a b.png"))),
            ("/file", Some(Input::Unknown("/file"))),
            ("/model", Some(Input::Model(""))),
            ("/model openai/m", Some(Input::Model("openai/m"))),
            ("/effort high", Some(Input::Effort("high"))),
            ("/set temperature=0.2", Some(Input::Set("temperature=0.2"))),
            ("/set the table", Some(Input::Say("/set the table"))),
            ("/new ideas please", Some(Input::Say("/new ideas please"))),
            ("/etc/hosts", Some(Input::Say("/etc/hosts"))),
            ("/nwe", Some(Input::Unknown("/nwe"))),
        ] {
            assert_eq!(Input::of(line), want, "{line:?}");
        }
    }
}
