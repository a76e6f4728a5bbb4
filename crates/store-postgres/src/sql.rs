//! The statements. Each is sent alone and unnamed, see the documentation of the crate.
//!
//! What is written here as `polis.` is the schema of the log.

use std::borrow::Cow;

/// Moves the heads that are where they are expected to be, and adds the events of those societies. Gives the ids of those.
///
/// It is a function, because its statements are then planned once for each connection to the server, also behind a pooler, where
/// nothing else can be prepared. Planning took four times as long as everything else of an append.
///
/// A concurrent append of another owner holds the row; when it has ended, PostgreSQL checks the conditions again on the new row,
/// so of two one finds another head.
///
/// | parameters | what |
/// |---|---|
/// | 1-5 | by society: id, expected head, new head, epoch, whether it is claimed |
/// | 6 | the node |
/// | 7-13 | by event: the columns of `events` |
/// | 14-17 | by new thread: the columns of `threads` |
///
/// It is a step of the tables' versions, so another function gets another name.
const APPEND_FUNCTION: &str = "
    CREATE FUNCTION polis.append(
        bigint[], bigint[], bigint[], bigint[], boolean[], text,
        bigint[], bigint[], bigint[], uuid[], integer[], integer[], bytea[],
        bigint[], uuid[], bigint[], bytea[]
    ) RETURNS bigint[] LANGUAGE plpgsql AS $$
    DECLARE
        moved bigint[] := '{}';
    BEGIN
        -- One by one, so that the plan is a lookup by id whatever the numbers are.
        FOR n IN 1 .. cardinality($1) LOOP
            UPDATE polis.societies s SET head = $3[n]
            WHERE s.id = $1[n] AND s.head = $2[n]
                AND s.epoch = $4[n] AND CASE WHEN $5[n] THEN s.owner = $6 AND s.lease_until > now() ELSE s.owner IS NULL END;
            IF FOUND THEN
                moved := moved || $1[n];
            END IF;
        END LOOP;
        INSERT INTO polis.events (society, seq, at, thread, version, crc, body)
        SELECT e.* FROM unnest($7, $8, $9, $10, $11, $12, $13) AS e (society, seq, at, thread, version, crc, body)
        WHERE e.society = ANY (moved);
        IF cardinality($14) > 0 THEN
            INSERT INTO polis.threads (society, thread, first, name)
            SELECT t.* FROM unnest($14, $15, $16, $17) AS t (society, thread, first, name)
            WHERE t.society = ANY (moved)
            ON CONFLICT DO NOTHING;
        END IF;
        RETURN moved;
    END
    $$;
";

/// Makes [`APPEND_FUNCTION`], and for the planted bug `no-fence` another that does not look at who owns the societies.
pub(crate) fn append_function() -> Cow<'static, str> {
    #[cfg(feature = "mutants")]
    if let Some((before, rest)) = APPEND_FUNCTION.split_once("AND s.epoch = $4[n]")
        && let Some((_, after)) = rest.split_once("IS NULL END")
    {
        let unfenced = format!("{before}{after}").replacen("polis.append(", "polis.append_unfenced(", 1);
        return Cow::Owned(format!("{APPEND_FUNCTION}{unfenced}"));
    }
    Cow::Borrowed(APPEND_FUNCTION)
}

/// Calls [`APPEND_FUNCTION`].
pub(crate) fn append() -> &'static str {
    #[cfg(feature = "mutants")]
    if std::env::var("POLIS_PLANT").is_ok_and(|bug| bug == "no-fence") {
        return "SELECT polis.append_unfenced($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    }
    "SELECT polis.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
}

/// Makes the rows of societies that have none. One whose head is 0 is not listed and cannot be read.
pub(crate) const ENSURE: &str = "
    INSERT INTO polis.societies (name, first_name) SELECT name, name FROM unnest($1::bytea[]) AS w (name)
    ON CONFLICT (name) DO NOTHING";

/// Where societies stand.
pub(crate) const LOOK: &str = "
    SELECT id, name, first_name, head, epoch, owner, coalesce(lease_until > now(), false) FROM polis.societies
    WHERE name = ANY ($1::bytea[])";

/// Raises epochs, so that statements whose outcome is unknown have one: they are waited for, or find another epoch.
pub(crate) const SETTLE: &str = "
    UPDATE polis.societies s SET epoch = s.epoch + 1
    FROM unnest($1::bigint[], $2::bigint[]) AS w (id, epoch)
    WHERE s.id = w.id AND s.epoch = w.epoch";

