//! One server: its task connects, lists its tools, and begins anew with growing pauses when it dies or falls silent.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::CallResult;
use polis_ports::{Artifacts, CallContext, ServerState, ServerWait, ToolError};
use rmcp::model::{CallToolRequestParams, ClientRequest, ErrorCode, PingRequest, SubscriptionFilter};
use rmcp::service::{PeerRequestOptions, Subscription};
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{self, CallFailure, McpRequest};
use super::client_handler::McpClientHandler;
use super::connect::{self, ConnectError};
use super::listing::{List, entries};
use super::oauth::{StoredLogin, Wants, wants};
use super::process::Process;
use super::resource_tools::{self, GetPromptArguments, ListFilter, ReadResourceArguments};
use super::servers::McpOptions;
use super::settings::ServerSettings;
use super::tools::{ServerTool, ToolAction, server_tools};
use crate::results::{arguments, failed};

/// Most calls that a server has to do at once; the others wait.
const MAX_CALLS: usize = 16;

/// Longest reason that is kept, in characters: it may hold what the server said.
const MAX_REASON_CHARS: usize = 500;

/// The least time between two listings, however often a server says that its list has changed.
const BREATH: Duration = Duration::from_millis(250);

/// How often to look whether somebody has logged in.
const LOOK: Duration = Duration::from_millis(500);

/// A server, whatever state it is in.
pub(super) struct Server {
    pub(super) settings: ServerSettings,
    pub(super) client: McpClientHandler,
    pub(super) state: watch::Sender<State>,
    /// When the first connection began.
    opened: Instant,
    slots: Semaphore,
    /// Somebody waited for it in vain.
    suspicion: Notify,
    /// Where the login at it is kept.
    login: Option<StoredLogin>,
}

/// How it stands.
#[derive(Clone)]
pub(super) enum State {
    /// The operator does not want it.
    Off,
    /// The first connection is being made.
    Starting,
    /// Its tools can be called.
    Connected(Arc<Connection>),
    /// Why not; it is tried again.
    Down(Arc<str>),
    /// We have closed it.
    Closed,
}

/// What is known while a connection stands.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    /// What the server calls itself.
    pub(super) title: String,
    pub(super) tools: Vec<Arc<ServerTool>>,
    /// The server does not want us any more.
    locked: CancellationToken,
}

impl State {
    pub(super) fn summary(&self) -> (ServerState, String) {
        match self {
            Self::Off => (ServerState::Off, "not enabled".to_owned()),
            Self::Starting => (ServerState::Starting, "starting".to_owned()),
            Self::Connected(connection) => (ServerState::Connected, connection.title.clone()),
            Self::Down(why) => (ServerState::Down, why.to_string()),
            Self::Closed => (ServerState::Down, "closed".to_owned()),
        }
    }
}

impl Server {
    pub(super) fn new(settings: ServerSettings, options: &McpOptions) -> Self {
        let client = McpClientHandler {
            server: settings.name.as_str().into(),
            roots: settings.roots(&options.closed).into(),
            calls: Arc::default(),
            changed: Arc::new(Notify::new()),
        };
        let state = if settings.enabled { State::Starting } else { State::Off };
        let login = connect::login_of(&settings, options.logins.as_ref());
        Self {
            settings,
            client,
            state: watch::Sender::new(state),
            opened: Instant::now(),
            slots: Semaphore::new(MAX_CALLS),
            suspicion: Notify::new(),
            login,
        }
    }

