//! The tables, their versions, and how they come to be: embedded steps, one transaction, under an advisory lock.
//!
//! Names are bytes: they may be any text, also one that the database's encoding does not have, and they are ordered alike
//! everywhere. What is looked up by the name of a thread or agent is looked up by a key of 16 bytes, the beginning of its SHA-256,
//! because models make names and a row of an index has a limit.

use std::borrow::Cow;

use polis_domain::EVENT_VERSION;
use polis_ports::LogError;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::{from_column, from_postgres};
use crate::sql;

/// What each version of the tables adds to the one before it.
fn steps() -> [Cow<'static, str>; TABLES_VERSION as usize] {
    [LOG.into(), NODES.into(), BESIDE_THE_LOG.into(), BETWEEN_NODES.into(), sql::append_function()]
}

const LOG: &str = "
    CREATE TABLE polis.societies (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name bytea NOT NULL UNIQUE,
        first_name bytea NOT NULL, -- the name in the checksums of its events
        head bigint NOT NULL DEFAULT 0, -- without events, the society does not exist yet
        epoch bigint NOT NULL DEFAULT 0, -- statements with another one write nothing
        owner text, -- the node that has claimed it
        lease_until timestamptz,
        parent bigint, -- the society whose events it has
        fork_at bigint -- up to this position
    ) WITH (fillfactor = 50); -- each append updates the row; on the same page, no index changes

    CREATE TABLE polis.events (
        society bigint NOT NULL,
        seq bigint NOT NULL,
        at bigint NOT NULL,
        thread uuid, -- its key
        version integer NOT NULL, -- of the event's format, and whether an append ended here
        crc integer NOT NULL,
        body bytea NOT NULL, -- packed
        PRIMARY KEY (society, seq)
    );
    ALTER TABLE polis.events ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE INDEX events_by_thread ON polis.events (society, thread, seq) WHERE thread IS NOT NULL;

    CREATE TABLE polis.threads (
        society bigint NOT NULL,
        thread uuid NOT NULL,
        first bigint NOT NULL, -- its first event of this society
        name bytea NOT NULL,
        PRIMARY KEY (society, thread)
    );
    CREATE INDEX threads_by_first ON polis.threads (society, first);

    CREATE TABLE polis.snapshots (
        society bigint PRIMARY KEY,
        seq bigint NOT NULL,
        version bigint NOT NULL,
        crc integer NOT NULL,
        body bytea NOT NULL
    );
    ALTER TABLE polis.snapshots ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE polis.idle (
        society bigint NOT NULL,
        key uuid NOT NULL,
        name bytea NOT NULL,
        parent_key uuid, -- the thread and the message that a sub-thread hangs in
        parent bytea,
        message bigint,
        person bytea,
        pinned boolean, -- the place in the list of a conversation
        active bigint,
        kind smallint, -- what it is listed as
        crc integer NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (society, key)
    );
    CREATE INDEX idle_by_name ON polis.idle (society, substring(name FROM 1 FOR 200));
    CREATE INDEX idle_by_message ON polis.idle (society, parent_key, message) WHERE parent_key IS NOT NULL;
    CREATE INDEX idle_by_place ON polis.idle (society, pinned, active) WHERE active IS NOT NULL;
";

/// The nodes that serve each other's requests.
const NODES: &str = "
    CREATE TABLE polis.nodes (
        name text PRIMARY KEY, -- of one start of a process
        address text NOT NULL, -- where the other nodes reach it
        key bytea NOT NULL, -- the SHA-256 of its public key
        since timestamptz NOT NULL DEFAULT now(),
        lease_until timestamptz NOT NULL,
        draining boolean NOT NULL DEFAULT false
    );
    -- Of columns that neither an append nor a renewal changes, so that these stay on their page.
    CREATE INDEX societies_by_owner ON polis.societies (owner) WHERE owner IS NOT NULL;
";

/// What nodes share beside the log.
const BESIDE_THE_LOG: &str = "
    CREATE TABLE polis.artifacts (
        id bytea PRIMARY KEY, -- the SHA-256 of the content
        content bigint NOT NULL, -- the number of its chunks
        bytes bigint NOT NULL,
        chunk_bytes integer NOT NULL, -- the length of all chunks but the last
        at bigint NOT NULL, -- when it was stored last, by the later of two clocks
        replaced bigint -- the chunks that it had before
    );
    CREATE SEQUENCE polis.contents;

    CREATE TABLE polis.artifact_chunks (
        content bigint NOT NULL,
        number integer NOT NULL,
        at bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (content, number)
    );
    ALTER TABLE polis.artifact_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE polis.memory_texts (
        id bytea PRIMARY KEY,
        text bytea NOT NULL,
        model bytea, -- the embedding model of the vector
        vector bytea -- little-endian 32-bit floating-point numbers
    );

    CREATE TABLE polis.documents (
        name text PRIMARY KEY,
        body bytea NOT NULL
    );
";