/// The stretches of the log of the society `$1`: its own events, and for the time before it was forked those of its ancestors.
/// `depth` counts from the society upwards.
const LINE: &str = "
    WITH RECURSIVE line (id, name, parent, after, through, depth, head) AS (
        SELECT id, first_name, parent, coalesce(fork_at, 0), 9223372036854775807, 0, head FROM polis.societies
        WHERE name = $1 AND head > 0
    UNION ALL
        SELECT p.id, p.first_name, p.parent, coalesce(p.fork_at, 0), line.after, line.depth + 1, line.head
        FROM line JOIN polis.societies p ON p.id = line.parent
    )";

/// The columns of an event, with the name of its thread, and the first name of the society that wrote it. The thread is a subquery
/// because that is always a lookup, while the plan of a join may read all threads.
const EVENT: &str = "e.seq, e.at, e.thread,
    (SELECT t.name FROM polis.threads t WHERE t.society = e.society AND t.thread = e.thread),
    e.version, e.crc, e.body, line.name";

/// The events after `$2`, at most `$3`, and the head of the society in every row. One row without an event if there are none.
pub(crate) fn read() -> String {
    format!(
        "{LINE}, found AS (
            SELECT {EVENT} FROM line CROSS JOIN LATERAL (
                SELECT * FROM polis.events e WHERE e.society = line.id AND e.seq > greatest($2, line.after) AND e.seq <= line.through
                ORDER BY e.seq LIMIT $3
            ) e
            ORDER BY e.seq LIMIT $3
        )
        SELECT found.*, line.head FROM line LEFT JOIN found ON true WHERE line.depth = 0 ORDER BY 1"
    )
}

/// The events of the thread `$2` after `$3` and up to `$4`, at most `$5`: the oldest, or the newest in reverse.
pub(crate) fn read_thread(newest: bool) -> String {
    let order = if newest { "DESC" } else { "ASC" };
    format!(
        "{LINE}
        SELECT {EVENT} FROM line CROSS JOIN LATERAL (
            SELECT * FROM polis.events e
            WHERE e.society = line.id AND e.thread = $2
                AND e.seq > greatest($3, line.after) AND e.seq <= least($4, line.through)
            ORDER BY e.seq {order} LIMIT $5
        ) e
        ORDER BY e.seq {order} LIMIT $5"
    )
}

/// The last event up to `$2` that ended an append.
pub(crate) fn whole() -> String {
    format!(
        "{LINE}
        SELECT {EVENT} FROM line CROSS JOIN LATERAL (
            SELECT * FROM polis.events e
            WHERE e.society = line.id AND e.seq > line.after AND e.seq <= least($2, line.through) AND e.version & 65536 <> 0
            ORDER BY e.seq DESC LIMIT 1
        ) e
        ORDER BY e.seq DESC LIMIT 1"
    )
}

/// The threads whose names begin with `$2`, from the one that began last on, at most `$4`; only those that began before the thread
/// `$3`, if that is one.
pub(crate) fn threads() -> String {
    format!(
        "{LINE}, before (first) AS (
            SELECT CASE WHEN $3::uuid IS NULL THEN 9223372036854775807 ELSE coalesce((
                SELECT min((
                    SELECT t.first FROM polis.threads t
                    WHERE t.society = line.id AND t.thread = $3::uuid AND t.first <= line.through
                )) FROM line
            ), 0) END
        )
        SELECT t.name FROM line CROSS JOIN before CROSS JOIN LATERAL (
            SELECT t.name, t.first FROM polis.threads t
            WHERE t.society = line.id AND t.first <= line.through AND t.first < before.first
                AND substring(t.name FROM 1 FOR length($2)) = $2
                AND NOT EXISTS (
                    SELECT 1 FROM line above WHERE above.depth > line.depth AND above.through >= (
                        SELECT a.first FROM polis.threads a WHERE a.society = above.id AND a.thread = t.thread
                    )
                )
            ORDER BY t.first DESC LIMIT $4
        ) t ORDER BY t.first DESC LIMIT $4"
    )
}

/// Whether the log of a society has events up to `$3` under some of the threads `$2`.
pub(crate) fn has_threads() -> String {
    format!(
        "{LINE}
        SELECT EXISTS (
            SELECT 1 FROM line WHERE least($3, line.through) >= (
                SELECT min(t.first) FROM polis.threads t WHERE t.society = line.id AND t.thread = ANY ($2::uuid[])
            )
        )"
    )
}

