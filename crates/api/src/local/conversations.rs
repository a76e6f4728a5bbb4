//! Reading conversations from the spine, starting, changing and deleting them.

use std::collections::HashSet;
use std::sync::Arc;

use polis_domain::{
    AgentId, Children, ConversationChange, ConversationPlace, ConversationSettings, Head, IdleEntry, ModelSettings,
    RESERVED_PREFIXES, Refusal, Seq, Spine, Visibility,
};
use polis_engine::{CommandError, ConversationStart};

use super::Local;
use super::agents::status_of;
use super::search::{Match, Search};
use crate::{
    AgentActivity, ApiError, ChangeConversation, Conversation, ConversationPaging, Conversations, Deleted, Erased, Scope,
    StartConversation, Strategy,
};

/// How many are listed where nobody says.
const USUAL: usize = 100;

/// How many are looked at together, so that a list never holds the society up for long.
const STRIDE: usize = 2_000;

/// How many conversations a search reads for a page, and how many events of them.
const SEARCHED: usize = 1_000;
const SEARCHED_EVENTS: usize = 20_000;

impl Local {
    /// The conversations, those with the newest messages first. Root's is listed once it has a message.
    pub async fn conversations(&self, paging: ConversationPaging) -> Result<Conversations, ApiError> {
        self.caller.needs(Scope::Read)?;
        let limit = paging.limit.map_or(USUAL, |limit| (limit as usize).min(crate::paging::MOST));
        let words: Vec<String> =
            paging.search.iter().flat_map(|search| search.split_whitespace()).map(str::to_lowercase).collect();
        let archived = paging.archived.unwrap_or(false);
        let mut place = match &paging.after {
            None => ConversationPlace::START,
            Some(after) => read_cursor(after)
                .ok_or_else(|| ApiError::bad_request("bad_cursor", "`after` must be the `next` of the page before"))?,
        };
        let mut search = Search { words, events_left: SEARCHED_EVENTS };
        let mut page = Conversations { conversations: Vec::new(), excerpts: Vec::new(), next: None };
        let mut looked_at = 0;
        loop {
            let wanted = Wanted { archived, visibility: self.society.visibility().clone() };
            let missing = limit - page.conversations.len();
            let is_search = !search.words.is_empty();
            let found = self.stride(place, wanted, if is_search { SEARCHED } else { missing }).await?;
            for (at, conversation) in found.matches {
                if page.conversations.len() >= limit || search.events_left == 0 || looked_at == SEARCHED {
                    return Ok(Conversations { next: Some(cursor(place)), ..page });
                }
                place = at;
                looked_at += usize::from(is_search);
                match search.find(self, &conversation).await? {
                    Match::No => continue,
                    Match::Title => {}
                    Match::Text(excerpt) => page.excerpts.push(excerpt),
                }
                page.conversations.push(conversation);
            }
            match found.rest {
                Some(rest) => place = rest,
                None => return Ok(page),
            }
            if page.conversations.len() >= limit {
                return Ok(Conversations { next: Some(cursor(place)), ..page });
            }
        }
    }

    /// The next part of the list: what is in memory and what is idle, in the order of the list. What is in memory is read first: if
    /// it is idle a moment later, it is in both and counts as it was.
    async fn stride(&self, after: ConversationPlace, wanted: Wanted, missing: usize) -> Result<Found, ApiError> {
        let stride = STRIDE.min(missing + 1);
        let wanted = Arc::new(wanted);
        let look = wanted.clone();
        let (loaded, ids) =
            self.society.look(move |spine| (scan(spine, after, stride, &look), loaded_conversations(spine))).await?;
        let idle = self.society.idle_conversations(after, stride).await?;
        // Beyond the last one that was read of either list, the other may have more than was read.
        let end = |places: &mut dyn Iterator<Item = ConversationPlace>, count: usize| places.last().filter(|_| count == stride);
        let ends = [
            end(&mut loaded.iter().map(|(place, _)| *place), loaded.len()),
            end(&mut idle.iter().filter_map(|(_, entry)| entry.place()), idle.len()),
        ];
        let end = ends.into_iter().flatten().max();
        let idle = idle.iter().filter(|(id, _)| !ids.contains(id));
        let idle =
            idle.filter_map(|(id, entry)| Some((entry.place()?, describe_idle(id, entry).filter(|it| wanted.takes(it)))));
        let mut all: Vec<_> = loaded.into_iter().chain(idle).filter(|(place, _)| end.is_none_or(|end| *place >= end)).collect();
        all.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        let mut found = Found { matches: Vec::new(), rest: None };
        for (place, conversation) in all {
            if found.matches.len() == missing {
                return Ok(found);
            }
            found.rest = Some(place);
            found.matches.extend(conversation.map(|conversation| (place, conversation)));
        }
        found.rest = end;
        Ok(found)
    }