/// Rate limits that nodes share, of which the loss costs a burst; how they see that they are set up differently, and learn of erased texts.
const BETWEEN_NODES: &str = "
    CREATE UNLOGGED TABLE polis.rates (
        name text PRIMARY KEY,
        left_over double precision NOT NULL, -- requests that may be made at once
        per_second double precision NOT NULL,
        burst double precision NOT NULL,
        at timestamptz NOT NULL -- when so many were left
    ) WITH (fillfactor = 50);

    ALTER TABLE polis.nodes ADD COLUMN setup text NOT NULL DEFAULT ''; -- a digest of what should be the same everywhere

    -- How often another society has erased texts that it shares. A snapshot of a state from before is not used.
    ALTER TABLE polis.societies ADD COLUMN erasures bigint NOT NULL DEFAULT 0;
    ALTER TABLE polis.snapshots ADD COLUMN erasures bigint NOT NULL DEFAULT 0;
";

/// The version of the tables.
const TABLES_VERSION: i32 = 5;

const EVENTS_VERSION: i32 = EVENT_VERSION as i32;

const VERSIONS: &str = "CREATE TABLE polis.versions (tables integer NOT NULL, events integer NOT NULL)";

/// The oldest PostgreSQL that is supported.
const SERVER_VERSION: i32 = 150_000;

/// Checks that the server keeps what it acknowledges, and that the tables are none of a newer Polis. Gives whether they are as this
/// one needs them.
pub(crate) async fn check(client: &Client, schema: &str) -> Result<bool, LogError> {
    let settings = "SELECT current_setting('server_version_num')::integer, current_setting('fsync'), \
                    current_setting('synchronous_commit'), to_regclass($1) IS NOT NULL";
    let table = format!("{schema}.versions");
    let row = client.query_typed_one(settings, &[(&table, Type::TEXT)]).await.map_err(from_postgres)?;
    let version: i32 = row.try_get(0).map_err(from_column)?;
    if version < SERVER_VERSION {
        let found = version / 10_000;
        return Err(LogError::Failed(format!("the server is PostgreSQL {found}; Polis needs 15 or later").into()));
    }
    for (column, name) in [(1, "fsync"), (2, "synchronous_commit")] {
        if row.try_get::<_, String>(column).map_err(from_column)? == "off" {
            let what = format!("the database has `{name}` off, so it may lose what it acknowledges; turn it on for Polis");
            return Err(LogError::Failed(what.into()));
        }
    }
    if !row.try_get::<_, bool>(3).map_err(from_column)? {
        return Ok(false);
    }
    Ok(versions(client, schema).await? == Some((TABLES_VERSION, EVENTS_VERSION)))
}

/// Makes or updates the tables. Of several that do so at a time, one works and the others wait for it.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<(), LogError> {
    let in_schema = |statement| sql::in_schema(statement, schema);
    let transaction = client.transaction().await.map_err(from_postgres)?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('polis ' || $1, 0))";
    transaction.query_typed(lock, &[(&schema, Type::TEXT)]).await.map_err(from_postgres)?;
    // Functions that know names, such as to_regclass, may answer from before the wait.
    let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1),
                 EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'versions')";
    let row = transaction.query_typed_one(there, &[(&schema, Type::NAME)]).await.map_err(from_postgres)?;
    let (has_schema, has_versions): (bool, bool) = (row.try_get(0).map_err(from_column)?, row.try_get(1).map_err(from_column)?);
    if !has_schema {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(from_postgres)?;
    }
    if !has_versions {
        transaction.batch_execute(&in_schema(VERSIONS)).await.map_err(from_postgres)?;
        transaction.batch_execute(&in_schema("INSERT INTO polis.versions VALUES (0, 0)")).await.map_err(from_postgres)?;
    }
    let (tables, events) = versions(transaction.client(), schema).await?.unwrap_or_default();
    let steps = steps();
    for step in steps.iter().skip(usize::try_from(tables).unwrap_or_default()) {
        transaction.batch_execute(&in_schema(step)).await.map_err(from_postgres)?;
    }
    if (tables, events) != (TABLES_VERSION, EVENTS_VERSION) {
        let update = format!("UPDATE polis.versions SET tables = {TABLES_VERSION}, events = {EVENTS_VERSION}");
        transaction.batch_execute(&in_schema(&update)).await.map_err(from_postgres)?;
    }
    transaction.commit().await.map_err(from_postgres)
}

/// The versions of the tables and of the newest event that may be in them. Refuses those that are too new.
async fn versions(client: &Client, schema: &str) -> Result<Option<(i32, i32)>, LogError> {
    let statement = sql::in_schema("SELECT tables, events FROM polis.versions", schema);
    let Some(row) = client.query_typed_opt(&statement, &[]).await.map_err(from_postgres)? else { return Ok(None) };
    let (tables, events): (i32, i32) = (row.try_get(0).map_err(from_column)?, row.try_get(1).map_err(from_column)?);
    if tables > TABLES_VERSION || events > EVENTS_VERSION {
        return Err(LogError::TooNew(format!(
            "the database was written by a newer polis (tables {tables}, events {events}; this one knows tables \
             {TABLES_VERSION}, events {EVENTS_VERSION}). Use that polis, or restore a backup made with this one"
        )));
    }
    Ok(Some((tables, events)))
}

/// The key of a thread or agent by its name.
pub(crate) fn key(name: &str) -> Uuid {
    let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    Uuid::from_bytes(*hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
}
