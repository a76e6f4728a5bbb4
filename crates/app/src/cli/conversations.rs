//! What `polis conversations` takes, and the flags that choose a conversation.

use clap::{Args, Subcommand};

use super::settings::SettingFlags;

/// Which conversation a request belongs to, a new one unless a flag says otherwise; and how it calls models.
#[derive(Debug, Args, Default)]
pub(crate) struct ConversationFlags {
    /// Continue the conversation with the newest message instead of starting one
    #[arg(long = "continue", conflicts_with = "conversation")]
    pub(crate) newest: bool,

    /// Continue this conversation: its id, or words of its title that no other title has
    #[arg(long, value_name = "NAME")]
    pub(crate) conversation: Option<String>,

    /// Start the conversation with an agent of this role: its id, or its name [default: the role of root]
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["newest", "conversation"])]
    pub(crate) role: Option<String>,

    #[command(flatten)]
    pub(crate) settings: SettingFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) command: Option<ConversationCommand>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// List or search the archived ones instead of the others
    #[arg(long, global = true)]
    pub(crate) archived: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConversationCommand {
    /// List those that contain all of these words, in their title, messages or answers
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Change the title
    Rename {
        /// Its id, or words of its title
        id: String,

        /// The new title
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Remove it from the list without deleting it; a new message brings it back
    Archive {
        /// Its id, or words of its title
        id: String,
    },
    /// Put it back into the list
    Unarchive {
        /// Its id, or words of its title
        id: String,
    },
    /// List it before the others
    Pin {
        /// Its id, or words of its title
        id: String,
    },
    /// List it by its newest message again
    Unpin {
        /// Its id, or words of its title
        id: String,
    },
    /// Delete it: its agent ends immediately, with all of its work; the log keeps the messages, unless they are erased too
    Delete {
        /// As `polis conversations` lists it
        id: String,

        /// Erase its content for good as well, as `polis delete` does
        #[arg(long)]
        erase: bool,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Compress {
    /// The agent
    pub(crate) agent: String,

    /// Undo the last compression instead
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The conversation, as `polis conversations` lists it; also one that was deleted before
    pub(crate) conversation: String,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
