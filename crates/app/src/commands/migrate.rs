//! `polis migrate`: moves a store between a data directory and PostgreSQL, all of it or nothing: the log and, beside it, artifacts, the
//! texts of memories, further tokens and logins at MCP servers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use polis_domain::Seq;
use polis_ports::{
    ArtifactError, ArtifactLimits, Artifacts, DocumentError, Documents, LogError, MemoryError, MemoryTexts, StoredArtifact,
};
use polis_server::TokenList;
use polis_store_local::{ComingLog as ToDirectory, LeavingLog, LocalDocuments, LocalMemoryTexts};
use polis_store_postgres::moving::{Chain, ComingLog as ToDatabase, MovedEvent, MovedSociety, Passage, parents_first};
use polis_tools::mcp::LOGINS;
use serde_json::json;

use super::backup::refuse_url;
use crate::cli::Migrate;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::logins::{EncryptedDocuments, KEY, LoginsKey};
use crate::out;
use crate::postgres_store::{LeavingDatabase, StoreAddress};
use crate::store::local_artifacts;
use crate::token::token_error;

pub(crate) async fn migrate(config: &Config, args: &Migrate) -> Result<Exit, CliError> {
    refuse_url(config)?;
    let (moved, count) = match (is_url(&args.from), is_url(&args.to)) {
        (false, true) => {
            let address = address(&args.to)?;
            let from = Path::new(&args.from);
            refuse_missing(from)?;
            let log = LeavingLog::open(from)?;
            let beside = Beside {
                artifacts: Arc::new(local_artifacts(from, ArtifactLimits::default())?),
                memory_texts: Arc::new(LocalMemoryTexts::new(from)),
                documents: Arc::new(LocalDocuments::new(from)),
            };
            let to = address.begin().await?;
            let count = Count {
                artifacts: to.artifacts(&*beside.artifacts).await.map_err(artifacts_failed)?,
                memories: to.memory_texts(&*beside.memory_texts).await.map_err(memories_failed)?,
                tokens: tokens_of(&beside.documents).await?,
                logins: logins_to_move(&*beside.documents).await?.len(),
            };
            for (name, body) in documents_to_move(&*beside.documents).await? {
                if to.document(&name, &body).await.map_err(documents_failed)? != body {
                    return Err(documents_failed(not_what_was_sent(&name)));
                }
            }
            (copy(From::Directory(Box::new(log)), To::Database(Box::new(to))).await?, count)
        }
        (true, false) => {
            if Path::new(&args.to) == config.data {
                config.trust.claim_data()?;
            }
            let database = LeavingDatabase::open(&address(&args.from)?).await?;
            let dir = Path::new(&args.to);
            let to = ToDirectory::begin(dir)?;
            let count = to_directory(&database, dir, to.building()).await?;
            (copy(From::Database(database), To::Directory(Box::new(to))).await?, count)
        }
        _ => {
            let message = "one of --from and --to is a data directory and the other postgres://…; between two directories use polis \
                           backup and polis restore, between two databases their own tools";
            return Err(CliError::usage("bad_migration", message));
        }
    };
    if args.json {
        let list: Vec<_> = moved
            .iter()
            .map(|(society, chain)| json!({ "name": society.name, "events": society.head, "chain": chain.to_hex() }))
            .collect();
        let Count { artifacts, memories, tokens, logins } = count;
        out::json(
            &json!({ "societies": list, "artifacts": artifacts, "memories": memories, "tokens": tokens, "logins": logins }),
        )?;
    } else {
        for (society, chain) in &moved {
            let events = out::count(society.head.0 as usize, "event");
            out::line(&format!("{}: {events}, hash chain {}", society.name, chain.to_hex()))?;
        }
        let artifacts = out::count(count.artifacts, "artifact");
        let memories = out::count(count.memories, "text of a memory");
        let tokens = out::count(count.tokens, "token");
        out::line(&format!("{artifacts}, {memories}, {tokens}, {}", out::count(count.logins, "login")))?;
        out::line("moved, read back and found to be the same")?;
    }
    out::note("polis: what was moved from is unchanged; do not use it any more. Trust is not moved");
    if LoginsKey::from_environment()?.is_none() {
        out::note(&format!("polis: logins at MCP servers are moved only with {}; log in again", KEY));
    }
    Ok(Exit::Done)
}

