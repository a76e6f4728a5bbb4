//! The routes of views: what a user interface shows first, before the event stream changes it.

use axum::Json as Answer;
use axum::extract::State;
use polis_api::{ApiError, ConversationPage, OrganisationPage, RequestPage, TurnPage, View};
use polis_domain::{Seq, TurnId};

use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::history::History;
use crate::problem::Problem;
use crate::requests::JsonResult;
use crate::state::SocietyState;

type Society = State<SocietyState>;

pub(crate) async fn conversation(
    State(state): Society,
    CallerApi(api): CallerApi,
    PathParam(agent): PathParam,
    QueryParams(page): QueryParams<ConversationPage>,
) -> JsonResult<View> {
    placed(&state, api.conversation_view(&agent.into(), &page).await).await
}

pub(crate) async fn turn(
    State(state): Society,
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    QueryParams(page): QueryParams<TurnPage>,
) -> JsonResult<View> {
    let bad = |_| Problem::bad_request("bad_id", format!("`{id}` is not the id of a turn; it is a number"));
    let id = TurnId(Seq(id.parse().map_err(bad)?));
    placed(&state, api.turn(id, &page).await).await
}

pub(crate) async fn task(State(state): Society, CallerApi(api): CallerApi, PathParam(id): PathParam) -> JsonResult<View> {
    placed(&state, api.task_tree(&id.into()).await).await
}

pub(crate) async fn trace(
    State(state): Society,
    CallerApi(api): CallerApi,
    QueryParams(page): QueryParams<RequestPage>,
) -> JsonResult<View> {
    placed(&state, api.trace(&page).await).await
}

pub(crate) async fn requests(
    State(state): Society,
    CallerApi(api): CallerApi,
    QueryParams(page): QueryParams<RequestPage>,
) -> JsonResult<View> {
    placed(&state, api.requests(&page).await).await
}

pub(crate) async fn inbox(State(state): Society, CallerApi(api): CallerApi) -> JsonResult<View> {
    placed(&state, api.inbox().await).await
}

pub(crate) async fn organisation(
    State(state): Society,
    CallerApi(api): CallerApi,
    QueryParams(page): QueryParams<OrganisationPage>,
) -> JsonResult<View> {
    placed(&state, api.organisation(&page).await).await
}

/// The view with the name of its position.
async fn placed(state: &SocietyState, view: Result<View, ApiError>) -> JsonResult<View> {
    let mut view = view?;
    view.offline = state.host.is_offline;
    view.place = state.society.look(History::of).await?.position(view.seq);
    Ok(Answer(view))
}
