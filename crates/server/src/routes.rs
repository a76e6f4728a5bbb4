//! The table of routes. A route that is not here does not exist: it is reached, guarded, tested and described by its row alone.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, HOST};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use polis_api::{Accepted, ConversationPage, OrganisationPage, Paging, RequestPage, TurnPage, View};
use polis_domain::{Artifact, Org, Thread};

use crate::caller::{RequestCaller, Scope, caller_of};
use crate::idempotency::with_key;
use crate::problem::Problem;
use crate::route_doc::RouteDoc;
use crate::state::SocietyState;
use crate::{
    a2a, agui, artifacts, components, conversations, events, live, mcp, memories, metrics, node, openai, openapi, organisation,
    page, requests, sandbox, societies, views,
};

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everybody whose `Host` and `Origin` are right.
    Open,
    /// Only who has a token as well; what it must be good for depends on what is asked.
    Known,
    /// Only who has a token with this scope as well.
    Needs(Scope),
}

const OPEN: Gate = Gate::Open;
const KNOWN: Gate = Gate::Known;
const READ: Gate = Gate::Needs(Scope::Read);
const SEND: Gate = Gate::Needs(Scope::Send);
const APPROVE: Gate = Gate::Needs(Scope::Approve);
const ADMIN: Gate = Gate::Needs(Scope::Admin);

/// One way in. `gate` is checked before `handler` is reached; who it was is in the request as a [`polis_api::Caller`].
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) gate: Gate,
    handler: fn() -> MethodRouter<SocietyState>,
    pub(crate) doc: RouteDoc,
}

/// What can go wrong at some of them, beside what can go wrong everywhere.
type Problems = &'static [(u16, &'static str)];

const AGENT: Problems = &[(404, "unknown_agent")];
const TASK: Problems = &[(404, "unknown_task")];
const THREAD: Problems = &[(400, "bad_path"), (404, "unknown_thread")];
const FOLLOW: Problems = &[(400, "bad_query"), (409, "ahead_of_log"), (409, "other_history"), (503, "too_many_streams")];
const MESSAGE: Problems = &[
    (400, "bad_artifact_id"),
    (400, "bad_name"),
    (400, "bad_setting"),
    (400, "context_too_large"),
    (400, "empty_text"),
    (400, "to_user"),
    (404, "no_artifacts"),
    (404, "unknown_agent"),
    (404, "unknown_artifact"),
    (404, "unknown_task"),
    (409, "leaving"),
    (413, "text_too_long"),
    (429, "busy"),
    (500, "artifact_damaged"),
    (500, "artifacts_failed"),
];
const SUBMIT: Problems = &[
    (400, "bad_artifact_id"),
    (400, "bad_model"),
    (400, "bad_name"),
    (400, "bad_setting"),
    (400, "context_too_large"),
    (400, "conversation_started"),
    (400, "empty_text"),
    (404, "no_artifacts"),
    (404, "unknown_agent"),
    (404, "unknown_artifact"),
    (404, "unknown_conversation"),
    (404, "unknown_role"),
    (409, "leaving"),
    (413, "text_too_long"),
    (429, "busy"),
    (500, "artifact_damaged"),
    (500, "artifacts_failed"),
];
const CONVERSATION: Problems = &[(404, "unknown_conversation")];
const CONVERSE: Problems = &[
    (400, "bad_model"),
    (400, "bad_name"),
    (400, "bad_setting"),
    (404, "unknown_conversation"),
    (404, "unknown_role"),
    (409, "name_taken"),
];
const MEMORIES: Problems = &[(503, "memory_failed"), (503, "memory_off")];
const KEEP_MEMORY: Problems =
    &[(400, "empty_text"), (409, "too_many_memories"), (413, "text_too_long"), (503, "memory_failed"), (503, "memory_off")];
const EDIT_MEMORY: Problems =
    &[(400, "empty_text"), (404, "unknown_memory"), (413, "text_too_long"), (503, "memory_failed"), (503, "memory_off")];