    /// One conversation.
    pub async fn conversation(&self, id: &AgentId) -> Result<Conversation, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (asked, visibility) = (id.clone(), self.society.visibility().clone());
        let find = move |spine: &Spine| describe(spine, &asked).filter(|_| visibility.agent(spine, &asked));
        let found = self.society.look(find).await?;
        found.ok_or_else(|| CommandError::from(Refusal::UnknownConversation(id.clone())).into())
    }

    /// Starts a conversation without a message.
    pub async fn start_conversation(&self, request: StartConversation) -> Result<Conversation, ApiError> {
        self.caller.needs(Scope::Send)?;
        let StartConversation { id, title, role_id: role, model, strategy, settings: model_settings } = request;
        if let Some(id) = id.as_ref().filter(|id| RESERVED_PREFIXES.iter().any(|prefix| id.as_str().starts_with(prefix))) {
            return Err(CommandError::from(Refusal::BadName(id.to_string())).into());
        }
        self.check_model(model.as_deref())?;
        check_settings(&model_settings)?;
        let settings = settings(model, strategy, model_settings);
        let start = ConversationStart { id, role, title, settings, messages: Vec::new() };
        let id = self.society.start_conversation(start).await?;
        self.with_read().conversation(&id).await
    }

    /// Changes title, list place or settings of a conversation.
    pub async fn change_conversation(&self, id: &AgentId, request: ChangeConversation) -> Result<Conversation, ApiError> {
        self.caller.needs(Scope::Send)?;
        let ChangeConversation { title, pinned, archived, model, strategy, settings: model_settings } = request;
        self.check_model(model.as_deref())?;
        model_settings.as_ref().map_or(Ok(()), check_settings)?;
        let now = self.known(id).await?;
        let now = now.ok_or_else(|| CommandError::from(Refusal::UnknownConversation(id.clone())))?;
        let settings = (model.is_some() || strategy.is_some() || model_settings.is_some()).then(|| {
            let before = now.settings.as_deref().cloned().unwrap_or_default();
            let set = settings(model.clone(), strategy, ModelSettings::default());
            ConversationSettings {
                model: if model.is_some() { set.model } else { before.model },
                strategy: set.strategy.or(before.strategy),
                model_settings: model_settings.unwrap_or(before.model_settings),
            }
        });
        let change = ConversationChange { title: title.map(Into::into), pinned, archived, settings };
        self.society.change_conversation(id.clone(), change).await?;
        self.with_read().conversation(id).await
    }

    /// Deletes a conversation: its agent is terminated with all below it, at once. The log keeps what was said.
    pub async fn delete_conversation(&self, id: &AgentId) -> Result<Deleted, ApiError> {
        self.caller.needs(Scope::Send)?;
        if self.known(id).await?.is_none() && self.society.done_before().await?.is_none() {
            return Err(CommandError::from(Refusal::UnknownConversation(id.clone())).into());
        }
        self.society.terminate(id.clone(), Children::Cascade, "the conversation was deleted", true).await?;
        Ok(Deleted { id: id.clone() })
    }

    /// Erases the content of a conversation for good, also of one that was deleted before.
    pub async fn erase_conversation(&self, id: &AgentId) -> Result<Erased, ApiError> {
        self.caller.needs(Scope::Send)?;
        let is_new = self.society.erase_conversation(id.clone()).await?;
        // Societies that share its events have the texts in their states too.
        if let Some(registry) = &self.registry {
            registry.forget_redacted(self.society.id()).await?;
        }
        Ok(Erased { id: id.clone(), already: !is_new })
    }

    /// Refuses a name that no model can have.
    pub(super) fn check_model(&self, model: Option<&str>) -> Result<(), ApiError> {
        let model = model.map(str::trim).filter(|model| !model.is_empty());
        let why = model.and_then(|model| self.society.refuses_model(model));
        why.map_or(Ok(()), |why| Err(ApiError::bad_request("bad_model", why)))
    }

    /// The conversation of this id, if the caller may see it.
    pub(super) async fn known(&self, id: &AgentId) -> Result<Option<polis_domain::Conversation>, ApiError> {
        let (asked, visibility) = (id.clone(), self.society.visibility().clone());
        let find = move |spine: &Spine| spine.conversation(&asked).filter(|_| visibility.agent(spine, &asked)).cloned();
        Ok(self.society.look(find).await?)
    }

    /// The same for one who may read: what a person has made or changed is theirs to see.
    fn with_read(&self) -> Self {
        Self { caller: self.caller.with(Scope::Read), ..self.clone() }
    }
}