/// The events at the positions `$2`, each with the id of the society that has its row. They stay locked.
pub(crate) fn events_to_redact() -> String {
    format!(
        "{LINE} SELECT {EVENT}, e.society FROM line JOIN polis.events e
            ON e.society = line.id AND e.seq > line.after AND e.seq <= line.through
        WHERE e.seq = ANY ($2::bigint[]) ORDER BY e.seq"
    )
}

/// Puts other bodies in the place of those of events.
pub(crate) const REDACT: &str = "
    UPDATE polis.events e SET version = w.version, crc = w.crc, body = w.body
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bytea[]) AS w (society, seq, version, crc, body)
    WHERE e.society = w.society AND e.seq = w.seq";

/// The societies that may share events with `$1`: those that have the same first event.
const RELATED: &str = "
    WITH RECURSIVE up (of, id, parent) AS (
        SELECT id, id, parent FROM polis.societies
    UNION ALL
        SELECT up.of, p.id, p.parent FROM up JOIN polis.societies p ON p.id = up.parent
    ), first (of, id) AS (
        SELECT of, id FROM up WHERE parent IS NULL
    ), related (id) AS (
        SELECT other.of FROM polis.societies s JOIN first own ON own.of = s.id JOIN first other ON other.id = own.id
        WHERE s.name = $1 AND other.of <> s.id
    )";

/// Notes of the other societies that may share events with `$1` that their states have erased texts. In the order of ids, so that no two nodes
/// wait for each other.
pub(crate) fn outdate() -> String {
    format!(
        "{RELATED}, outdated AS (
            SELECT id FROM polis.societies WHERE id IN (SELECT id FROM related) ORDER BY id FOR UPDATE
        )
        UPDATE polis.societies s SET erasures = s.erasures + 1 FROM outdated WHERE s.id = outdated.id
        RETURNING s.name, s.erasures, s.owner IS NOT DISTINCT FROM $2"
    )
}

/// Removes what is in the snapshots of the other societies that may share events with `$1`, except of those that another node than `$2` owns: it
/// reads its idle entries there until it has opened the society again.
pub(crate) fn forget(table: &str) -> String {
    format!(
        "{RELATED} DELETE FROM polis.{table} WHERE society IN (
            SELECT id FROM related JOIN polis.societies USING (id) WHERE owner IS NULL OR owner = $2 OR lease_until <= now()
        )"
    )
}

/// The societies of the node `$1` that share erased texts, with how often that happened.
pub(crate) const ERASURES: &str = "SELECT name, erasures FROM polis.societies WHERE owner = $1 AND erasures > 0";

/// Frees the space of dead rows.
pub(crate) const VACUUM: &str = "VACUUM polis.events, polis.snapshots, polis.idle";

pub(crate) const HEAD: &str = "SELECT head FROM polis.societies WHERE name = $1";

pub(crate) const SOCIETIES: &str = "SELECT name FROM polis.societies WHERE head > 0 ORDER BY name";

/// The societies after the name `$1`, at most `$2`.
pub(crate) const LIST_SOCIETIES: &str = "
    SELECT s.name, s.head, above.name, s.fork_at FROM polis.societies s LEFT JOIN polis.societies above ON above.id = s.parent
    WHERE s.head > 0 AND ($1::bytea IS NULL OR s.name > $1) ORDER BY s.name LIMIT $2";

pub(crate) const ORIGIN: &str = "
    SELECT above.name, born.fork_at FROM polis.societies born JOIN polis.societies above ON above.id = born.parent
    WHERE born.name = $1";

/// Claims the society `$1` for the node `$2` for so many microseconds, unless another node has a lease.
pub(crate) const CLAIM: &str = "
    UPDATE polis.societies SET epoch = epoch + 1, owner = $2, lease_until = now() + $3 * interval '1 microsecond'
    WHERE name = $1 AND (owner IS NULL OR owner = $2 OR lease_until <= now())
    RETURNING epoch, erasures";

/// Renews the leases of the node `$2` on those of the societies `$1` that it still has. One that has ended is renewed unless
/// another node has claimed the society since.
pub(crate) const RENEW: &str = "
    UPDATE polis.societies SET lease_until = now() + $3 * interval '1 microsecond' WHERE name = ANY ($1::bytea[]) AND owner = $2
    RETURNING name";