const ERASE_MEMORY: Problems = &[(404, "unknown_memory"), (503, "memory_failed"), (503, "memory_off")];
const CANCEL: Problems = &[(404, "unknown_task"), (409, "turn_not_open")];
const RETRY: Problems = &[
    (400, "bad_name"),
    (404, "unknown_agent"),
    (404, "unknown_task"),
    (409, "leaving"),
    (409, "nothing_to_retry"),
    (409, "still_open"),
    (429, "busy"),
];
const ACT: Problems = &[
    (400, "bad_action"),
    (400, "bad_answer"),
    (400, "bad_id"),
    (400, "bad_name"),
    (400, "to_user"),
    (403, "not_approver"),
    (404, "unknown_agent"),
    (409, "leaving"),
    (409, "not_open"),
    (409, "not_waiting"),
    (413, "text_too_long"),
    (429, "busy"),
];
const CHANGE: Problems = &[(400, "bad_id")];
const RESOLVE: Problems = &[
    (400, "bad_answer"),
    (400, "bad_id"),
    (403, "not_approver"),
    (409, "not_open"),
    (409, "not_parked"),
    (409, "not_waiting"),
    (409, "turn_not_open"),
];
const LEAVE: Problems = &[(404, "unknown_agent"), (409, "has_children"), (409, "leaving"), (409, "root_stays")];
const COMPRESS: Problems = &[
    (400, "bad_name"),
    (400, "to_user"),
    (404, "unknown_agent"),
    (404, "unknown_thread"),
    (409, "leaving"),
    (409, "nothing_to_restore"),
    (409, "thread_busy"),
    (429, "busy"),
];
const OPERATE: Problems =
    &[(400, "bad_name"), (400, "to_user"), (404, "unknown_agent"), (404, "unknown_operation"), (409, "leaving"), (429, "busy")];
const IMPORT: Problems =
    &[(400, "bad_name"), (400, "bad_org"), (404, "unknown_agent"), (404, "unknown_role"), (409, "name_taken")];
const FORK: Problems =
    &[(400, "bad_society_name"), (409, "no_such_event"), (409, "society_exists"), (409, "too_early"), (409, "one_society")];
const BEGIN: Problems = &[(400, "bad_society_name"), (409, "one_society"), (503, "too_many_societies")];
const NODES: Problems = &[(409, "no_nodes")];
const DRAIN: Problems = &[(404, "unknown_node"), (409, "no_nodes")];
const PUT: Problems = &[
    (404, "no_artifacts"),
    (413, "artifact_too_large"),
    (500, "artifact_damaged"),
    (500, "artifacts_failed"),
    (507, "artifacts_full"),
];
const CONTENT: Problems = &[
    (400, "bad_artifact_id"),
    (404, "no_artifacts"),
    (404, "unknown_artifact"),
    (416, "bad_range"),
    (500, "artifact_damaged"),
    (500, "artifacts_failed"),
];

