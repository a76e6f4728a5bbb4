//! `polis show`: one conversation, for people or as JSON in the documents' shape.

use polis_api::ThreadPart;
use polis_domain::{Message, Sender, Thread};
use serde_json::Value;

use crate::address::Address;
use crate::cli::Show;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{out, suggest};

pub(crate) async fn show(config: &Config, args: &Show) -> Result<Exit, CliError> {
    let address = Address::read(&args.address)?;
    let transport = Transport::open(config, Purpose::Read).await?;
    let part = ThreadPart { path: address.path.to_string(), tree: args.tree };
    let thread = match transport.api().thread(&address.main, &part).await {
        Ok(thread) => thread,
        Err(error) => return Err(suggest::about_agent(error, transport.api(), address.main.as_str()).await),
    };
    if args.json {
        return out::json(&thread).map(|()| Exit::Done);
    }
    if args.prompt {
        let prompt = thread.meta.get("workflow").and_then(|order| order.pointer("/prompt/Ok")).and_then(Value::as_str);
        let none = || {
            let message =
                format!("no prompt was rendered for {}; find the threads below it with `polis show --tree`", args.address);
            CliError::new("no_prompt", message)
        };
        out::line(prompt.ok_or_else(none)?)?;
        return Ok(Exit::Done);
    }
    let from = if address.path.is_main() { address.main.to_string() } else { format!("{}.{}", address.main, address.path) };
    print(&thread, &from, 0)?;
    Ok(Exit::Done)
}

fn print(thread: &Thread, address: &str, depth: usize) -> Result<(), CliError> {
    let margin = "    ".repeat(depth);
    let line = |text: &str| out::line(&format!("{margin}{text}"));
    let suggestion =
        thread.settings.phase_update_suggestion.as_ref().map(|next| format!(", next {}", next.phase)).unwrap_or_default();
    let messages = out::count(thread.messages.len(), "message");
    line(&format!("{address}  (phase {}{suggestion}, {messages})", thread.phase()))?;
    for (index, message) in thread.messages.iter().enumerate() {
        let sender = match message.sender {
            Sender::Bot => "bot",
            Sender::User => "user",
        };
        line(&format!("[{index}] {sender}  {}", crate::describe::time(message.timestamp)))?;
        message.text.lines().try_for_each(|text| line(&format!("    {text}")))?;
        // A direct answer is what is expected.
        if let Some(how) = message.meta.get("strategy").filter(|how| how.is_object() && how["name"] != "simple") {
            let word = |key: &str| how[key].as_str().unwrap_or_default();
            line(&format!("    ({}: {})", word("name"), word("reason")))?;
        }
        for (slot, below) in sub_threads(message) {
            let address = format!("{address}.messages[{index}].{slot}");
            match serde_json::from_value::<Thread>(below.clone()) {
                Ok(thread) => print(&thread, &address, depth + 1)?,
                // Without its messages it is only named.
                Err(_) => line(&format!("    └ {address}"))?,
            }
        }
    }
    Ok(())
}

/// The threads that hang in a message: wherever in its meta something has the id of one.
fn sub_threads(message: &Message) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &Value)> = message.meta.iter().map(|(key, value)| (format!("meta.{key}"), value)).collect();
    while let Some((slot, value)) = open.pop() {
        let Value::Object(fields) = value else { continue };
        let named = fields.get("id").is_some_and(Value::is_string) && (fields.len() == 1 || fields.contains_key("messages"));
        if named {
            found.push((slot, value));
        } else {
            open.extend(fields.iter().map(|(key, value)| (format!("{slot}.{key}"), value)));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