/// Gives the society `$1` back. The owner of one that has work (`$3`) is nobody, so that it is [`UNOWNED`].
pub(crate) const RELEASE: &str = "
    UPDATE polis.societies SET epoch = epoch + 1, owner = CASE WHEN $3 THEN '' END, lease_until = CASE WHEN $3 THEN now() END
    WHERE name = $1 AND owner = $2";

/// Societies that are to be continued, at most `$1`: their owner is gone, or has given them back with work.
pub(crate) const UNOWNED: &str = "
    SELECT name FROM polis.societies WHERE owner IS NOT NULL AND lease_until <= now() ORDER BY name LIMIT $1";

/// Keeps the node `$1` in the table of nodes.
pub(crate) const KEEP_NODE: &str = "
    INSERT INTO polis.nodes (name, address, key, lease_until, setup)
    VALUES ($1, $2, $3, now() + $4 * interval '1 microsecond', $5)
    ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until";

/// Removes the node `$1`, and those that have been gone for an hour.
pub(crate) const REMOVE_NODE: &str = "DELETE FROM polis.nodes WHERE name = $1 OR lease_until < now() - interval '1 hour'";

pub(crate) const NODES: &str = "
    SELECT n.name, n.address, n.key, (extract(epoch FROM n.since) * 1000)::bigint,
        greatest((extract(epoch FROM n.lease_until - now()) * 1000000)::bigint, 0), n.draining,
        (SELECT count(*) FROM polis.societies s WHERE s.owner = n.name AND s.lease_until > now()), n.setup
    FROM polis.nodes n ORDER BY n.name";

pub(crate) const SET_DRAINING: &str = "UPDATE polis.nodes SET draining = $2 WHERE name = $1 RETURNING name";

/// Takes `$2` requests from the limits `$1`, to which `$3` are added in a second until there are `$4`. In the order of names, so that no two
/// nodes wait for each other.
pub(crate) const TAKE: &str = "
    INSERT INTO polis.rates AS r (name, left_over, per_second, burst, at)
    SELECT name, burst - requests, per_second, burst, now()
    FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[]) AS t (name, requests, per_second, burst) ORDER BY name
    ON CONFLICT (name) DO UPDATE SET per_second = excluded.per_second, burst = excluded.burst, at = excluded.at, left_over =
        least(excluded.burst, r.left_over + greatest(extract(epoch FROM excluded.at - r.at), 0) * excluded.per_second)
            - (excluded.burst - excluded.left_over)
    RETURNING name, left_over";

/// A limit from which nothing is missing needs no row.
pub(crate) const FORGET_RATES: &str = "
    DELETE FROM polis.rates WHERE name IN (
        SELECT name FROM polis.rates WHERE left_over + extract(epoch FROM now() - at) * per_second >= burst FOR UPDATE SKIP LOCKED
    )";

pub(crate) const OWNER: &str = "
    SELECT owner, epoch, (extract(epoch FROM lease_until - now()) * 1000000)::bigint FROM polis.societies
    WHERE name = $1 AND lease_until > now()";

pub(crate) const FIRST_OWNED: &str = "
    SELECT owner, epoch, (extract(epoch FROM lease_until - now()) * 1000000)::bigint, name FROM polis.societies
    WHERE owner IS NOT NULL AND lease_until > now() ORDER BY name LIMIT 1";

pub(crate) const LOAD_SNAPSHOT: &str = "
    SELECT p.seq, p.version, p.crc, p.body FROM polis.societies s JOIN polis.snapshots p ON p.society = s.id
    WHERE s.name = $1 AND p.seq <= s.head AND p.erasures >= s.erasures";

/// The society of a snapshot.
pub(crate) const OF_SNAPSHOT: &str = "SELECT id, head FROM polis.societies WHERE name = $1";

pub(crate) const LOCK_SNAPSHOT: &str = "SELECT seq FROM polis.snapshots WHERE society = $1 FOR UPDATE";

/// Saves a snapshot unless a newer one has been saved meanwhile. `$6` is how many erasures its state has followed; all, if nobody has claimed the
/// society.
pub(crate) const SAVE_SNAPSHOT: &str = "
    INSERT INTO polis.snapshots AS p (society, seq, version, crc, body, erasures)
    SELECT $1, $2, $3, $4, $5, coalesce($6, s.erasures) FROM polis.societies s WHERE s.id = $1
    ON CONFLICT (society) DO UPDATE SET seq = $2, version = $3, crc = $4, body = $5, erasures = excluded.erasures WHERE p.seq <= $2";