const VIEW_AGENT: Problems = &[(404, "unknown_agent"), (404, "unknown_task")];
const VIEW_TURN: Problems = &[(400, "bad_id"), (404, "unknown_turn")];
const VIEW_PAST: Problems = &[(409, "no_such_event"), (409, "too_far_back")];

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/", gate: OPEN, handler: || get(page::index),
            doc: RouteDoc::new("The page.").media("text/html") },
    Route { method: Method::GET, path: "/sandbox/static", gate: OPEN, handler: || get(sandbox::fixed),
            doc: RouteDoc::new("A frame for HTML documents of models, without scripts.").media("text/html") },
    Route { method: Method::GET, path: "/sandbox/live", gate: OPEN, handler: || get(sandbox::live),
            doc: RouteDoc::new("A frame for HTML documents of models with scripts, if the operator allows it.").media("text/html").fails(&[(403, "live_html_off")]) },
    Route { method: Method::GET, path: "/components/{name}", gate: OPEN, handler: || get(components::script),
            doc: RouteDoc::new("A script of the operator that adds components to the page.").media("text/javascript").fails(&[(404, "not_found"), (413, "too_large")]) },
    Route { method: Method::GET, path: "/api/page", gate: READ, handler: || get(components::page),
            doc: RouteDoc::new("Settings of the page.").gives::<components::PageAdditions>() },
    Route { method: Method::GET, path: "/api/health", gate: OPEN, handler: || get(node::health),
            doc: RouteDoc::new("Health of the society.").gives::<polis_api::Health>() },
    Route { method: Method::GET, path: "/api/version", gate: READ, handler: || get(node::version),
            doc: RouteDoc::new("The version of the server.").gives::<polis_api::Version>() },
    Route { method: Method::POST, path: "/api/submit", gate: SEND, handler: || post(requests::submit),
            doc: RouteDoc::new("Submits a request: to a conversation, or to a new one.").takes::<polis_api::Submit>().gives::<Accepted>().once().fails(SUBMIT) },
    Route { method: Method::GET, path: "/api/conversations", gate: READ, handler: || get(conversations::list),
            doc: RouteDoc::new("The conversations: pinned ones first, then those with the newest messages.").asks::<polis_api::ConversationPaging>().gives::<polis_api::Conversations>().fails(&[(400, "bad_cursor")]) },
    Route { method: Method::POST, path: "/api/conversations", gate: SEND, handler: || post(conversations::start),
            doc: RouteDoc::new("Starts a conversation without a message.").takes::<polis_api::StartConversation>().gives::<polis_api::Conversation>().once().fails(CONVERSE) },
    Route { method: Method::GET, path: "/api/conversations/{id}", gate: READ, handler: || get(conversations::get),
            doc: RouteDoc::new("One conversation.").gives::<polis_api::Conversation>().fails(CONVERSATION) },
    Route { method: Method::POST, path: "/api/conversations/{id}", gate: SEND, handler: || post(conversations::change),
            doc: RouteDoc::new("Renames, pins or archives a conversation, or changes its model, strategy or model settings.").takes::<polis_api::ChangeConversation>().gives::<polis_api::Conversation>().once().fails(&[(400, "bad_model"), (400, "bad_name"), (400, "bad_setting"), (404, "unknown_conversation")]) },
    Route { method: Method::POST, path: "/api/conversations/{id}/delete", gate: SEND, handler: || post(conversations::delete),
            doc: RouteDoc::new("Deletes a conversation: its agent is terminated with all below it. The log keeps what was said.").takes::<polis_api::DeleteConversation>().gives::<polis_api::Deleted>().once().fails(&[(404, "unknown_conversation"), (409, "leaving"), (409, "root_stays")]) },
    Route { method: Method::POST, path: "/api/conversations/{id}/erase", gate: SEND, handler: || post(conversations::erase),
            doc: RouteDoc::new("Erases the content of a conversation for good, also of one that was deleted before. One that goes on is deleted first.").takes::<polis_api::EraseConversation>().gives::<polis_api::Erased>().once().fails(&[(404, "unknown_conversation"), (409, "conversation_busy"), (409, "leaving"), (409, "root_stays")]) },
    Route { method: Method::GET, path: "/api/memories", gate: READ, handler: || get(memories::list),
            doc: RouteDoc::new("What agents remember for the caller and for the society: newest first, or best first if words are searched.").asks::<polis_api::MemoryFilter>().gives::<polis_api::Memories>().fails(MEMORIES) },
    Route { method: Method::POST, path: "/api/memories", gate: SEND, handler: || post(memories::keep),
            doc: RouteDoc::new("Stores a memory for the caller, or for the society.").takes::<polis_api::KeepMemory>().gives::<polis_api::ChangedMemory>().once().fails(KEEP_MEMORY) },
    Route { method: Method::POST, path: "/api/memories/enabled", gate: SEND, handler: || post(memories::switch),
            doc: RouteDoc::new("Switches memory on or off for the agents that work for the caller. What is stored stays.").takes::<polis_api::SwitchMemory>().gives::<polis_api::SwitchMemory>().once().fails(MEMORIES) },
    Route { method: Method::POST, path: "/api/memories/{id}", gate: SEND, handler: || post(memories::edit),
            doc: RouteDoc::new("Gives a memory another text. The old text is erased.").takes::<polis_api::EditMemory>().gives::<polis_api::ChangedMemory>().once().fails(EDIT_MEMORY) },
    Route { method: Method::POST, path: "/api/memories/{id}/erase", gate: SEND, handler: || post(memories::erase),
            doc: RouteDoc::new("Erases a memory and its text.").takes::<polis_api::EraseMemory>().gives::<polis_api::ChangedMemory>().once().fails(ERASE_MEMORY) },
    Route { method: Method::POST, path: "/api/send", gate: SEND, handler: || post(requests::send),
            doc: RouteDoc::new("Sends a message to an agent, within a request or as a new one.").takes::<polis_api::Send>().gives::<Accepted>().once().fails(MESSAGE) },
    Route { method: Method::GET, path: "/api/messages/{taskId}", gate: READ, handler: || get(requests::messages),
            doc: RouteDoc::new("The messages of a request.").asks::<polis_api::MessagePaging>().gives::<polis_api::Messages>().fails(TASK) },
    Route { method: Method::GET, path: "/api/agents", gate: READ, handler: || get(organisation::agents),
            doc: RouteDoc::new("The agents and what each is doing.").asks::<Paging>().gives::<polis_api::Agents>() },
    Route { method: Method::GET, path: "/api/agents/{id}", gate: READ, handler: || get(organisation::agent),
            doc: RouteDoc::new("One agent, with its role, its children and its operations.").gives::<polis_api::AgentDetail>().fails(AGENT) },
    Route { method: Method::POST, path: "/api/agents/{id}/terminate", gate: ADMIN, handler: || post(organisation::terminate),
            doc: RouteDoc::new("Terminates an agent.").takes::<polis_api::Terminate>().gives::<polis_api::Terminated>().once().fails(LEAVE) },
    Route { method: Method::POST, path: "/api/agents/{id}/operate", gate: SEND, handler: || post(organisation::operate),
            doc: RouteDoc::new("Runs an operation of an agent.").takes::<polis_api::Operate>().gives::<Accepted>().once().fails(OPERATE) },
    Route { method: Method::POST, path: "/api/agents/{id}/compress", gate: SEND, handler: || post(organisation::compress),
            doc: RouteDoc::new("Lets an agent compress its conversation, or undoes that.").takes::<polis_api::Compress>().gives::<polis_api::Compressing>().once().fails(COMPRESS) },
    Route { method: Method::GET, path: "/api/org", gate: READ, handler: || get(organisation::org),
            doc: RouteDoc::new("The organisation as one document.").gives::<Org>() },
    Route { method: Method::POST, path: "/api/org", gate: ADMIN, handler: || post(organisation::import),
            doc: RouteDoc::new("Creates the roles and agents of a document that do not exist yet.").asks::<polis_api::ImportRequest>().takes::<Org>().gives::<polis_api::Imported>().once().fails(IMPORT) },
    Route { method: Method::GET, path: "/api/roles", gate: READ, handler: || get(organisation::roles),
            doc: RouteDoc::new("The roles.").asks::<Paging>().gives::<polis_api::Roles>() },
    Route { method: Method::GET, path: "/api/threads", gate: READ, handler: || get(organisation::threads),
            doc: RouteDoc::new("The conversations.").asks::<Paging>().gives::<polis_api::Threads>() },
    Route { method: Method::GET, path: "/api/threads/{id}", gate: READ, handler: || get(organisation::thread),
            doc: RouteDoc::new("A conversation, or a part of it by its address.").asks::<polis_api::ThreadPart>().gives::<Thread>().fails(THREAD) },
    Route { method: Method::GET, path: "/api/tasks", gate: READ, handler: || get(requests::tasks),
            doc: RouteDoc::new("The open requests.").asks::<Paging>().gives::<polis_api::Tasks>() },
    Route { method: Method::GET, path: "/api/tasks/{id}", gate: READ, handler: || get(requests::task),
            doc: RouteDoc::new("The state of a request.").gives::<polis_api::TaskState>().fails(TASK) },
    Route { method: Method::POST, path: "/api/tasks/{id}/retry", gate: SEND, handler: || post(requests::retry),
            doc: RouteDoc::new("Retries a request that has ended.").takes::<polis_api::Retry>().gives::<Accepted>().once().fails(RETRY) },
    Route { method: Method::POST, path: "/api/tasks/{id}/cancel", gate: SEND, handler: || post(requests::cancel),
            doc: RouteDoc::new("Cancels a request.").takes::<polis_api::Cancel>().gives::<polis_api::Cancelled>().once().fails(CANCEL) },
    Route { method: Method::GET, path: "/api/dead-letters", gate: READ, handler: || get(organisation::dead_letters),
            doc: RouteDoc::new("The dead letters: messages that crashed agents.").gives::<polis_api::DeadLetters>() },
    Route { method: Method::GET, path: "/api/plans", gate: READ, handler: || get(requests::plans),
            doc: RouteDoc::new("The plans of agents.").asks::<polis_api::PlanFilter>().gives::<polis_api::Plans>() },
    Route { method: Method::GET, path: "/api/approvals", gate: READ, handler: || get(requests::approvals),
            doc: RouteDoc::new("What waits for a person.").asks::<Paging>().gives::<polis_api::Approvals>() },
    Route { method: Method::GET, path: "/api/approvals/{id}/change", gate: READ, handler: || get(requests::pending_change),
            doc: RouteDoc::new("What a pending call would change in a file.").gives::<polis_api::PendingChange>().fails(CHANGE) },
    Route { method: Method::POST, path: "/api/approvals/{id}", gate: APPROVE, handler: || post(requests::resolve),
            doc: RouteDoc::new("Decides a pending item.").takes::<polis_api::DecisionRequest>().gives::<polis_api::Resolved>().once().fails(RESOLVE) },
    Route { method: Method::GET, path: "/api/artifacts", gate: READ, handler: || get(artifacts::list),
            doc: RouteDoc::new("The artifacts.").asks::<polis_api::ArtifactPaging>().gives::<polis_api::Artifacts>() },
    Route { method: Method::POST, path: "/api/artifacts", gate: SEND, handler: || post(artifacts::put),
            doc: RouteDoc::new("Stores an artifact.").asks::<polis_api::ArtifactName>().takes_anything().gives::<Artifact>().fails(PUT) },
    Route { method: Method::GET, path: "/api/artifacts/{id}", gate: READ, handler: || get(artifacts::get),
            doc: RouteDoc::new("A content.").media("*/*").fails(CONTENT) },
    Route { method: Method::GET, path: "/api/models", gate: READ, handler: || get(node::models),
            doc: RouteDoc::new("The available models.").gives::<polis_api::Models>() },
    Route { method: Method::GET, path: "/api/tools", gate: READ, handler: || get(node::tools),
            doc: RouteDoc::new("The available tools and the state of their servers.").asks::<Paging>().gives::<polis_api::Tools>() },
    Route { method: Method::GET, path: "/api/policy", gate: READ, handler: || get(node::policy),
            doc: RouteDoc::new("The operator's rules for calls.").gives::<polis_api::Policy>() },
    Route { method: Method::GET, path: "/api/usage", gate: READ, handler: || get(node::usage),
            doc: RouteDoc::new("What was spent.").gives::<polis_api::UsageReport>() },
    Route { method: Method::GET, path: "/api/deployment", gate: READ, handler: || get(node::deployment),
            doc: RouteDoc::new("The versions of agents' code, and the open turns that need them.").gives::<polis_api::Deployment>() },
    Route { method: Method::GET, path: "/api/societies", gate: READ, handler: || get(societies::list),
            doc: RouteDoc::new("The societies of the store.").asks::<Paging>().gives::<polis_api::SocietyList>() },
    Route { method: Method::POST, path: "/api/societies", gate: ADMIN, handler: || post(societies::begin),
            doc: RouteDoc::new("Creates and starts a society, unless it exists.").takes::<polis_api::BeginSociety>().gives::<polis_api::BegunSociety>().once().fails(BEGIN) },
    Route { method: Method::GET, path: "/api/nodes", gate: ADMIN, handler: || get(node::nodes),
            doc: RouteDoc::new("The nodes that share the log.").gives::<polis_api::NodeList>().fails(NODES) },
    Route { method: Method::POST, path: "/api/nodes/{name}/drain", gate: ADMIN, handler: || post(node::drain),
            doc: RouteDoc::new("Has a node give its societies to others and take none, or take some again.").takes::<polis_api::Drain>().gives::<polis_api::Drained>().once().fails(DRAIN) },
    Route { method: Method::POST, path: "/api/fork", gate: ADMIN, handler: || post(societies::fork),
            doc: RouteDoc::new("Creates a society that shares the history of this one up to an event.").takes::<polis_api::Fork>().gives::<polis_api::MadeSociety>().once().fails(FORK) },
    Route { method: Method::POST, path: "/api/rewind", gate: ADMIN, handler: || post(societies::rewind),
            doc: RouteDoc::new("Rewinds the society to an event, and keeps its previous history under another name.").takes::<polis_api::Rewind>().gives::<polis_api::MadeSociety>().once().fails(FORK) },
    Route { method: Method::GET, path: "/api/events", gate: READ, handler: || get(events::events),
            doc: RouteDoc::new("The log after a position and then live events, as server-sent events.").asks::<live::EventFilter>().media("text/event-stream").fails(FOLLOW) },
    Route { method: Method::POST, path: "/api/actions", gate: SEND, handler: || post(requests::act),
            doc: RouteDoc::new("An action of a person on a component: a message to its agent, or the answer to a pending item.")
                .takes::<polis_api::ComponentAction>().gives::<polis_api::Acted>().once().fails(ACT) },
    Route { method: Method::GET, path: "/metrics", gate: READ, handler: || get(metrics::metrics),
            doc: RouteDoc::new("Figures for Prometheus.").media("text/plain") },
    Route { method: Method::GET, path: "/openapi.json", gate: READ, handler: || get(openapi::openapi),
            doc: RouteDoc::new("This contract.") },
    Route { method: Method::GET, path: "/docs", gate: READ, handler: || get(openapi::docs),
            doc: RouteDoc::new("This contract as a page.").media("text/html") },
    Route { method: Method::GET, path: "/api/log", gate: READ, handler: || get(node::log),
            doc: RouteDoc::new("The log in pages.").asks::<polis_api::LogPaging>().gives::<polis_api::LogPage>() },
    Route { method: Method::GET, path: "/api/views/conversation/{agent}", gate: READ, handler: || get(views::conversation),
            doc: RouteDoc::new("A page of an agent's conversation, folded, and the newest requests.").asks::<ConversationPage>().gives::<View>().fails(VIEW_AGENT) },
    Route { method: Method::GET, path: "/api/views/turn/{id}", gate: READ, handler: || get(views::turn),
            doc: RouteDoc::new("One turn with its newest steps.").asks::<TurnPage>().gives::<View>().fails(VIEW_TURN) },
    Route { method: Method::GET, path: "/api/views/task/{id}", gate: READ, handler: || get(views::task),
            doc: RouteDoc::new("A request with the outline of everything that was done for it.").gives::<View>().fails(TASK) },
    Route { method: Method::GET, path: "/api/views/requests", gate: READ, handler: || get(views::requests),
            doc: RouteDoc::new("A page of requests, the newest first.").asks::<RequestPage>().gives::<View>() },
    Route { method: Method::GET, path: "/api/views/trace", gate: READ, handler: || get(views::trace),
            doc: RouteDoc::new("The same with what each request cost.").asks::<RequestPage>().gives::<View>() },
    Route { method: Method::GET, path: "/api/views/inbox", gate: READ, handler: || get(views::inbox),
            doc: RouteDoc::new("Everything that waits for a person.").gives::<View>() },
    Route { method: Method::GET, path: "/api/views/organisation", gate: READ, handler: || get(views::organisation),
            doc: RouteDoc::new("A page of the organisation, now or after an event.").asks::<OrganisationPage>().gives::<View>().fails(VIEW_PAST) },
    Route { method: Method::POST, path: "/agui/{agent}", gate: SEND, handler: || post(agui::run),
            doc: RouteDoc::new("A run of an agent, as server-sent events.").speaks("AG-UI 1.0") },
    Route { method: Method::GET, path: "/agui/{agent}", gate: READ, handler: || get(agui::capabilities),
            doc: RouteDoc::new("The capabilities of an agent.").speaks("AG-UI 1.0") },
    Route { method: Method::POST, path: "/agui/{agent}/connect", gate: READ, handler: || post(agui::connect),
            doc: RouteDoc::new("What already happened on a thread, then live events, as server-sent events.").speaks("AG-UI 1.0") },
    Route { method: Method::GET, path: "/v1/models", gate: READ, handler: || get(openai::models),
            doc: RouteDoc::new("The society, its agents and its roles, as models.").speaks("OpenAI") },
    Route { method: Method::GET, path: "/v1/models/{*model}", gate: READ, handler: || get(openai::model),
            doc: RouteDoc::new("One of them.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/v1/chat/completions", gate: SEND, handler: || post(openai::chat),
            doc: RouteDoc::new("A chat completion by an agent.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/v1/responses", gate: SEND, handler: || post(openai::create),
            doc: RouteDoc::new("The same as a response, which can be continued by its id.").speaks("OpenAI") },
    Route { method: Method::GET, path: "/v1/responses/{id}", gate: READ, handler: || get(openai::retrieve),
            doc: RouteDoc::new("A response in its current state.").speaks("OpenAI") },
    Route { method: Method::DELETE, path: "/v1/responses/{id}", gate: SEND, handler: || delete(openai::delete_response),
            doc: RouteDoc::new("Deletes the conversation of a response that has no other.").speaks("OpenAI") },
    Route { method: Method::GET, path: "/v1/responses/{id}/input_items", gate: READ, handler: || get(openai::input_items),
            doc: RouteDoc::new("What the client said with the request of a response.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/v1/conversations", gate: SEND, handler: || post(openai::create_conversation),
            doc: RouteDoc::new("Starts a conversation.").speaks("OpenAI") },
    Route { method: Method::GET, path: "/v1/conversations/{id}", gate: READ, handler: || get(openai::retrieve_conversation),
            doc: RouteDoc::new("One conversation.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/v1/conversations/{id}", gate: SEND, handler: || post(openai::update_conversation),
            doc: RouteDoc::new("Renames a conversation.").speaks("OpenAI") },
    Route { method: Method::DELETE, path: "/v1/conversations/{id}", gate: SEND, handler: || delete(openai::delete_conversation),
            doc: RouteDoc::new("Deletes a conversation.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/v1/responses/{id}/cancel", gate: SEND, handler: || post(openai::cancel),
            doc: RouteDoc::new("Cancels the request of a response.").speaks("OpenAI") },
    Route { method: Method::POST, path: "/mcp", gate: KNOWN, handler: || post(mcp::post),
            doc: RouteDoc::new("The society as an MCP server; each tool needs the scope of the corresponding route.").speaks("MCP") },
    Route { method: Method::GET, path: "/.well-known/agent-card.json", gate: OPEN, handler: || get(a2a::card),
            doc: RouteDoc::new("The society's A2A agent card.").speaks("A2A 1.0") },
    Route { method: Method::POST, path: "/a2a", gate: KNOWN, handler: || post(a2a::post),
            doc: RouteDoc::new("The society as an A2A agent; each method needs the scope of the corresponding route.").speaks("A2A 1.0") },
];

/// Every row, for the contract.
pub(crate) fn all() -> &'static [Route] {
    ROUTES
}

/// Whether a request for this path with an idempotency key happens once.
pub(crate) fn is_once(method: &Method, path: &str) -> bool {
    let fits = |(pattern, part): (&str, &str)| pattern == part || (pattern.starts_with('{') && !part.is_empty());
    let is_it = |pattern: &str| {
        pattern.split('/').count() == path.split('/').count() && pattern.split('/').zip(path.split('/')).all(fits)
    };
    ROUTES.iter().any(|route| route.doc.once && route.method == *method && is_it(route.path))
}

/// A route, for tests and documentation that go through all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteEntry {
    /// `GET`, `POST` or another.
    pub method: &'static str,
    /// Its path, with `{name}` where a name belongs.
    pub path: &'static str,
    /// The scope that a token must have; none where the route answers without one, or what is asked decides.
    pub scope: Option<Scope>,
    /// Whether the route answers without a token.
    pub is_open: bool,
    /// What it does.
    pub summary: &'static str,
    /// Whether its body must be JSON, and its errors are ours.
    pub is_plain: bool,
}

/// All routes, in the order of the table.
pub fn route_table() -> impl Iterator<Item = RouteEntry> {
    ROUTES.iter().map(|route| RouteEntry {
        method: route.method.as_str(),
        path: route.path,
        scope: match route.gate {
            Gate::Open | Gate::Known => None,
            Gate::Needs(scope) => Some(scope),
        },
        is_open: route.gate == Gate::Open,
        summary: route.doc.summary,
        is_plain: !route.doc.any_body && route.doc.protocol.is_none(),
    })
}

/// The routes of a society, without the checks of who asks.
pub(crate) fn router(state: &SocietyState) -> Router {
    let routed = |router: Router<SocietyState>, route: &'static Route| {
        let handler = (route.handler)().route_layer(from_fn_with_state((route, state.clone()), pass));
        match route.path {
            // The official test kit and other clients put a slash after the address of the card.
            "/a2a" => router.route("/a2a/", handler.clone()).route(route.path, handler),
            path => router.route(path, handler),
        }
    };
    let router = ROUTES.iter().fold(page::routes(), routed).fallback(not_found);
    router.method_not_allowed_fallback(method_not_allowed).layer(from_fn(openai::shaped)).with_state(state.clone())
}

/// Lets a request through the gate of its route.
async fn pass(State((route, state)): State<(&'static Route, SocietyState)>, request: Request, next: Next) -> Response {
    let admitted = match route.gate {
        Gate::Open => Ok(()),
        Gate::Known => caller_of(request.extensions()).is_known(),
        Gate::Needs(scope) => caller_of(request.extensions()).needs(scope),
    };
    match admitted {
        Ok(()) if route.doc.once => with_key(&state, request, next).await,
        Ok(()) => next.run(request).await,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Without a token nobody learns what exists. A browser gets the page, which shows that nothing is there and links home.
async fn not_found(RequestCaller(caller): RequestCaller, request: Request) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if request.method() == Method::GET && accepts.contains("text/html") && !is_ours(request.uri().path()) {
        let mut page = page::index(HeaderMap::from_iter(request.headers().get(HOST).map(|host| (HOST, host.clone())))).await;
        *page.status_mut() = StatusCode::NOT_FOUND;
        return page;
    }
    let missing = || Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address");
    caller.is_known().map_or_else(Problem::from, |()| missing()).into_response()
}

/// Whether a path begins as one of the routes does.
fn is_ours(path: &str) -> bool {
    let first = |path: &str| path.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
    let wanted = first(path);
    wanted == "assets" || ROUTES.iter().any(|route| first(route.path) == wanted)
}

async fn method_not_allowed(RequestCaller(caller): RequestCaller) -> Problem {
    let wrong =
        || Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address does not support that method");
    caller.is_known().map_or_else(Problem::from, |()| wrong())
}
