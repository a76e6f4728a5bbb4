//! The routes of memories.

use axum::Json as Answer;
use polis_api::{ChangedMemory, EditMemory, EraseMemory, KeepMemory, Memories, MemoryFilter, SwitchMemory};

use crate::body::Json;
use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::requests::JsonResult;

pub(crate) async fn list(CallerApi(api): CallerApi, QueryParams(filter): QueryParams<MemoryFilter>) -> JsonResult<Memories> {
    Ok(Answer(api.memories(filter).await?))
}

pub(crate) async fn keep(CallerApi(api): CallerApi, Json(request): Json<KeepMemory>) -> JsonResult<ChangedMemory> {
    Ok(Answer(api.keep_memory(request).await?))
}

pub(crate) async fn edit(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<EditMemory>,
) -> JsonResult<ChangedMemory> {
    Ok(Answer(api.edit_memory(&id.into(), request).await?))
}

pub(crate) async fn erase(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(EraseMemory {}): Json<EraseMemory>,
) -> JsonResult<ChangedMemory> {
    Ok(Answer(api.erase_memory(&id.into()).await?))
}

pub(crate) async fn switch(CallerApi(api): CallerApi, Json(request): Json<SwitchMemory>) -> JsonResult<SwitchMemory> {
    Ok(Answer(api.switch_memory(request).await?))
}