pub(crate) const CLEAR_IDLE: &str = "DELETE FROM polis.idle WHERE society = $1";

pub(crate) const SAVE_IDLE: &str = "
    INSERT INTO polis.idle (society, key, name, parent_key, parent, message, person, pinned, active, kind, crc, body)
    SELECT $1, e.* FROM unnest(
        $2::uuid[], $3::bytea[], $4::uuid[], $5::bytea[], $6::bigint[], $7::bytea[], $8::boolean[], $9::bigint[], $10::smallint[],
        $11::integer[], $12::bytea[]
    ) AS e (key, name, parent_key, parent, message, person, pinned, active, kind, crc, body)
    ON CONFLICT (society, key) DO UPDATE SET parent_key = excluded.parent_key, parent = excluded.parent,
        message = excluded.message, person = excluded.person, pinned = excluded.pinned, active = excluded.active,
        kind = excluded.kind, crc = excluded.crc, body = excluded.body";

/// The columns of an idle entry.
const IDLE: &str = "i.name, i.parent, i.message, i.person, i.pinned, i.active, i.kind, i.crc, i.body";

/// The idle entries with the keys `$2` or that hang in the messages `$4` of `$3`, beside the position of the snapshot. One row
/// without an entry if there are none.
pub(crate) fn find_idle() -> String {
    format!(
        "SELECT {IDLE}, i.key, p.seq
        FROM polis.societies s JOIN polis.snapshots p ON p.society = s.id
        LEFT JOIN LATERAL (
            SELECT * FROM polis.idle i WHERE i.society = s.id AND i.key = ANY ($2::uuid[])
            UNION ALL
            SELECT i.* FROM unnest($3::uuid[], $4::bigint[]) AS w (parent_key, message)
            JOIN polis.idle i ON i.society = s.id AND i.parent_key = w.parent_key AND i.message = w.message
            WHERE i.key <> ALL ($2::uuid[])
        ) i ON true
        WHERE s.name = $1"
    )
}

/// The order of names. Only their beginnings are in the index, because names may be longer than a row of an index.
const NAME_ORDER: &str = "substring(i.name FROM 1 FOR 200), i.name";

/// What is after `$4`, by name.
const AFTER_NAME: &str = "substring(i.name FROM 1 FOR 200) >= substring($4::bytea FROM 1 FOR 200) AND i.name > $4::bytea";

/// Which list of idle entries, see [`list_idle`].
pub(crate) enum List {
    Conversations,
    Terminated,
    All,
}

/// The idle entries of a list, at most `$2`, of the person `$3` if that is one. `$4` is the name, or `$4` and `$5` the place, that
/// they come after.
pub(crate) fn list_idle(list: &List, of_person: bool) -> String {
    let (which, order) = match list {
        List::Conversations => {
            ("i.active IS NOT NULL AND (i.pinned, i.active) < ($4::boolean, $5::bigint)", "i.pinned DESC, i.active DESC")
        }
        List::Terminated => (AFTER_NAME, NAME_ORDER),
        List::All => (AFTER_NAME, NAME_ORDER),
    };
    let kind = if matches!(list, List::Terminated) { "AND i.kind = 2" } else { "" };
    let person = if of_person { "AND i.person = $3::bytea" } else { "AND $3::bytea IS NULL" };
    let unused = if matches!(list, List::Conversations) { "" } else { "AND $5::bigint IS NULL" };
    format!(
        "SELECT {IDLE} FROM polis.societies s JOIN polis.idle i ON i.society = s.id
        WHERE s.name = $1 AND {which} {kind} {person} {unused} ORDER BY {order} LIMIT $2"
    )
}

/// Locks the societies with the names `$1`, in the order of their ids.
pub(crate) const LOCK: &str = "
    SELECT name, id, head, epoch, owner, coalesce(lease_until > now(), false) FROM polis.societies
    WHERE name = ANY ($1::bytea[]) ORDER BY id FOR UPDATE";

/// Which of the societies of a log has the event `$2`: the parent of a fork there.
pub(crate) fn ancestor() -> String {
    format!("{LINE} SELECT id FROM line WHERE after < $2 AND $2 <= through")
}

