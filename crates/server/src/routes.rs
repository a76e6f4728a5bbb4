//! The table of routes. A route that is not here does not exist.

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodRouter, get, post};

use crate::desk::Desk;
use crate::problem::Problem;
use crate::{
    agents, approvals, artifacts, events, health, history, mcp, messages, models, org, societies, submit, tasks, threads, tools,
};

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everybody whose `Host` and `Origin` are right.
    Open,
    /// Only who has the token as well.
    Token,
}

struct Route {
    method: Method,
    path: &'static str,
    gate: Gate,
    handler: fn() -> MethodRouter<Desk>,
}

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    Route { method: Method::GET,  path: "/",                       gate: Gate::Open,  handler: || get(health::welcome) },
    Route { method: Method::GET,  path: "/api/health",             gate: Gate::Open,  handler: || get(health::health) },
    Route { method: Method::GET,  path: "/api/version",            gate: Gate::Token, handler: || get(health::version) },
    Route { method: Method::POST, path: "/api/submit",             gate: Gate::Token, handler: || post(submit::submit) },
    Route { method: Method::POST, path: "/api/send",               gate: Gate::Token, handler: || post(submit::send) },
    Route { method: Method::GET,  path: "/api/messages/{taskId}",  gate: Gate::Token, handler: || get(messages::messages) },
    Route { method: Method::GET,  path: "/api/agents",             gate: Gate::Token, handler: || get(agents::agents) },
    Route { method: Method::POST, path: "/api/agents/{id}/terminate", gate: Gate::Token, handler: || post(org::terminate) },
    Route { method: Method::POST, path: "/api/agents/{id}/compress", gate: Gate::Token, handler: || post(agents::compress) },
    Route { method: Method::GET,  path: "/api/org",                gate: Gate::Token, handler: || get(org::org) },
    Route { method: Method::POST, path: "/api/org",                gate: Gate::Token, handler: || post(org::import) },
    Route { method: Method::GET,  path: "/api/roles",              gate: Gate::Token, handler: || get(org::roles) },
    Route { method: Method::GET,  path: "/api/threads",            gate: Gate::Token, handler: || get(threads::threads) },
    Route { method: Method::GET,  path: "/api/threads/{id}",       gate: Gate::Token, handler: || get(threads::thread) },
    Route { method: Method::GET,  path: "/api/tasks",              gate: Gate::Token, handler: || get(tasks::tasks) },
    Route { method: Method::GET,  path: "/api/tasks/{id}",         gate: Gate::Token, handler: || get(tasks::task) },
    Route { method: Method::POST, path: "/api/tasks/{id}/cancel",  gate: Gate::Token, handler: || post(tasks::cancel) },
    Route { method: Method::GET,  path: "/api/approvals",          gate: Gate::Token, handler: || get(approvals::approvals) },
    Route { method: Method::POST, path: "/api/approvals/{id}",     gate: Gate::Token, handler: || post(approvals::resolve) },
    Route { method: Method::GET,  path: "/api/artifacts",          gate: Gate::Token, handler: || get(artifacts::list) },
    Route { method: Method::POST, path: "/api/artifacts",          gate: Gate::Token, handler: || post(artifacts::put) },
    Route { method: Method::GET,  path: "/api/artifacts/{id}",     gate: Gate::Token, handler: || get(artifacts::get) },
    Route { method: Method::GET,  path: "/api/models",             gate: Gate::Token, handler: || get(models::models) },
    Route { method: Method::GET,  path: "/api/tools",              gate: Gate::Token, handler: || get(tools::tools) },
    Route { method: Method::GET,  path: "/api/usage",              gate: Gate::Token, handler: || get(models::usage) },
    Route { method: Method::GET,  path: "/api/societies",          gate: Gate::Token, handler: || get(societies::list) },
    Route { method: Method::POST, path: "/api/fork",               gate: Gate::Token, handler: || post(societies::fork) },
    Route { method: Method::POST, path: "/api/rewind",             gate: Gate::Token, handler: || post(societies::rewind) },
    Route { method: Method::GET,  path: "/api/events",             gate: Gate::Token, handler: || get(events::events) },
    Route { method: Method::POST, path: "/mcp",                    gate: Gate::Token, handler: || post(mcp::post) },
    Route { method: Method::GET,  path: "/api/log",                gate: Gate::Token, handler: || get(history::log) },
];

/// A route, for whoever wants to go through all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Its path, with `{name}` where a name belongs.
    pub path: &'static str,
    /// Whether it answers without a token.
    pub is_open: bool,
}

/// All routes, in the order of the table.
pub fn listed() -> impl Iterator<Item = Listed> {
    ROUTES.iter().map(|route| Listed {
        method: if route.method == Method::POST { "POST" } else { "GET" },
        path: route.path,
        is_open: route.gate == Gate::Open,
    })
}

/// Who may ask for this path. What is not in the table needs the token too, so that nobody can find out what is.
pub(crate) fn gate(path: &str) -> Gate {
    ROUTES.iter().find(|route| route.path == path).map_or(Gate::Token, |route| route.gate)
}

pub(crate) fn router() -> Router<Desk> {
    let routed = |router: Router<Desk>, route: &Route| router.route(route.path, (route.handler)());
    ROUTES.iter().fold(Router::new(), routed).fallback(not_found).method_not_allowed_fallback(method_not_allowed)
}

async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
}

async fn method_not_allowed() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address does not know that method")
}