    /// The connection, if there is one just now.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, String> {
        match &*self.state.borrow() {
            State::Connected(connection) => Ok(connection.clone()),
            state => Err(format!("the server `{}` is not connected: {}", self.settings.name, state.summary().1)),
        }
    }

    /// Waits for the end of the first connection attempt, which has a limit of its own; a turn waits no longer than the settings
    /// say.
    pub(super) async fn started(&self, purpose: ServerWait) {
        let mut state = self.state.subscribe();
        let started = state.wait_for(|state| !matches!(state, State::Starting));
        match purpose {
            ServerWait::Call => drop(started.await),
            ServerWait::Turn => drop(tokio::time::timeout_at(self.opened + self.settings.start_wait, started).await),
        }
    }

    /// Does what a tool of it stands for; `name` is the server's own.
    pub(super) async fn call(
        &self,
        name: &str,
        action: ToolAction,
        text: &str,
        context: &CallContext,
    ) -> Result<CallResult, ToolError> {
        match action {
            ToolAction::Call => {
                let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments(text)?);
                Ok(self.ask(McpRequest::Tool(params), context).await)
            }
            ToolAction::ReadResource => Ok(self.ask(arguments::<ReadResourceArguments>(text)?.request(), context).await),
            ToolAction::GetPrompt => Ok(self.ask(arguments::<GetPromptArguments>(text)?.request(), context).await),
            ToolAction::ListResources | ToolAction::ListPrompts => {
                Ok(self.list(action, &arguments(text)?, &*context.artifacts.store).await)
            }
        }
    }

    async fn ask(&self, request: McpRequest, context: &CallContext) -> CallResult {
        match self.seat().await {
            Ok((_seat, connection)) => {
                let answer = call::ask(&connection.peer, &self.client, request, self.settings.timeout, context).await;
                self.judged(&connection, answer).await
            }
            Err(why) => failed(format!("{why}; nothing was done")),
        }
    }

    /// Reads lists and tells them.
    async fn list(&self, action: ToolAction, filter: &ListFilter, store: &dyn Artifacts) -> CallResult {
        let (_seat, connection) = match self.seat().await {
            Ok(seated) => seated,
            Err(why) => return failed(why),
        };
        let mut lists = Vec::new();
        for list in resource_tools::lists(action) {
            match entries(&connection.peer, *list).await {
                Ok(listed) => lists.push((*list, listed)),
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {}
                Err(error) => return self.judged(&connection, Err(call::failed(error, self.settings.timeout))).await,
            }
        }
        resource_tools::list_entries(lists, filter, store).await
    }

    /// A place among the calls that are made at once, and the connection to make it on.
    async fn seat(&self) -> Result<(SemaphorePermit<'_>, Arc<Connection>), String> {
        let Ok(Ok(seat)) = tokio::time::timeout(self.settings.timeout, self.slots.acquire()).await else {
            return Err(format!("the server `{}` is busy", self.settings.name));
        };
        self.connection().map(|connection| (seat, connection))
    }

    /// What the model reads. A server that did not answer is looked after.
    async fn judged(&self, connection: &Connection, answer: Result<CallResult, CallFailure>) -> CallResult {
        match answer {
            Ok(result) => result,
            Err(CallFailure::Refused(why)) => failed(why),
            Err(CallFailure::NoAnswer(why)) => {
                self.suspicion.notify_one();
                failed(why)
            }
            Err(CallFailure::LoginRequired(wants)) => {
                if matches!(wants, Wants::Login(_)) {
                    connection.locked.cancel();
                }
                failed(format!("{}; nothing was done", self.unwelcome(wants).await))
            }
        }
    }

    /// Remembers what the server wants of a login, and says what a person can do.
    async fn unwelcome(&self, wants: Wants) -> String {
        let (what, challenge) = match wants {
            Wants::Login(challenge) => ("it requires a login", challenge),
            Wants::Rights(challenge) => ("it requires more rights than your login has", Some(challenge)),
        };
        if connect::has_own_authorization(&self.settings) {
            return "it does not accept the Authorization that is set for it (401)".to_owned();
        }
        if let (Some(login), Some(challenge)) = (&self.login, challenge) {
            login.note(&challenge).await;
        }
        format!("{what}: run `polis tools login {}`", self.settings.name)
    }

    /// Waits before the next try: for a while, or until somebody has logged in.
    async fn rest(&self, pause: Duration) {
        let Some(login) = &self.login else { return tokio::time::sleep(pause).await };
        let (before, until) = (login.tokens().await, Instant::now() + pause);
        while Instant::now() < until {
            tokio::time::sleep(LOOK.min(until - Instant::now())).await;
            if let (Ok(before), Ok(now)) = (&before, login.tokens().await)
                && *before != now
            {
                return;
            }
        }
    }

    /// Changes the state. The change is counted before anybody who waits for the state can look at the tools.
    fn publish(&self, state: State, changed: &(dyn Fn() + Send + Sync)) {
        self.state.send_modify(|current| {
            *current = state;
            changed();
        });
    }

    /// Keeps it running until `stop`. `changed` is called whenever its tools are no longer the same.
    pub(super) async fn supervise(&self, options: &McpOptions, stop: &CancellationToken, changed: &(dyn Fn() + Send + Sync)) {
        let mut pause = options.first_pause;
        let mut reported = String::new();
        while !stop.is_cancelled() {
            let began = Instant::now();
            let mut process = None;
            let why = self.live(options, &mut process, stop, changed).await;
            let why: String = why.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
            self.publish(State::Down(why.as_str().into()), changed);
            let last_stderr_line = process.as_ref().map(Process::last_stderr_line).unwrap_or_default();
            if let Some(process) = process {
                process.close().await;
            }
            if stop.is_cancelled() {
                break;
            }
            // One that does not come up is reported once.
            let is_news = std::mem::replace(&mut reported, why.clone()) != why;
            let why = last_stderr_line.after(&why);
            match is_news {
                true => tracing::warn!(server = self.settings.name, "the MCP server is down, it is tried again: {why}"),
                false => tracing::info!(server = self.settings.name, "the MCP server is still down: {why}"),
            }
            self.state.send_replace(State::Down(why.into()));
            tokio::select! {
                () = self.rest(pause) => {}
                () = stop.cancelled() => {}
            }
            let was_well = began.elapsed() > options.longest_pause + pause;
            if was_well {
                reported.clear();
            }
            pause = next_pause(pause, was_well, options);
        }
        self.publish(State::Closed, changed);
    }

    /// One life of the connection; says why it ended.
    async fn live(
        &self,
        options: &McpOptions,
        process: &mut Option<Process>,
        stop: &CancellationToken,
        changed: &(dyn Fn() + Send + Sync),
    ) -> String {
        let start = async {
            let session =
                connect::open(&self.settings, self.client.clone(), process, self.login.as_ref(), &options.network).await;
            let session = match session {
                Ok(session) => session,
                Err(ConnectError::Failed(why) | ConnectError::Confused(why)) => return Err(why),
                Err(ConnectError::Login(challenge)) => return Err(self.unwelcome(Wants::Login(challenge)).await),
            };
            match self.listed(session.peer(), CancellationToken::new()).await {
                Ok(connection) => Ok((session, connection)),
                Err(error) => Err(match wants(&error) {
                    Some(wants) => self.unwelcome(wants).await,
                    None => format!("its tools cannot be listed: {error}"),
                }),
            }
        };
        let started = tokio::select! {
            started = tokio::time::timeout(options.start_timeout, start) => started,
            () = stop.cancelled() => return "closed".to_owned(),
        };
        let (session, connection) = match started {
            Ok(Ok(started)) => started,
            Ok(Err(why)) => return why,
            Err(_) => return format!("it was not ready after {} s", options.start_timeout.as_secs_f32()),
        };
        let locked = connection.locked.clone();
        self.publish(State::Connected(Arc::new(connection)), changed);
        let (peer, end) = (session.peer().clone(), session.cancellation_token());
        let mut ended = std::pin::pin!(session.waiting());
        let why = tokio::select! {
            why = died(process) => why,
            _ = &mut ended => return "the connection was closed".to_owned(),
            () = stop.cancelled() => "closed".to_owned(),
            () = locked.cancelled() => self.unwelcome(Wants::Login(None)).await,
            why = self.attend(&peer, &locked, options, changed) => why,
        };
        // Closes stdin as well, so that a process can end by itself.
        end.cancel();
        let _ = tokio::time::timeout(options.pulse, ended).await;
        why
    }

    /// Looks after a connection that stands; says why it should not.
    async fn attend(
        &self,
        peer: &Peer<RoleClient>,
        locked: &CancellationToken,
        options: &McpOptions,
        changed: &(dyn Fn() + Send + Sync),
    ) -> String {
        let mut changes = subscribed(peer, options.pulse).await;
        loop {
            tokio::select! {
                () = self.suspicion.notified() => {
                    if !is_alive(peer, options.pulse).await {
                        return format!("it no longer answers, not even within {} s", options.pulse.as_secs_f32());
                    }
                    continue;
                }
                () = self.client.changed.notified() => {}
                is_over = next_change(&mut changes) => if is_over { changes = None; continue },
            }
            tokio::time::sleep(BREATH).await;
            match tokio::time::timeout(options.start_timeout, self.listed(peer, locked.clone())).await {
                Ok(Ok(connection)) => {
                    self.publish(State::Connected(Arc::new(connection)), changed);
                }
                Ok(Err(error)) => tracing::warn!(server = self.settings.name, "the new list of tools cannot be read: {error}"),
                Err(_) => return "its new list of tools never ended".to_owned(),
            }
        }
    }

    async fn listed(&self, peer: &Peer<RoleClient>, locked: CancellationToken) -> Result<Connection, ServiceError> {
        let info = peer.peer_info();
        let has_tools = info.as_ref().is_none_or(|info| info.capabilities.tools.is_some());
        let listed = if has_tools { entries(peer, List::Tools).await? } else { Vec::new() };
        let title = match info.as_ref().and_then(|info| info.server_info.as_ref()) {
            Some(server) => format!("{} {}", server.name, server.version),
            None => self.settings.transport.to_string(),
        };
        let title = title.chars().filter(|c| !c.is_control()).take(100).collect();
        let mut tools = server_tools(&self.settings, listed);
        if let Some(info) = &info {
            let resource_tools = resource_tools::resource_tools(&self.settings, &info.capabilities, &tools);
            tools.extend(resource_tools);
        }
        let tools = tools.into_iter().map(Arc::new).collect();
        Ok(Connection { peer: peer.clone(), title, tools, locked })
    }
}

