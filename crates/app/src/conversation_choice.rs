//! Which conversation a request belongs to: a new one, the newest, or one that is named.

use polis_api::{Api, Conversation, ConversationPaging, Conversations, Paging};
use polis_domain::{AgentId, PersonId, RoleId};

use crate::cli::ConversationFlags;
use crate::error::CliError;
use crate::suggest;

/// The conversation that the person wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ConversationChoice {
    #[default]
    New,
    /// A new one with an agent of this role, by its id or its name.
    WithRole(String),
    /// The one with the newest message.
    Newest,
    /// By its id, or by words of its title.
    Named(String),
}

impl From<&ConversationFlags> for ConversationChoice {
    fn from(flags: &ConversationFlags) -> Self {
        match (&flags.conversation, &flags.role) {
            (Some(name), _) => Self::Named(name.clone()),
            (None, Some(role)) => Self::WithRole(role.clone()),
            (None, None) if flags.newest => Self::Newest,
            (None, None) => Self::New,
        }
    }
}

impl ConversationChoice {
    /// The conversation; none for a new one.
    pub(crate) async fn find(&self, api: &dyn Api) -> Result<Option<Conversation>, CliError> {
        match self {
            Self::New | Self::WithRole(_) => Ok(None),
            Self::Newest => newest(api).await.map(Some),
            Self::Named(name) => named(api, name).await.map(Some),
        }
    }

    /// The role of a new one; none for that of root.
    pub(crate) async fn role(&self, api: &dyn Api) -> Result<Option<RoleId>, CliError> {
        let Self::WithRole(typed) = self else { return Ok(None) };
        let listed = api.roles(&Paging::default()).await?.roles;
        let roles: Vec<_> = listed.iter().map(|listed| &listed.role).collect();
        let named: Vec<_> = roles.iter().filter(|role| role.name.to_lowercase() == typed.trim().to_lowercase()).collect();
        let found = roles.iter().find(|role| role.id.as_str() == typed).or(match named[..] {
            [only] => Some(only),
            _ => None,
        });
        match found {
            Some(role) => Ok(Some(role.id.clone())),
            None => {
                let names = roles.iter().flat_map(|role| [role.id.as_str(), &role.name].map(|name| (name, role.id.as_str())));
                let hint = suggest::hint_for(typed, names);
                let message = format!("there is no role `{typed}`; `polis org` lists the roles{hint}");
                Err(CliError::new("unknown_role", message))
            }
        }
    }
}

/// All conversations, those with the newest messages first.
pub(crate) async fn list(api: &dyn Api, search: Option<&str>, archived: bool) -> Result<Vec<Conversation>, CliError> {
    Ok(found(api, search, archived).await?.conversations)
}

/// All pages of a search as one.
async fn found(api: &dyn Api, search: Option<&str>, archived: bool) -> Result<Conversations, CliError> {
    let mut all = Conversations { conversations: Vec::new(), excerpts: Vec::new(), next: None };
    loop {
        let (search, archived) = (search.map(str::to_owned), Some(archived));
        let page = api.conversations(ConversationPaging { after: all.next, limit: None, search, archived }).await?;
        all.conversations.extend(page.conversations);
        all.excerpts.extend(page.excerpts);
        all.next = page.next;
        if all.next.is_none() {
            return Ok(all);
        }
    }
}

/// Those with these words in their titles or ids: what was said in a conversation does not name it.
async fn titled(api: &dyn Api, words: &str, archived: bool) -> Result<Vec<Conversation>, CliError> {
    let Conversations { mut conversations, excerpts, .. } = found(api, Some(words), archived).await?;
    conversations.retain(|one| excerpts.iter().all(|excerpt| excerpt.conversation != one.id));
    Ok(conversations)
}

/// Pinned ones are listed first, so the newest is one of them or the first of the others.
async fn newest(api: &dyn Api) -> Result<Conversation, CliError> {
    // The owner sees the conversations of all persons, and continues one of their own.
    let is_before = |one: &Conversation, other: &Conversation| {
        let place = |one: &Conversation| (one.person == PersonId::owner(), one.active_at);
        place(one) < place(other)
    };
    let (mut newest, mut after) = (None::<Conversation>, None);
    loop {
        let page = api.conversations(ConversationPaging { after, ..ConversationPaging::default() }).await?;
        let has_others = page.conversations.iter().any(|one| !one.pinned && one.person == PersonId::owner());
        for one in page.conversations {
            if newest.as_ref().is_none_or(|newest| is_before(newest, &one)) {
                newest = Some(one);
            }
        }
        after = page.next;
        if has_others || after.is_none() {
            break;
        }
    }
    newest.ok_or_else(|| CliError::new("no_conversation", "there is no conversation to continue; leave out --continue"))
}

async fn named(api: &dyn Api, name: &str) -> Result<Conversation, CliError> {
    let unknown = match api.conversation(&AgentId::from(name)).await {
        Err(error) if error.code() == "unknown_conversation" => error,
        found => return Ok(found?),
    };
    if name.trim().is_empty() {
        return Err(unknown.into());
    }
    let mut found = titled(api, name, false).await?;
    found.extend(titled(api, name, true).await?);
    // The owner sees the conversations of all persons, and means one of their own.
    if found.iter().any(|one| one.person == PersonId::owner()) {
        found.retain(|one| one.person == PersonId::owner());
    }
    let is_title = |one: &Conversation| one.title.to_lowercase() == name.trim().to_lowercase();
    if found.iter().any(is_title) {
        found.retain(is_title);
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let mut all = list(api, None, false).await?;
            all.extend(list(api, None, true).await?);
            let all = all.iter().map(|one| (one.id.as_str(), &*one.title));
            Err(suggest::about_conversation(unknown.into(), name, all))
        }
        several => {
            let message = format!("{several} conversations match `{name}`; take the id from `polis conversations`");
            Err(CliError::usage("ambiguous_conversation", message))
        }
    }
}
