//! The table of routes. A route that is not here does not exist: it is reached, guarded, tested and described by its row alone.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use crate::caller::{Caller, Scope};
use crate::desk::Desk;
use crate::doc::Doc;
use crate::problem::Problem;
use crate::{
    a2a, agents, approvals, artifacts, events, health, history, mcp, messages, models, org, societies, submit, tasks, threads,
    tools,
};

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everybody whose `Host` and `Origin` are right.
    Open,
    /// Only who has a token with this scope as well.
    Needs(Scope),
}

const OPEN: Gate = Gate::Open;
const READ: Gate = Gate::Needs(Scope::Read);
const SEND: Gate = Gate::Needs(Scope::Send);
const APPROVE: Gate = Gate::Needs(Scope::Approve);
const ADMIN: Gate = Gate::Needs(Scope::Admin);

/// One way in. `gate` is checked before `handler` is reached; who it was is in the request as a [`Caller`].
struct Route {
    method: Method,
    path: &'static str,
    gate: Gate,
    handler: fn() -> MethodRouter<Desk>,
    doc: Doc,
}

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/", gate: OPEN, handler: || get(health::welcome),
            doc: Doc::new("The page, or a word on how to ask.") },
    Route { method: Method::GET, path: "/api/health", gate: OPEN, handler: || get(health::health),
            doc: Doc::new("Whether the society is well.") },
    Route { method: Method::GET, path: "/api/version", gate: READ, handler: || get(health::version),
            doc: Doc::new("What runs here.") },
    Route { method: Method::POST, path: "/api/submit", gate: SEND, handler: || post(submit::submit),
            doc: Doc::new("Gives root a new request.") },
    Route { method: Method::POST, path: "/api/send", gate: SEND, handler: || post(submit::send),
            doc: Doc::new("Says something to an agent, within a request or as a new one.") },
    Route { method: Method::GET, path: "/api/messages/{taskId}", gate: READ, handler: || get(messages::messages),
            doc: Doc::new("What passed between the person and the society about a request.") },
    Route { method: Method::GET, path: "/api/agents", gate: READ, handler: || get(agents::agents),
            doc: Doc::new("Who is there, and what each is at.") },
    Route { method: Method::POST, path: "/api/agents/{id}/terminate", gate: ADMIN, handler: || post(org::terminate),
            doc: Doc::new("Sends an agent away.") },
    Route { method: Method::POST, path: "/api/agents/{id}/compress", gate: SEND, handler: || post(agents::compress),
            doc: Doc::new("Has an agent compress its conversation, or undoes that.") },
    Route { method: Method::GET, path: "/api/org", gate: READ, handler: || get(org::org),
            doc: Doc::new("The organisation as one document.") },
    Route { method: Method::POST, path: "/api/org", gate: ADMIN, handler: || post(org::import),
            doc: Doc::new("Makes the roles and agents of a document that are not there yet.") },
    Route { method: Method::GET, path: "/api/roles", gate: READ, handler: || get(org::roles),
            doc: Doc::new("The roles.") },
    Route { method: Method::GET, path: "/api/threads", gate: READ, handler: || get(threads::threads),
            doc: Doc::new("Which conversations there are.") },
    Route { method: Method::GET, path: "/api/threads/{id}", gate: READ, handler: || get(threads::thread),
            doc: Doc::new("A conversation, or a part of it by its address.") },
    Route { method: Method::GET, path: "/api/tasks", gate: READ, handler: || get(tasks::tasks),
            doc: Doc::new("The requests that are under way.") },
    Route { method: Method::GET, path: "/api/tasks/{id}", gate: READ, handler: || get(tasks::task),
            doc: Doc::new("Where a request stands.") },
    Route { method: Method::POST, path: "/api/tasks/{id}/cancel", gate: SEND, handler: || post(tasks::cancel),
            doc: Doc::new("Calls a request off.") },
    Route { method: Method::GET, path: "/api/approvals", gate: READ, handler: || get(approvals::approvals),
            doc: Doc::new("What waits for a person.") },
    Route { method: Method::POST, path: "/api/approvals/{id}", gate: APPROVE, handler: || post(approvals::resolve),
            doc: Doc::new("Says a word on what waits.") },
    Route { method: Method::GET, path: "/api/artifacts", gate: READ, handler: || get(artifacts::list),
            doc: Doc::new("What is kept outside the log.") },
    Route { method: Method::POST, path: "/api/artifacts", gate: SEND, handler: || post(artifacts::put),
            doc: Doc::new("Keeps a content.").takes_anything() },
    Route { method: Method::GET, path: "/api/artifacts/{id}", gate: READ, handler: || get(artifacts::get),
            doc: Doc::new("A content.") },
    Route { method: Method::GET, path: "/api/models", gate: READ, handler: || get(models::models),
            doc: Doc::new("Which models can be asked.") },
    Route { method: Method::GET, path: "/api/tools", gate: READ, handler: || get(tools::tools),
            doc: Doc::new("Which tools can be called, and how their servers stand.") },
    Route { method: Method::GET, path: "/api/usage", gate: READ, handler: || get(models::usage),
            doc: Doc::new("What was spent.") },
    Route { method: Method::GET, path: "/api/societies", gate: READ, handler: || get(societies::list),
            doc: Doc::new("The societies of the store.") },
    Route { method: Method::POST, path: "/api/fork", gate: ADMIN, handler: || post(societies::fork),
            doc: Doc::new("Begins a society with the past of this one.") },
    Route { method: Method::POST, path: "/api/rewind", gate: ADMIN, handler: || post(societies::rewind),
            doc: Doc::new("Has the society go on from an event, and keeps what it was under another name.") },
    Route { method: Method::GET, path: "/api/events", gate: READ, handler: || get(events::events),
            doc: Doc::new("Everything that happens, as server-sent events: the log after a place, then live.") },
    Route { method: Method::GET, path: "/api/log", gate: READ, handler: || get(history::log),
            doc: Doc::new("The log in pages.") },
    Route { method: Method::POST, path: "/mcp", gate: READ, handler: || post(mcp::post),
            doc: Doc::new("The society as an MCP server; what a tool does needs the scope of the route that does it.").speaks("MCP") },
    Route { method: Method::GET, path: "/.well-known/agent-card.json", gate: OPEN, handler: || get(a2a::card),
            doc: Doc::new("The society's card, for agents of others.").speaks("A2A 1.0") },
    Route { method: Method::POST, path: "/a2a", gate: READ, handler: || post(a2a::post),
            doc: Doc::new("The society as an A2A agent; what a method does needs the scope of the route that does it.").speaks("A2A 1.0") },
];