pub(crate) const REMOVE_EMPTY: &str = "DELETE FROM polis.societies WHERE name = $1 AND head = 0";

/// Gives the society `$1` the name `$2`. Nobody owns it from then on.
pub(crate) const RENAME: &str =
    "UPDATE polis.societies SET name = $2, epoch = epoch + 1, owner = NULL, lease_until = NULL WHERE name = $1";

/// Makes the fork `$1` of the society `$2` at `$3`. What has the name, if anything, has no events.
pub(crate) const FORK: &str = "
    INSERT INTO polis.societies AS s (name, first_name, parent, fork_at, head, epoch) VALUES ($1, $1, $2, $3, $3 + 1, $4)
    ON CONFLICT (name) DO UPDATE SET parent = $2, fork_at = $3, head = $3 + 1, epoch = s.epoch + 1 WHERE s.head = 0
    RETURNING id, first_name";

pub(crate) const FIRST_EVENT: &str =
    "INSERT INTO polis.events (society, seq, at, thread, version, crc, body) VALUES ($1, $2, $3, $4, $5, $6, $7)";

pub(crate) const FIRST_THREAD: &str = "INSERT INTO polis.threads (society, thread, first, name) VALUES ($1, $2, $3, $4)";

/// The societies of a log that is moved.
pub(crate) const MOVED_SOCIETIES: &str = "
    SELECT id, name, first_name, parent, coalesce(fork_at, 0), head FROM polis.societies WHERE head > 0 ORDER BY id";

/// The own events of the society `$1` after `$2` and up to `$3`, at most `$4`.
pub(crate) const OWN_EVENTS: &str = "
    SELECT e.seq, e.at, e.thread,
        (SELECT t.name FROM polis.threads t WHERE t.society = e.society AND t.thread = e.thread),
        e.version, e.crc, e.body, s.first_name
    FROM polis.societies s JOIN polis.events e ON e.society = s.id
    WHERE s.id = $1 AND e.seq > $2 AND e.seq <= $3 ORDER BY e.seq LIMIT $4";

pub(crate) const LOCK_SOCIETIES: &str = "LOCK TABLE polis.societies IN EXCLUSIVE MODE";

pub(crate) const REMOVE_ALL_EMPTY: &str = "DELETE FROM polis.societies WHERE head = 0";

pub(crate) const ADD_SOCIETY: &str = "
    INSERT INTO polis.societies (name, first_name, parent, fork_at, head) VALUES ($1, $2, $3, $4, $5) RETURNING id";

pub(crate) const ADD_THREADS: &str = "
    INSERT INTO polis.threads (society, thread, first, name)
    SELECT $1, t.* FROM unnest($2::uuid[], $3::bigint[], $4::bytea[]) AS t (thread, first, name)";

pub(crate) const ADD_EVENTS: &str = "
    INSERT INTO polis.events (society, seq, at, thread, version, crc, body)
    SELECT $1, e.* FROM unnest($2::bigint[], $3::bigint[], $4::uuid[], $5::integer[], $6::integer[], $7::bytea[])
        AS e (seq, at, thread, version, crc, body)";

/// The artifacts after the id `$1`, at most `$2`.
pub(crate) const LIST_ARTIFACTS: &str = "SELECT id, bytes, at FROM polis.artifacts WHERE id > $1 ORDER BY id LIMIT $2";

pub(crate) const WHICH_ARTIFACTS: &str = "SELECT id FROM polis.artifacts WHERE id = ANY ($1::bytea[])";

pub(crate) const ARTIFACT: &str = "SELECT content, bytes, chunk_bytes FROM polis.artifacts WHERE id = $1";

pub(crate) const ARTIFACT_CHUNK: &str = "SELECT body FROM polis.artifact_chunks WHERE content = $1 AND number = $2";

pub(crate) const NEXT_CONTENT: &str = "SELECT nextval('polis.contents')";