/// What is beside a log.
struct Beside {
    artifacts: Arc<dyn Artifacts>,
    memory_texts: Arc<dyn MemoryTexts>,
    documents: Arc<dyn Documents>,
}

/// How much of it was moved.
struct Count {
    artifacts: usize,
    memories: usize,
    tokens: usize,
    logins: usize,
}

/// Entries that are moved together.
const PAGE: usize = 500;

/// How much of a content is in memory.
const WINDOW: usize = 1 << 20;

/// Copies what is beside the log of a database. It refers to nothing until the log is there, so one that was stopped is simply made
/// again.
async fn to_directory(from: &LeavingDatabase, dir: &Path, building: &Path) -> Result<Count, CliError> {
    let Beside { artifacts, memory_texts, documents } =
        Beside { artifacts: from.artifacts(), memory_texts: from.memory_texts(), documents: from.documents() };
    let unlimited = ArtifactLimits { max_bytes: u64::MAX, max_total_bytes: u64::MAX, max_count: u64::MAX };
    let mut count = Count {
        artifacts: copy_artifacts(&*artifacts, &local_artifacts(dir, unlimited)?).await.map_err(artifacts_failed)?,
        memories: copy_texts(&*memory_texts, &LocalMemoryTexts::new(building)).await.map_err(memories_failed)?,
        tokens: tokens_of(&documents).await?,
        logins: 0,
    };
    let to = LocalDocuments::new(dir);
    copy_document(TokenList::DOCUMENT, &*documents, &to).await.map_err(documents_failed)?;
    if let Some(key) = LoginsKey::from_environment()? {
        let documents = EncryptedDocuments::new(documents.clone(), key);
        for name in logins_to_move(&documents).await? {
            copy_document(&name, &documents, &to).await.map_err(documents_failed)?;
            count.logins += 1;
        }
    }
    Ok(count)
}

async fn copy_artifacts(from: &dyn Artifacts, to: &dyn Artifacts) -> Result<usize, ArtifactError> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = from.list(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        after = Some(last.id);
        for StoredArtifact { id, bytes, .. } in &page {
            let (mut draft, mut offset) = (to.draft()?, 0);
            while offset < *bytes {
                let window = from.read(id, offset, WINDOW).await?;
                draft.write(&window.bytes)?;
                if window.bytes.is_empty() {
                    return Err(ArtifactError::Damaged(*id));
                }
                offset += window.bytes.len() as u64;
            }
            if draft.keep()?.0 != *id {
                return Err(ArtifactError::Damaged(*id));
            }
            // Reading anything of it verifies all of it.
            to.read(id, 0, 0).await?;
        }
        count += page.len();
    }
}

async fn copy_texts(from: &dyn MemoryTexts, to: &dyn MemoryTexts) -> Result<usize, MemoryError> {
    let (mut after, mut count) = (None, 0);
    loop {
        let ids = from.ids(after, PAGE).await?;
        let Some(last) = ids.last() else { return Ok(count) };
        after = Some(last.clone());
        let texts = from.read(ids.clone()).await?;
        for (id, stored) in &texts {
            to.put(id, &stored.text).await?;
        }
        let embedded = texts.iter().filter_map(|(id, stored)| Some((id.clone(), stored.embedding.clone()?)));
        to.set_embeddings(embedded.collect()).await?;
        if to.read(ids).await? != texts {
            return Err(MemoryError::Failed("what has come is not what was sent".to_owned()));
        }
        count += texts.len();
    }
}

/// What is there is of an earlier log: tokens may have been revoked since.
async fn copy_document(name: &str, from: &dyn Documents, to: &dyn Documents) -> Result<(), DocumentError> {
    let (new, old) = (from.read(name).await?, to.read(name).await?);
    to.replace(name, old.as_deref(), new.as_deref()).await?;
    match to.read(name).await? == new {
        true => Ok(()),
        false => Err(not_what_was_sent(name)),
    }
}