/// How long to wait after a wait in vain; a server that was well for a while begins anew.
fn next_pause(pause: Duration, was_well: bool, options: &McpOptions) -> Duration {
    if was_well { options.first_pause } else { (pause * 2).min(options.longest_pause) }
}

/// Servers of the newest protocol tell of changes only to whoever subscribes.
async fn subscribed(peer: &Peer<RoleClient>, patience: Duration) -> Option<Subscription> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if info.protocol_version.has_initialize() || !tells {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    tokio::time::timeout(patience, peer.listen(filter)).await.ok()?.ok()
}

/// Waits for a change; says whether no more will come.
async fn next_change(changes: &mut Option<Subscription>) -> bool {
    match changes {
        Some(subscription) => !matches!(subscription.next().await, Ok(Some(_))),
        None => std::future::pending().await,
    }
}

/// Any answer is a sign of life, also a refusal.
async fn is_alive(peer: &Peer<RoleClient>, patience: Duration) -> bool {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    let answered = match peer.send_request_with_option(ping, PeerRequestOptions::with_timeout(patience)).await {
        Ok(handle) => handle.await_response().await.map(drop),
        Err(error) => Err(error),
    };
    matches!(answered, Ok(()) | Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse))
}

/// Waits for the end of a process, if there is one.
async fn died(process: &mut Option<Process>) -> String {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_good_while() {
        let options = McpOptions::default();
        let mut pause = options.first_pause;
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.push(pause.as_secs());
            pause = next_pause(pause, false, &options);
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(next_pause(pause, true, &options), options.first_pause);
    }
}