/// The settings that a request asks for.
pub(super) fn settings(
    model: Option<String>,
    strategy: Option<Strategy>,
    model_settings: ModelSettings,
) -> ConversationSettings {
    let model = model.filter(|model| !model.trim().is_empty()).map(Arc::from);
    ConversationSettings { model, strategy: strategy.map(|strategy| strategy.as_str().into()), model_settings }
}

/// Refuses settings with a value that they cannot have.
pub(super) fn check_settings(settings: &ModelSettings) -> Result<(), ApiError> {
    settings.check().map_err(|bad| ApiError::bad_request("bad_setting", bad.to_string()))
}

/// A place of the list as a cursor.
fn cursor(place: ConversationPlace) -> String {
    format!("{}{}", if place.pinned { "pinned-" } else { "" }, place.active)
}

fn read_cursor(text: &str) -> Option<ConversationPlace> {
    let (pinned, active) = text.strip_prefix("pinned-").map_or((false, text), |rest| (true, rest));
    Some(ConversationPlace { pinned, active: Seq(active.parse().ok()?) })
}

/// A part of the list.
struct Found {
    matches: Vec<(ConversationPlace, Conversation)>,
    /// Where to go on; none at the end.
    rest: Option<ConversationPlace>,
}

/// Which conversations are listed.
struct Wanted {
    archived: bool,
    visibility: Visibility,
}

impl Wanted {
    fn takes(&self, conversation: &Conversation) -> bool {
        conversation.archived == self.archived
    }
}

/// The next conversations in memory after a place: the place of each, and those that are listed.
fn scan(
    spine: &Spine,
    after: ConversationPlace,
    stride: usize,
    wanted: &Wanted,
) -> Vec<(ConversationPlace, Option<Conversation>)> {
    let found = |id: &AgentId| {
        let is_new = *id == AgentId::root() && !spine.threads.contains_key(&id.main_thread());
        let is_shown = !is_new && wanted.visibility.agent(spine, id);
        describe(spine, id).filter(|conversation| is_shown && wanted.takes(conversation))
    };
    spine.conversations.after(after).take(stride).map(|(place, id)| (place, found(id))).collect()
}

fn loaded_conversations(spine: &Spine) -> HashSet<AgentId> {
    spine.conversations.after(ConversationPlace::START).map(|(_, id)| id.clone()).collect()
}

/// An idle conversation.
fn describe_idle(id: &AgentId, entry: &IdleEntry) -> Option<Conversation> {
    let agent = entry.agent()?;
    described(id, agent, agent.conversation.as_deref()?, entry.head())
}

/// A conversation as the spine has it.
pub(super) fn describe(spine: &Spine, id: &AgentId) -> Option<Conversation> {
    let agent = spine.agents.get(id)?;
    let turn = agent.turn.and_then(|turn| spine.turns.get(&turn));
    let task_id = turn.map(|turn| turn.task.clone());
    let idle = described(id, agent, agent.conversation.as_deref()?, spine.threads.get(&id.main_thread()))?;
    Some(Conversation { status: status_of(spine, id), task_id, ..idle })
}

fn described(
    id: &AgentId,
    agent: &polis_domain::Agent,
    conversation: &polis_domain::Conversation,
    head: Option<&Head>,
) -> Option<Conversation> {
    let settings = conversation.settings.as_deref().cloned().unwrap_or_default();
    Some(Conversation {
        id: id.clone(),
        title: conversation.title.clone(),
        person: conversation.person.clone(),
        role_id: agent.role.clone(),
        model: settings.model,
        strategy: settings.strategy,
        settings: settings.model_settings,
        pinned: conversation.pinned,
        archived: conversation.archived,
        created_at: agent.created_at,
        active_at: conversation.active_at,
        status: AgentActivity::Idle,
        task_id: None,
        messages: head.map_or(0, |head| head.messages),
    })
}