/// Adds a chunk. One that is there was added by the same statement, sent again after a lost connection.
pub(crate) const ADD_CHUNK: &str = "
    INSERT INTO polis.artifact_chunks (content, number, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// How many other artifacts than `$1` there are, and their bytes. With the number `$2`, or a new one.
pub(crate) const USED_BY_ARTIFACTS: &str = "
    SELECT count(*), coalesce(sum(bytes), 0)::bigint, coalesce($2::bigint, nextval('polis.contents'))
    FROM polis.artifacts WHERE id <> $1";

/// The length of a content that was sent.
pub(crate) const SENT_BYTES: &str = "
    SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM polis.artifact_chunks WHERE content = $1";

/// Gives an artifact its chunks; gives those that it had before. Its time is the later one of ours and the server's: whatever clock is
/// wrong, it does not look older than it is.
pub(crate) const KEEP_ARTIFACT: &str = "
    INSERT INTO polis.artifacts AS a (id, content, bytes, chunk_bytes, at)
    VALUES ($1, $2, $3, $4, greatest($5, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
    ON CONFLICT (id) DO UPDATE SET content = excluded.content, bytes = excluded.bytes, chunk_bytes = excluded.chunk_bytes,
        at = excluded.at, replaced = a.content
    RETURNING replaced";

pub(crate) const REMOVE_CHUNKS: &str = "DELETE FROM polis.artifact_chunks WHERE content = $1";

/// Removes the chunks that began before `$1` and belong to nothing.
pub(crate) const REMOVE_DRAFTS: &str = "
    DELETE FROM polis.artifact_chunks c
    WHERE c.at < $1 AND NOT EXISTS (SELECT FROM polis.artifacts a WHERE a.content = c.content)";

/// Removes those of the artifacts `$1` that were stored up to `$2`; gives the chunks that are gone.
pub(crate) const REMOVE_ARTIFACTS: &str = "
    WITH gone AS (DELETE FROM polis.artifacts WHERE id = ANY ($1::bytea[]) AND at <= $2 RETURNING content)
    DELETE FROM polis.artifact_chunks WHERE content IN (SELECT content FROM gone) RETURNING number";

pub(crate) const VACUUM_ARTIFACTS: &str = "VACUUM polis.artifacts, polis.artifact_chunks";

pub(crate) const ADD_TEXT: &str = "INSERT INTO polis.memory_texts (id, text) VALUES ($1, $2) ON CONFLICT DO NOTHING";

pub(crate) const TEXTS: &str = "SELECT id, text, model, vector FROM polis.memory_texts WHERE id = ANY ($1::bytea[])";

pub(crate) const TEXT_IDS: &str = "
    SELECT id FROM polis.memory_texts WHERE $1::bytea IS NULL OR id > $1 ORDER BY id LIMIT $2";

pub(crate) const SET_EMBEDDINGS: &str = "
    UPDATE polis.memory_texts t SET model = w.model, vector = w.vector
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS w (id, model, vector)
    WHERE t.id = w.id";

pub(crate) const REMOVE_TEXTS: &str = "DELETE FROM polis.memory_texts WHERE id = ANY ($1::bytea[]) RETURNING 1";

pub(crate) const VACUUM_TEXTS: &str = "VACUUM polis.memory_texts";

pub(crate) const DOCUMENT: &str = "SELECT body FROM polis.documents WHERE name = $1";

pub(crate) const DOCUMENT_NAMES: &str = "
    SELECT name FROM polis.documents WHERE starts_with(name, $1) ORDER BY name COLLATE \"C\"";

pub(crate) const ADD_DOCUMENT: &str = "
    INSERT INTO polis.documents (name, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1";

pub(crate) const REPLACE_DOCUMENT: &str = "UPDATE polis.documents SET body = $3 WHERE name = $1 AND body = $2 RETURNING 1";

pub(crate) const REMOVE_DOCUMENT: &str = "DELETE FROM polis.documents WHERE name = $1 AND body = $2 RETURNING 1";

/// Nothing refers to what is beside a log without societies.
pub(crate) const REMOVE_BESIDE: [&str; 3] =
    ["DELETE FROM polis.artifacts", "DELETE FROM polis.artifact_chunks", "DELETE FROM polis.memory_texts"];

pub(crate) const MOVE_DOCUMENT: &str = "
    INSERT INTO polis.documents (name, body) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET body = excluded.body";

pub(crate) const MOVE_TEXTS: &str = "
    INSERT INTO polis.memory_texts (id, text, model, vector)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[])";

/// A statement for tables in another schema than `polis`.
pub(crate) fn in_schema<'sql>(sql: &'sql str, schema: &str) -> Cow<'sql, str> {
    if schema == "polis" { Cow::Borrowed(sql) } else { Cow::Owned(sql.replace("polis.", &format!("{schema}."))) }
}
