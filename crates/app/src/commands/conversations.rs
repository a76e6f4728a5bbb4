//! `polis conversations`: lists, searches, renames, archives, pins and deletes them; `polis delete`.

use polis_api::{Api, ChangeConversation, Conversation};
use polis_domain::{AgentId, PersonId};
use serde_json::json;

use crate::cli::{ConversationCommand, Conversations, Delete};
use crate::config::Config;
use crate::conversation_choice::{self, ConversationChoice};
use crate::describe::time;
use crate::error::{CliError, Exit};
use crate::out;
use crate::patience::Patience;
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::trust;

/// Longest title in the list, in characters.
const TITLE: usize = 60;

pub(crate) async fn conversations(config: &Config, args: &Conversations) -> Result<Exit, CliError> {
    let none = ChangeConversation::default;
    let (id, request) = match &args.command {
        None => return list(config, args, None).await,
        Some(ConversationCommand::Search { words }) => return list(config, args, Some(&words.join(" "))).await,
        Some(ConversationCommand::Delete { id, erase: true, yes }) => {
            let args = Delete { conversation: id.clone(), yes: *yes, json: args.json };
            return erase(config, &args).await;
        }
        Some(ConversationCommand::Delete { id, yes, .. }) => return delete(config, args, id, *yes).await,
        Some(ConversationCommand::Rename { id, title }) => (id, ChangeConversation { title: Some(title.join(" ")), ..none() }),
        Some(ConversationCommand::Archive { id }) => (id, ChangeConversation { archived: Some(true), ..none() }),
        Some(ConversationCommand::Unarchive { id }) => (id, ChangeConversation { archived: Some(false), ..none() }),
        Some(ConversationCommand::Pin { id }) => (id, ChangeConversation { pinned: Some(true), ..none() }),
        Some(ConversationCommand::Unpin { id }) => (id, ChangeConversation { pinned: Some(false), ..none() }),
    };
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let changed = change(transport.api(), id, request).await;
    transport.close(false).await;
    let changed = changed?;
    if args.json {
        out::json(&changed)?
    } else {
        out::line(&line(&changed))?
    }
    Ok(Exit::Done)
}

/// Changes the conversation of this id, or with these words in its title.
async fn change(api: &dyn Api, name: &str, request: ChangeConversation) -> Result<Conversation, CliError> {
    let found = ConversationChoice::Named(name.to_owned()).find(api).await?;
    let id = found.map_or_else(|| AgentId::from(name), |found| found.id);
    Ok(api.change_conversation(&id, request).await?)
}

async fn list(config: &Config, args: &Conversations, search: Option<&str>) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let listed = conversation_choice::list(transport.api(), search, args.archived).await?;
    if args.json {
        return out::json(&json!({ "conversations": listed })).map(|()| Exit::Done);
    }
    listed.iter().try_for_each(|one| out::line(&line(one)))?;
    if listed.is_empty() {
        out::note(match (search.is_some(), args.archived) {
            (true, _) => "polis: there are no conversations with these words",
            (false, true) => "polis: there are no archived conversations",
            (false, false) => "polis: there are no conversations yet; polis run and polis chat begin one",
        });
    }
    Ok(Exit::Done)
}

/// A conversation as a line of the list: id, time of the newest message, status, title.
pub(crate) fn line(conversation: &Conversation) -> String {
    let Conversation { id, title, active_at, status, pinned, archived, person, .. } = conversation;
    let marks = [(*pinned, "  (pinned)"), (*archived, "  (archived)")];
    let marks: String = marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect();
    let (id, when, status) = (id.as_str(), time(*active_at), out::name_of(status));
    let of = if *person == PersonId::owner() { String::new() } else { format!("  (of {person})") };
    format!("{id:<10} {when}  {status:<8} {}{of}{marks}", out::short(title, TITLE))
}

async fn delete(config: &Config, args: &Conversations, id: &str, yes: bool) -> Result<Exit, CliError> {
    let id = AgentId::from(id);
    if !yes {
        let transport = Transport::open(config, Purpose::Read).await?;
        let found = transport.api().conversation(&id).await;
        transport.close(false).await;
        let found = found?;
        let question = format!("Delete {id} ({}) with its {}?", out::short(&found.title, TITLE), messages(&found));
        if !trust::is_terminal() || trust::agreed(&question) != Some(true) {
            let message = format!("not confirmed, so {id} is kept; add --yes to delete it without being asked");
            return Err(CliError { exit: Exit::NeedsPerson, ..CliError::new("not_confirmed", message) });
        }
    }
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let deleted = transport.api().delete_conversation(&id).await;
    transport.close(false).await;
    let deleted = deleted?;
    if args.json {
        out::line(&json!(deleted).to_string())?
    } else {
        out::note(&format!("polis: {id} deleted"))
    }
    Ok(Exit::Done)
}

/// `polis delete`.
pub(crate) async fn erase(config: &Config, args: &Delete) -> Result<Exit, CliError> {
    let id = AgentId::from(args.conversation.as_str());
    if !args.yes {
        let transport = Transport::open(config, Purpose::Read).await?;
        let found = transport.api().conversation(&id).await;
        transport.close(false).await;
        // One that was deleted before is not listed any more.
        let which = found.map(|found| format!(" ({}) with its {}", out::short(&found.title, TITLE), messages(&found)));
        let question = format!("Erase the content of {id}{} for good?", which.unwrap_or_default());
        if !trust::is_terminal() || trust::agreed(&question) != Some(true) {
            let message = format!("not confirmed, so {id} is kept; add --yes to erase it without being asked");
            return Err(CliError { exit: Exit::NeedsPerson, ..CliError::new("not_confirmed", message) });
        }
    }
    let _patience = Patience::start("still erasing");
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let erased = transport.api().erase_conversation(&id).await;
    transport.close(false).await;
    let erased = erased?;
    match (args.json, erased.already) {
        (true, _) => out::line(&json!(erased).to_string())?,
        (false, true) => out::note(&format!("polis: the content of {id} is erased already; nothing is left to erase")),
        (false, false) => out::note(&format!("polis: the content of {id} is erased; backups lose it with their next run")),
    }
    Ok(Exit::Done)
}

fn messages(conversation: &Conversation) -> String {
    out::count(conversation.messages as usize, "message")
}