/// A route, for whoever wants to go through all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// `GET`, `POST` or another.
    pub method: &'static str,
    /// Its path, with `{name}` where a name belongs.
    pub path: &'static str,
    /// The scope that a token must have; none where the route answers without one.
    pub scope: Option<Scope>,
    /// What it does.
    pub summary: &'static str,
    /// Whether its body must be JSON, and its errors are ours.
    pub is_plain: bool,
}

/// All routes, in the order of the table.
pub fn listed() -> impl Iterator<Item = Listed> {
    ROUTES.iter().map(|route| Listed {
        method: route.method.as_str(),
        path: route.path,
        scope: match route.gate {
            Gate::Open => None,
            Gate::Needs(scope) => Some(scope),
        },
        summary: route.doc.summary,
        is_plain: !route.doc.any_body && route.doc.protocol.is_none(),
    })
}

pub(crate) fn router() -> Router<Desk> {
    let routed = |router: Router<Desk>, route: &Route| {
        let handler = (route.handler)().route_layer(from_fn_with_state(route.gate, pass));
        router.route(route.path, handler)
    };
    ROUTES.iter().fold(Router::new(), routed).fallback(not_found).method_not_allowed_fallback(method_not_allowed)
}

/// Lets a request through the gate of its route.
async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let admitted = match gate {
        Gate::Open => Ok(()),
        Gate::Needs(scope) => Caller::of(request.extensions()).needs(scope),
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Who has no token is not told what exists.
async fn not_found(caller: Caller) -> Problem {
    let missing = || Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address");
    caller.is_known().map_or_else(|problem| problem, |()| missing())
}

async fn method_not_allowed(caller: Caller) -> Problem {
    let wrong = || Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address does not know that method");
    caller.is_known().map_or_else(|problem| problem, |()| wrong())
}