fn not_what_was_sent(name: &str) -> DocumentError {
    DocumentError::Failed(format!("what has come of {name} is not what was sent"))
}

/// The logins at MCP servers. A database has them only with a key.
async fn logins_to_move(documents: &dyn Documents) -> Result<Vec<String>, CliError> {
    if LoginsKey::from_environment()?.is_none() {
        return Ok(Vec::new());
    }
    let mut names = documents.names(LOGINS).await.map_err(documents_failed)?;
    names.retain(|name| name.ends_with(".json"));
    Ok(names)
}

/// The documents of a data directory that a database gets.
async fn documents_to_move(documents: &dyn Documents) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let mut moved = Vec::new();
    if let Some(tokens) = documents.read(TokenList::DOCUMENT).await.map_err(documents_failed)? {
        moved.push((TokenList::DOCUMENT.to_owned(), tokens));
    }
    if let Some(key) = LoginsKey::from_environment()? {
        for name in logins_to_move(documents).await? {
            let Some(login) = documents.read(&name).await.map_err(documents_failed)? else { continue };
            let encrypted = key.encrypt(&name, &login).map_err(documents_failed)?;
            moved.push((key.stored(&name), encrypted));
        }
    }
    Ok(moved)
}

/// How many tokens there are beside the owner's, which stays where it is.
async fn tokens_of(documents: &Arc<dyn Documents>) -> Result<usize, CliError> {
    Ok(TokenList::new(documents.clone()).list().await.map_err(token_error)?.len())
}

fn documents_failed(error: DocumentError) -> CliError {
    token_error(error.into())
}

fn artifacts_failed(error: ArtifactError) -> CliError {
    CliError::new(error.code(), error.to_string())
}

fn memories_failed(error: MemoryError) -> CliError {
    CliError::new(error.code(), error.to_string())
}

fn is_url(place: &str) -> bool {
    place.contains("://")
}

fn address(url: &str) -> Result<StoreAddress, CliError> {
    let password = std::env::var("POLIS_STORE_PASSWORD").ok().filter(|password| !password.is_empty());
    StoreAddress::parse(url, password.as_deref(), None)
}

fn refuse_missing(data: &Path) -> Result<(), CliError> {
    match data.join("polis.db").exists() {
        true => Ok(()),
        false => Err(CliError::new("no_data", format!("there is no society in `{}`; name a data directory", data.display()))),
    }
}

enum From {
    Directory(Box<LeavingLog>),
    Database(LeavingDatabase),
}

impl From {
    async fn societies(&self) -> Result<Vec<MovedSociety>, LogError> {
        match self {
            Self::Directory(log) => Ok(log.societies()),
            Self::Database(log) => log.societies().await,
        }
    }

    async fn events(&mut self, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
        match self {
            Self::Directory(log) => log.events(society, after),
            Self::Database(log) => log.events(society, after).await,
        }
    }
}

enum To {
    Directory(Box<ToDirectory>),
    Database(Box<ToDatabase>),
}

/// Copies everything, and has the target read it back.
async fn copy(mut from: From, mut to: To) -> Result<Vec<(MovedSociety, Chain)>, LogError> {
    let mut moved = Vec::new();
    for society in parents_first(from.societies().await?)? {
        match &mut to {
            To::Directory(to) => to.society(&society)?,
            To::Database(to) => to.society(&society).await?,
        }
        let mut passage = Passage::of(&society);
        while passage.last() < society.head {
            let events = from.events(&society, passage.last()).await?;
            if events.is_empty() {
                return Err(LogError::Damaged(format!("event {} of `{}` is missing", passage.last().next(), society.name)));
            }
            events.iter().try_for_each(|event| passage.add(&society, event))?;
            match &mut to {
                To::Directory(to) => to.events(&society, &events)?,
                To::Database(to) => to.events(&society, &events).await?,
            }
        }
        moved.push((society, passage.chain()));
    }
    let chains: HashMap<_, _> =
        moved.iter().map(|(society, chain)| (society.name.to_string(), (society.head, *chain))).collect();
    match to {
        To::Directory(to) => to.finish(&chains)?,
        To::Database(to) => to.finish(&chains).await?,
    }
    Ok(moved)
}
