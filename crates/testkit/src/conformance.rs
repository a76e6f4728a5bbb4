//! What every [`Log`] must do, whatever it is made of.

use std::sync::Arc;

use futures_util::future::join_all;
use polis_domain::{
    ConversationPlace, EffectId, Event, IdleKey, Message, MessageId, Phase, Recorded, Sender, Seq, SocietyId, ThreadId,
    Timestamp, TurnId,
};
use polis_ports::{
    Fork, ForkOrigin, IdleList, IdleListed, IdleListing, Log, LogError, NewSnapshot, Snapshot, SocietyListing, StoredEntry,
    StoredSociety, ThreadListing, ThreadRange,
};

/// Runs every case, each on a fresh log that `make` gives; panics where the log breaks the contract.
pub async fn check(make: impl Fn() -> Arc<dyn Log>) {
    an_empty_log_has_nothing(&*make()).await;
    what_was_appended_is_read_back(&*make()).await;
    a_stale_owner_is_refused(&*make()).await;
    of_two_that_race_one_wins(make()).await;
    appends_under_way_together_are_written_in_their_order(&*make()).await;
    events_that_do_not_follow_are_refused(&*make()).await;
    a_batch_is_appended_whole_or_not_at_all(&*make()).await;
    a_read_keeps_its_limits(&*make()).await;
    a_thread_is_read_alone(&*make()).await;
    threads_are_listed_from_the_newest_on(&*make()).await;
    societies_do_not_mix(&*make()).await;
    the_newest_snapshot_is_kept(&*make()).await;
    idle_entries_stay_until_a_snapshot_begins_anew(&*make()).await;
    many_write_at_once(make()).await;
    a_place_is_whole_where_an_append_ended(&*make()).await;
    a_fork_shares_the_past_and_nothing_else(&*make()).await;
    a_fork_of_a_fork_has_the_past_of_both(&*make()).await;
    a_name_is_given_away_and_what_had_it_is_kept(&*make()).await;
    a_fork_that_cannot_be_changes_nothing(&*make()).await;
    what_is_redacted_is_so_for_all_that_share_it(&*make()).await;
}

/// An event for tests: a message in a thread, or none that belongs to a thread.
pub fn event(seq: u64, thread: Option<&str>, text: &str) -> Arc<Recorded> {
    let at = Timestamp(seq.saturating_add(1_700_000_000_000));
    let event = match thread {
        None => Event::PhaseApplied { phase: Phase::default() },
        Some(_) => Event::MessageAdded {
            by: EffectId { turn: TurnId(Seq(seq)), n: 0 },
            index: u32::try_from(seq).unwrap_or(u32::MAX),
            message: Arc::new(Message {
                id: MessageId::from(format!("message-{seq}")),
                sender: Sender::User,
                text: text.to_owned(),
                timestamp: at,
                meta: serde_json::Map::new().into(),
            }),
        },
    };
    Arc::new(Recorded { seq: Seq(seq), at, thread: thread.map(ThreadId::from), event })
}

async fn an_empty_log_has_nothing(log: &dyn Log) {
    let nobody = SocietyId::from("nobody");
    assert_eq!(log.societies().await.expect("societies"), []);
    assert_eq!(head(log, &nobody).await, 0);
    assert_eq!(log.read(&nobody, Seq(0), 10).await.expect("read"), []);
    assert_eq!(thread(log, &nobody, "root", ThreadRange::ALL).await, []);
    assert_eq!(log.load_snapshot(&nobody).await.expect("snapshot"), None);
    append(log, &nobody, 0, &[]).await.expect("nothing can be appended at the right place");
    assert_conflict(append(log, &nobody, 3, &[]).await, 3, 0);
    assert_conflict(append(log, &nobody, 3, &[event(4, None, "")]).await, 3, 0);
    assert_eq!(log.societies().await.expect("societies"), []);
}

async fn what_was_appended_is_read_back(log: &dyn Log) {
    let main = SocietyId::from("main");
    let texts = ["", "plain", "with \"quotes\" and \\ and \u{0} and 漢字 and 🦀", &"long ".repeat(20_000)];
    let mut written: Vec<Arc<Recorded>> = Vec::new();
    for text in texts {
        let seq = written.len() as u64;
        let batch = [event(seq + 1, Some("root"), text), event(seq + 2, None, text), event(seq + 3, Some("ünit-1"), text)];
        append(log, &main, seq, &batch).await.expect("append");
        written.extend(batch);
        assert_eq!(head(log, &main).await, seq + 3);
    }
    let late =
        Recorded { seq: Seq(13), at: Timestamp(u64::MAX), thread: Some(ThreadId::from("")), event: Event::SuggestionDropped };
    written.push(Arc::new(late));
    append(log, &main, 12, &written[12..]).await.expect("append");
    assert_eq!(all(log, &main).await, owned(&written));
}

async fn a_stale_owner_is_refused(log: &dyn Log) {
    let main = SocietyId::from("main");
    append(log, &main, 0, &[event(1, Some("root"), "mine"), event(2, Some("root"), "mine")]).await.expect("append");
    for (expected, next) in [(0, 1), (1, 2), (3, 4), (u64::MAX - 1, u64::MAX)] {
        let result = append(log, &main, expected, &[event(next, Some("root"), "stale")]).await;
        assert!(matches!(result, Err(LogError::Conflict { .. } | LogError::Failed(_))), "{expected}: {result:?}");
        if expected < 4 {
            assert_conflict(result, expected, 2);
        }
    }
    append(log, &main, 2, &[event(3, Some("root"), "mine")]).await.expect("the owner goes on");
    let texts = [event(1, Some("root"), "mine"), event(2, Some("root"), "mine"), event(3, Some("root"), "mine")];
    assert_eq!(all(log, &main).await, owned(&texts));
}

async fn of_two_that_race_one_wins(log: Arc<dyn Log>) {
    let main = SocietyId::from("main");
    for place in 0..20 {
        let racers: Vec<_> = (0..4)
            .map(|racer| {
                let (log, main) = (log.clone(), main.clone());
                tokio::spawn(async move {
                    append(&*log, &main, place, &[event(place + 1, Some("root"), &format!("racer {racer}"))]).await
                })
            })
            .collect();
        let mut winners = Vec::new();
        for (racer, result) in racers.into_iter().enumerate() {
            match result.await.expect("no racer panics") {
                Ok(()) => winners.push(racer),
                refused => assert_conflict(refused, place, place + 1),
            }
        }
        assert_eq!(winners.len(), 1, "at {place}");
        let winner = event(place + 1, Some("root"), &format!("racer {}", winners[0]));
        assert_eq!(log.read(&main, Seq(place), 10).await.expect("read"), owned(&[winner]));
    }
}

async fn appends_under_way_together_are_written_in_their_order(log: &dyn Log) {
    let main = SocietyId::from("main");
    // Large ones between small ones, so that a log which queues by size cannot let one overtake another.
    let text = |n: u64| if n % 5 == 2 { "long ".repeat(200_000) } else { n.to_string() };
    let events: Vec<_> = (1..=20).map(|n| event(n, Some("root"), &text(n))).collect();
    let appends = (0_u64..).zip(&events).map(|(expected, event)| append(log, &main, expected, std::slice::from_ref(event)));
    for written in join_all(appends).await {
        written.expect("append");
    }
    assert_eq!(all(log, &main).await, owned(&events));
    // Behind one that is refused, all are.
    let stale: Vec<_> = (22..=25).map(|n| event(n, Some("root"), "stale")).collect();
    let appends = (21_u64..).zip(&stale).map(|(expected, event)| append(log, &main, expected, std::slice::from_ref(event)));
    for (expected, refused) in (21..).zip(join_all(appends).await) {
        assert_conflict(refused, expected, 20);
    }
    assert_eq!(head(log, &main).await, 20);
}

async fn events_that_do_not_follow_are_refused(log: &dyn Log) {
    let main = SocietyId::from("main");
    append(log, &main, 0, &[event(1, None, "")]).await.expect("append");
    for places in [vec![3], vec![1], vec![0], vec![2, 4], vec![2, 2], vec![3, 2]] {
        let batch: Vec<_> = places.iter().map(|seq| event(*seq, Some("root"), "")).collect();
        let result = append(log, &main, 1, &batch).await;
        assert!(matches!(result, Err(LogError::Failed(_))), "{places:?}: {result:?}");
        assert_eq!(head(log, &main).await, 1, "{places:?}");
        assert_eq!(thread(log, &main, "root", ThreadRange::ALL).await, []);
    }
}

async fn a_batch_is_appended_whole_or_not_at_all(log: &dyn Log) {
    let main = SocietyId::from("main");
    let batch: Vec<_> = (1..=1_000).map(|seq| event(seq, Some("root"), "one of many")).collect();
    assert_conflict(append(log, &main, 7, &batch_after(7)).await, 7, 0);
    assert_eq!(all(log, &main).await, []);
    append(log, &main, 0, &batch).await.expect("append");
    assert_conflict(append(log, &main, 999, &batch_after(999)).await, 999, 1_000);
    assert_eq!(all(log, &main).await, owned(&batch));
}

async fn a_read_keeps_its_limits(log: &dyn Log) {
    let main = SocietyId::from("main");
    let written: Vec<_> = (1..=10).map(|seq| event(seq, (seq % 2 == 0).then_some("even"), "text")).collect();
    append(log, &main, 0, &written).await.expect("append");
    for (after, limit, expected) in [
        (0, 0, &written[..0]),
        (0, 3, &written[..3]),
        (7, 2, &written[7..9]),
        (7, 99, &written[7..]),
        (9, usize::MAX, &written[9..]),
        (10, 5, &[]),
        (99, 5, &[]),
        (u64::MAX, usize::MAX, &[]),
    ] {
        let read = log.read(&main, Seq(after), limit).await.expect("read");
        assert_eq!(read, owned(expected), "{limit} after {after}");
    }
}

async fn a_thread_is_read_alone(log: &dyn Log) {
    let main = SocietyId::from("main");
    let name = |seq| if seq % 3 == 0 { None } else { Some(if seq % 3 == 1 { "a" } else { "a/b" }) };
    let written: Vec<_> = (1..=30).map(|seq| event(seq, name(seq), "text")).collect();
    append(log, &main, 0, &written).await.expect("append");
    let range = |after, through, newest| ThreadRange { after: Seq(after), through: Seq(through), newest, ..ThreadRange::ALL };
    for range in [
        ThreadRange::ALL,
        ThreadRange::through(Seq(12)),
        ThreadRange::through(Seq(0)),
        range(0, u64::MAX, 0),
        range(0, u64::MAX, 3),
        range(7, 20, usize::MAX),
        range(7, 20, 2),
        range(10, 10, 5),
        range(20, 10, 5),
        range(28, u64::MAX, 5),
        range(u64::MAX, u64::MAX, 5),
        ThreadRange { oldest: 0, ..ThreadRange::ALL },
        ThreadRange { oldest: 3, ..ThreadRange::ALL },
        ThreadRange { oldest: 3, ..range(7, 20, usize::MAX) },
        ThreadRange { oldest: 3, ..range(7, 20, 2) },
        ThreadRange { oldest: 30, ..range(7, 20, 2) },
    ] {
        for wanted in ["a", "a/b"] {
            let mut expected: Vec<_> = written
                .iter()
                .filter(|recorded| recorded.thread.as_ref().is_some_and(|thread| thread.as_str() == wanted))
                .filter(|recorded| recorded.seq > range.after && recorded.seq <= range.through)
                .cloned()
                .collect();
            expected.truncate(range.oldest);
            expected.drain(..expected.len().saturating_sub(range.newest));
            assert_eq!(thread(log, &main, wanted, range).await, owned(&expected), "{wanted}: {range:?}");
        }
    }
    for unknown in ["", "A", "a/", "b", "nothing"] {
        assert_eq!(thread(log, &main, unknown, ThreadRange::ALL).await, [], "{unknown}");
    }
}

async fn threads_are_listed_from_the_newest_on(log: &dyn Log) {
    let (main, other) = (SocietyId::from("main"), SocietyId::from("other"));
    let named = ["task:b", "root", "task:a", "task:b", "unit", "task:c", "root", "task:a"];
    let events: Vec<_> = (1..).zip(named).map(|(seq, thread)| event(seq, Some(thread), "")).collect();
    for one in &events {
        append(log, &main, one.seq.0 - 1, std::slice::from_ref(one)).await.expect("append");
    }
    append(log, &other, 0, &[event(1, Some("task:z"), ""), event(2, Some("tasks"), "")]).await.expect("append");
    let list = async |society: &str, prefix: &str, before: Option<&str>, limit| {
        let listing = ThreadListing { prefix: prefix.to_owned(), before: before.map(ThreadId::from), limit };
        let found = log.threads(&SocietyId::from(society), &listing).await.expect("threads");
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list("main", "task:", None, 9).await, "task:c task:a task:b");
    assert_eq!(list("main", "task:", None, 2).await, "task:c task:a");
    assert_eq!(list("main", "task:", Some("task:a"), 9).await, "task:b");
    assert_eq!(list("main", "task:", Some("task:b"), 9).await, "");
    assert_eq!(list("main", "task:", Some("task:unknown"), 9).await, "");
    assert_eq!(list("main", "", Some("unit"), 9).await, "task:a root task:b");
    assert_eq!(list("other", "task", None, 9).await, "tasks task:z");
    assert_eq!(list("nobody", "", None, 9).await, "");
    // The fork goes on in a thread of its past and has one of its own; what its parent does later is not of it.
    let forked = SocietyId::from("fork");
    log.fork(&fork(&main, 5, &forked, None, &event(6, None, ""))).await.expect("fork");
    append(log, &forked, 6, &[event(7, Some("task:a"), ""), event(8, Some("task:d"), "")]).await.expect("append");
    assert_eq!(list("fork", "task:", None, 9).await, "task:d task:a task:b");
    assert_eq!(list("fork", "task:", Some("task:d"), 1).await, "task:a");
    assert_eq!(list("fork", "task:", Some("task:a"), 9).await, "task:b");
    assert_eq!(list("main", "task:", None, 1).await, "task:c");
}

async fn societies_do_not_mix(log: &dyn Log) {
    let names = ["main", "Main", "main ", "", "社会", "a/b", "a%00b"];
    for (n, name) in names.iter().enumerate() {
        let society = SocietyId::from(*name);
        for seq in 0..=n as u64 {
            append(log, &society, seq, &[event(seq + 1, Some("root"), name)]).await.expect("append");
        }
    }
    for (n, name) in names.iter().enumerate() {
        let society = SocietyId::from(*name);
        let expected: Vec<_> = (1..=n as u64 + 1).map(|seq| event(seq, Some("root"), name)).collect();
        assert_eq!(head(log, &society).await, n as u64 + 1);
        assert_eq!(all(log, &society).await, owned(&expected), "{name:?}");
        assert_eq!(thread(log, &society, "root", ThreadRange::ALL).await, owned(&expected), "{name:?}");
    }
    let mut sorted: Vec<_> = names.into_iter().map(SocietyId::from).collect();
    sorted.sort();
    assert_eq!(log.societies().await.expect("societies"), sorted);
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = log.list_societies(&SocietyListing { after, limit: 3 }).await.expect("societies");
        assert!(page.len() <= 3);
        listed.extend(page.iter().map(|society| (society.name.clone(), society.head.0)));
        match page.last() {
            Some(last) => after = Some(last.name.clone()),
            None => break,
        }
    }
    let heads =
        sorted.iter().map(|name| names.iter().position(|it| *it == name.as_str()).expect("it is one of them") as u64 + 1);
    assert_eq!(listed, sorted.iter().cloned().zip(heads).collect::<Vec<_>>());
}

async fn the_newest_snapshot_is_kept(log: &dyn Log) {
    let (main, other) = (SocietyId::from("main"), SocietyId::from("other"));
    let batch: Vec<_> = (1..=9).map(|seq| event(seq, None, "")).collect();
    append(log, &main, 0, &batch).await.expect("append");
    let load = async |society: &SocietyId| log.load_snapshot(society).await.expect("load");
    let first = Snapshot { seq: Seq(3), version: 1, body: b"first".to_vec() };
    let second = Snapshot { seq: Seq(7), version: 2, body: vec![0; 300_000] };
    let again = Snapshot { seq: Seq(7), version: 3, body: Vec::new() };
    for snapshot in [&first, &second, &again] {
        log.save_snapshot(&main, new_snapshot(snapshot, None, &[])).await.expect("save");
        assert_eq!(load(&main).await.as_ref(), Some(snapshot));
    }
    log.save_snapshot(&main, new_snapshot(&first, None, &[])).await.expect("save");
    assert_eq!(load(&main).await, Some(again), "an older one does not replace a newer one");
    assert_eq!(load(&other).await, None);
    assert_eq!(log.societies().await.expect("societies"), [main]);
}

fn new_snapshot(snapshot: &Snapshot, after: Option<u64>, entries: &[StoredEntry]) -> NewSnapshot {
    let (body, entries) = (snapshot.body.clone(), entries.to_vec());
    let write = Box::new(move || (body, entries));
    NewSnapshot { seq: snapshot.seq, version: snapshot.version, after: after.map(Seq), write }
}

fn entry(name: &str, body: &str) -> StoredEntry {
    StoredEntry { name: name.into(), message: None, person: None, list: None, body: body.as_bytes().to_vec() }
}

fn sub_thread(name: &str, parent: &str, index: u32) -> StoredEntry {
    StoredEntry { message: Some((parent.into(), index)), ..entry(name, "a head") }
}

fn conversation(name: &str, person: &str, pinned: bool, active: u64) -> StoredEntry {
    let place = ConversationPlace { pinned, active: Seq(active) };
    let list = Some(IdleList::Conversation(place));
    StoredEntry { person: Some(person.into()), list, ..entry(name, "a conversation") }
}

async fn idle_entries_stay_until_a_snapshot_begins_anew(log: &dyn Log) {
    let (main, other) = (SocietyId::from("main"), SocietyId::from("other"));
    let batch: Vec<_> = (1..=9).map(|seq| event(seq, None, "")).collect();
    append(log, &main, 0, &batch).await.expect("append");
    append(log, &other, 0, &batch).await.expect("append");
    let at = |seq| Snapshot { seq: Seq(seq), version: 1, body: format!("state {seq}").into_bytes() };
    let name = |name: &str| IdleKey::Name(name.into());
    let find = async |at: u64, keys: &[IdleKey]| {
        let mut found = log.idle_entries(&main, Seq(at), keys).await.expect("entries");
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    };
    assert!(log.idle_entries(&main, Seq(2), &[name("a")]).await.is_err(), "there is no snapshot");
    let first =
        [entry("a", "one"), entry("b", "two"), sub_thread("c", "a", 3), sub_thread("d", "a", 3), sub_thread("e", "a", 4)];
    log.save_snapshot(&main, new_snapshot(&at(2), None, &first)).await.expect("save");
    log.save_snapshot(&other, new_snapshot(&at(2), None, &[entry("a", "another's")])).await.expect("save");
    assert_eq!(find(2, &[name("a"), name("x"), name("e")]).await, [first[0].clone(), first[4].clone()]);
    assert_eq!(find(2, &[IdleKey::Message("a".into(), 3)]).await, first[2..4]);
    assert!(find(2, &[IdleKey::Message("a".into(), 9), IdleKey::Message("b".into(), 3)]).await.is_empty());

    let second = [entry("b", "new"), conversation("k", "ann", false, 8)];
    log.save_snapshot(&main, new_snapshot(&at(5), Some(2), &second)).await.expect("save");
    assert_eq!(find(5, &[name("a"), name("b")]).await, [first[0].clone(), second[0].clone()], "what is new replaces what was");
    assert_eq!(find(2, &[name("b")]).await, second[..1], "an older position finds what is newest");
    assert!(log.idle_entries(&main, Seq(6), &[name("a")]).await.is_err(), "that snapshot is not there");
    let torn = log.save_snapshot(&main, new_snapshot(&at(8), Some(4), &[entry("a", "lost")])).await;
    assert!(torn.is_err(), "a snapshot goes on only from the one that is there");
    assert_eq!(log.load_snapshot(&main).await.expect("load"), Some(at(5)));

    let list = async |person: Option<&str>, after: ConversationPlace, limit| {
        let listing = IdleListing { person: person.map(Into::into), of: IdleListed::Conversations(after), limit };
        let listed = log.list_idle(&main, &listing).await.expect("list");
        listed.into_iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
    };
    let third = [
        conversation("l", "bob", false, 3),
        conversation("m", "ann", true, 1),
        conversation("n", "ann", false, 6),
        StoredEntry { list: Some(IdleList::Terminated), ..entry("t", "gone") },
    ];
    log.save_snapshot(&main, new_snapshot(&at(7), Some(5), &third)).await.expect("save");
    assert_eq!(list(None, ConversationPlace::START, 9).await, ["m", "k", "n", "l"]);
    assert_eq!(list(Some("ann"), ConversationPlace::START, 2).await, ["m", "k"]);
    assert_eq!(list(Some("ann"), ConversationPlace { pinned: false, active: Seq(8) }, 9).await, ["n"]);
    let all = async |person: Option<&str>, of: IdleListed, limit| {
        let listing = IdleListing { person: person.map(Into::into), of, limit };
        let listed = log.list_idle(&main, &listing).await.expect("list");
        listed.into_iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(all(None, IdleListed::Terminated("".into()), 9).await, ["t"]);
    assert!(all(None, IdleListed::Terminated("t".into()), 9).await.is_empty());
    assert_eq!(all(None, IdleListed::All("d".into()), 3).await, ["e", "k", "l"]);
    assert_eq!(all(Some("ann"), IdleListed::All("".into()), usize::MAX).await, ["k", "m", "n"]);

    log.save_snapshot(&main, new_snapshot(&at(9), None, &[entry("z", "anew")])).await.expect("save");
    assert_eq!(find(9, &[name("a"), name("b"), name("k"), name("z")]).await, [entry("z", "anew")]);
    assert!(list(None, ConversationPlace::START, 9).await.is_empty());
    let theirs = log.idle_entries(&other, Seq(2), &[name("a")]).await.expect("entries");
    assert_eq!(theirs, [entry("a", "another's")], "societies share nothing");
}

async fn many_write_at_once(log: Arc<dyn Log>) {
    let writers: Vec<_> = (0..32)
        .map(|n| {
            let log = log.clone();
            tokio::spawn(async move {
                let society = SocietyId::from(format!("society-{n}"));
                for seq in 0..20 {
                    let thread = format!("thread-{}", seq % 3);
                    append(&*log, &society, seq, &[event(seq + 1, Some(&thread), &format!("{n}"))]).await.expect("append");
                    assert_eq!(head(&*log, &society).await, seq + 1, "an acknowledged event is read at once");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no writer panics");
    }
    for n in 0..32 {
        let society = SocietyId::from(format!("society-{n}"));
        let expected: Vec<_> =
            (0..20).map(|seq| event(seq + 1, Some(&format!("thread-{}", seq % 3)), &format!("{n}"))).collect();
        assert_eq!(all(&*log, &society).await, owned(&expected));
    }
}

async fn a_place_is_whole_where_an_append_ended(log: &dyn Log) {
    let (main, nobody) = (SocietyId::from("main"), SocietyId::from("nobody"));
    for (from, to) in [(1, 3), (4, 4), (5, 9)] {
        let batch: Vec<_> = (from..=to).map(|seq| event(seq, Some("root"), "text")).collect();
        append(log, &main, from - 1, &batch).await.expect("append");
    }
    append(log, &main, 9, &[]).await.expect("append");
    for (through, expected) in [(0, 0), (1, 0), (2, 0), (3, 3), (4, 4), (5, 4), (8, 4), (9, 9), (10, 9), (u64::MAX, 9)] {
        assert_eq!(log.whole(&main, Seq(through)).await.expect("whole"), Seq(expected), "through {through}");
    }
    assert_eq!(log.whole(&nobody, Seq(5)).await.expect("whole"), Seq(0));
}

async fn a_fork_shares_the_past_and_nothing_else(log: &dyn Log) {
    let (main, other) = (SocietyId::from("main"), SocietyId::from("other"));
    let name = |seq| if seq % 3 == 0 { None } else { Some(if seq % 3 == 1 { "a" } else { "b" }) };
    let mut ours: Vec<_> = (1..=10).map(|seq| event(seq, name(seq), "shared")).collect();
    for one in &ours {
        append(log, &main, one.seq.0 - 1, std::slice::from_ref(one)).await.expect("append");
    }
    let ten = Snapshot { seq: Seq(10), version: 1, body: b"ten".to_vec() };
    log.save_snapshot(&main, new_snapshot(&ten, None, &[])).await.expect("save");
    let mut theirs = ours[..7].to_vec();
    theirs.push(event(8, name(8), "theirs"));
    log.fork(&fork(&main, 7, &other, None, &theirs[7])).await.expect("fork");
    assert_eq!(log.load_snapshot(&other).await.expect("load"), None, "a later state is none of the fork");
    for seq in 9..=14 {
        theirs.push(event(seq, name(seq), "theirs"));
        append(log, &other, seq - 1, &theirs[theirs.len() - 1..]).await.expect("the fork goes on");
        ours.push(event(seq + 2, name(seq + 2), "ours"));
        append(log, &main, seq + 1, &ours[ours.len() - 1..]).await.expect("so does the other");
    }
    for (society, events) in [(&main, &ours), (&other, &theirs)] {
        assert_eq!(head(log, society).await, events.len() as u64);
        assert_same(log, society, events).await;
    }
    assert_conflict(append(log, &other, 7, &[event(8, None, "stale")]).await, 7, 14);
    assert_eq!(log.whole(&other, Seq(12)).await.expect("whole"), Seq(12));
    assert_eq!(log.whole(&other, Seq(5)).await.expect("whole"), Seq(5));
    assert_eq!(log.societies().await.expect("societies"), [main, other]);
}

async fn a_fork_of_a_fork_has_the_past_of_both(log: &dyn Log) {
    let names: Vec<_> = ["main", "b", "c", "d", "e"].into_iter().map(SocietyId::from).collect();
    let mut logs = vec![(1..=10).map(|seq| event(seq, Some("root"), "main")).collect::<Vec<_>>()];
    for one in &logs[0] {
        append(log, &names[0], one.seq.0 - 1, std::slice::from_ref(one)).await.expect("append");
    }
    // From within a fork's own part, at its beginning, and from before it began.
    for (n, (from, at)) in [(1, (0, 5)), (2, (1, 8)), (3, (2, 6)), (4, (2, 3))] {
        let mut events = logs[from][..at].to_vec();
        let text = names[n].to_string();
        events.extend((at as u64 + 1..=at as u64 + 5).map(|seq| event(seq, Some("root"), &text)));
        log.fork(&fork(&names[from], at as u64, &names[n], None, &events[at])).await.expect("fork");
        for one in &events[at + 1..] {
            append(log, &names[n], one.seq.0 - 1, std::slice::from_ref(one)).await.expect("append");
        }
        logs.push(events);
    }
    for (society, events) in names.iter().zip(&logs) {
        assert_same(log, society, events).await;
    }
    for (n, origin) in [None, Some((0, 5)), Some((1, 8)), Some((1, 6)), Some((0, 3))].into_iter().enumerate() {
        let origin = origin.map(|(from, at)| ForkOrigin { from: names[from].clone(), at: Seq(at) });
        assert_eq!(log.origin(&names[n]).await.expect("origin"), origin, "{}", names[n]);
    }
    let listed = log.list_societies(&SocietyListing { after: None, limit: usize::MAX }).await.expect("societies");
    assert_eq!(listed.len(), names.len());
    for StoredSociety { name, head, origin } in listed {
        assert_eq!((head, origin), (log.head(&name).await.expect("head"), log.origin(&name).await.expect("origin")), "{name}");
    }
}

async fn a_name_is_given_away_and_what_had_it_is_kept(log: &dyn Log) {
    let (main, old, older) = (SocietyId::from("main"), SocietyId::from("main-2"), SocietyId::from("main-1"));
    let mut first: Vec<_> = (1..=6).map(|seq| event(seq, Some("root"), "first")).collect();
    for one in &first {
        append(log, &main, one.seq.0 - 1, std::slice::from_ref(one)).await.expect("append");
    }
    assert_same(log, &main, &first).await;
    let six = Snapshot { seq: Seq(6), version: 1, body: b"six".to_vec() };
    log.save_snapshot(&main, new_snapshot(&six, None, &[])).await.expect("save");
    let second = [&first[..4], &[event(5, Some("root"), "second")]].concat();
    log.fork(&fork(&main, 4, &main, Some(&older), &second[4])).await.expect("fork");
    assert_eq!(log.load_snapshot(&main).await.expect("load"), None, "a snapshot does not change hands");
    assert_same(log, &main, &second).await;
    assert_same(log, &older, &first).await;
    // Both go on, and the name changes hands again.
    first.push(event(7, Some("root"), "first"));
    append(log, &older, 6, &first[6..]).await.expect("what was kept goes on");
    let third = [&second[..5], &[event(6, Some("other"), "third")]].concat();
    log.fork(&fork(&main, 5, &main, Some(&old), &third[5])).await.expect("fork");
    for (society, events) in [(&main, &third), (&old, &second), (&older, &first.clone())] {
        assert_same(log, society, events).await;
    }
    assert_eq!(log.origin(&main).await.expect("origin"), Some(ForkOrigin { from: old.clone(), at: Seq(5) }));
    assert_eq!(log.origin(&old).await.expect("origin"), Some(ForkOrigin { from: older.clone(), at: Seq(4) }));
    assert_eq!(log.origin(&older).await.expect("origin"), None);
    assert_eq!(log.societies().await.expect("societies"), [main, older, old]);
}

async fn a_fork_that_cannot_be_changes_nothing(log: &dyn Log) {
    let (main, other, free) = (SocietyId::from("main"), SocietyId::from("other"), SocietyId::from("free"));
    let batch: Vec<_> = (1..=3).map(|seq| event(seq, Some("root"), "text")).collect();
    append(log, &main, 0, &batch).await.expect("append");
    append(log, &other, 0, &batch).await.expect("append");
    let next = event(4, None, "");
    assert_conflict(log.fork(&fork(&main, 3, &other, None, &next)).await, 0, 3);
    assert_conflict(log.fork(&fork(&main, 3, &main, Some(&other), &next)).await, 0, 3);
    for bad in [
        fork(&main, 2, &free, None, &event(3, None, "")),
        fork(&main, 9, &free, None, &event(10, None, "")),
        fork(&main, 3, &free, None, &event(5, None, "")),
        fork(&free, 3, &SocietyId::from("new"), None, &next),
    ] {
        let result = log.fork(&bad).await;
        assert!(matches!(result, Err(LogError::Failed(_))), "{bad:?}: {result:?}");
    }
    assert_eq!(log.societies().await.expect("societies"), [main.clone(), other.clone()]);
    append(log, &free, 0, &batch).await.expect("the name is free");
    for society in [&main, &other, &free] {
        assert_same(log, society, &batch).await;
    }
}

async fn what_is_redacted_is_so_for_all_that_share_it(log: &dyn Log) {
    let (main, other, stranger) = (SocietyId::from("main"), SocietyId::from("other"), SocietyId::from("stranger"));
    let mut ours: Vec<_> = (1..=6).map(|seq| event(seq, Some("root"), "secret")).collect();
    append(log, &main, 0, &ours[..4]).await.expect("append");
    append(log, &main, 4, &ours[4..]).await.expect("append");
    let own: Vec<_> = (1..=2).map(|seq| event(seq, Some("root"), "secret")).collect();
    append(log, &stranger, 0, &own).await.expect("append");
    let mut theirs = ours[..4].to_vec();
    theirs.push(event(5, Some("root"), "theirs"));
    log.fork(&fork(&main, 4, &other, None, &theirs[4])).await.expect("fork");
    for society in [&main, &other, &stranger] {
        let seq = Seq(head(log, society).await.min(4));
        let snapshot = Snapshot { seq, version: 1, body: b"secret".to_vec() };
        log.save_snapshot(society, new_snapshot(&snapshot, None, &[entry("a", "secret")])).await.expect("save");
    }
    // The last event stays, and so does everything if one of them cannot be redacted.
    for wrong in [6, 7] {
        let redactions = owned(&[event(2, Some("root"), ""), event(wrong, Some("root"), "")]);
        log.redact(&main, &redactions).await.expect_err("all or none");
    }
    assert_same(log, &main, &ours).await;
    for _ in 0..2 {
        log.redact(&main, &owned(&[event(2, Some("root"), ""), event(5, Some("root"), "")])).await.expect("redact");
        ours[1] = event(2, Some("root"), "");
        ours[4] = event(5, Some("root"), "");
        theirs[1] = ours[1].clone();
        assert_same(log, &main, &ours).await;
        assert_same(log, &other, &theirs).await;
        assert_eq!(log.whole(&main, Seq(5)).await.expect("whole"), Seq(4), "an append ended where it did before");
    }
    // A fork sees what it redacts gone in the other as well.
    log.redact(&other, &owned(&[event(1, Some("root"), "")])).await.expect("redact");
    (ours[0], theirs[0]) = (event(1, Some("root"), ""), event(1, Some("root"), ""));
    log.forget_redacted(&main).await.expect("forget");
    assert_eq!(log.load_snapshot(&other).await.expect("load"), None, "it may have what was redacted");
    assert_eq!(log.load_snapshot(&stranger).await.expect("load").map(|found| found.seq), Some(Seq(2)));
    append(log, &main, 6, &[event(7, Some("root"), "next")]).await.expect("the log goes on");
    ours.push(event(7, Some("root"), "next"));
    for (society, events) in [(&main, &ours), (&other, &theirs)] {
        assert_same(log, society, events).await;
    }
    log.redact(&SocietyId::from("nobody"), &owned(&[event(1, Some("root"), "")])).await.expect_err("there is none");
}

fn fork(from: &SocietyId, at: u64, to: &SocietyId, aside: Option<&SocietyId>, first: &Arc<Recorded>) -> Fork {
    Fork { from: from.clone(), at: Seq(at), to: to.clone(), aside: aside.cloned(), first: first.clone() }
}

/// The society has these events, however they are read.
async fn assert_same(log: &dyn Log, society: &SocietyId, events: &[Arc<Recorded>]) {
    assert_eq!(all(log, society).await, owned(events), "{society}");
    let end = events.len() as u64;
    assert_eq!(head(log, society).await, end, "{society}");
    for after in 0..=end {
        for limit in [1, 3, usize::MAX] {
            let expected: Vec<_> = events.iter().skip(after as usize).take(limit).cloned().collect();
            assert_eq!(log.read(society, Seq(after), limit).await.expect("read"), owned(&expected), "{society} after {after}");
        }
        for name in ["root", "a", "b", "other"] {
            for (oldest, newest) in [(usize::MAX, 1), (usize::MAX, 2), (usize::MAX, usize::MAX), (1, usize::MAX), (3, 2)] {
                let range = ThreadRange { after: Seq(after / 2), through: Seq(after), oldest, newest };
                let is_meant = |one: &&Arc<Recorded>| one.thread.as_ref().is_some_and(|thread| thread.as_str() == name);
                let within = |one: &&Arc<Recorded>| one.seq > range.after && one.seq <= range.through;
                let mut expected: Vec<_> = events.iter().filter(is_meant).filter(within).cloned().collect();
                expected.truncate(oldest);
                expected.drain(..expected.len().saturating_sub(newest));
                assert_eq!(thread(log, society, name, range).await, owned(&expected), "{society} {name}: {range:?}");
            }
        }
    }
}

fn batch_after(seq: u64) -> Vec<Arc<Recorded>> {
    (1..=5).map(|n| event(seq + n, Some("root"), "stale")).collect()
}

async fn append(log: &dyn Log, society: &SocietyId, expected: u64, events: &[Arc<Recorded>]) -> Result<(), LogError> {
    log.append(society, Seq(expected), events).await
}

async fn head(log: &dyn Log, society: &SocietyId) -> u64 {
    log.head(society).await.expect("head").0
}

async fn all(log: &dyn Log, society: &SocietyId) -> Vec<Recorded> {
    log.read(society, Seq(0), usize::MAX).await.expect("read")
}

async fn thread(log: &dyn Log, society: &SocietyId, thread: &str, range: ThreadRange) -> Vec<Recorded> {
    log.read_thread(society, &ThreadId::from(thread), range).await.expect("read_thread")
}

fn owned(events: &[Arc<Recorded>]) -> Vec<Recorded> {
    events.iter().map(|recorded| Recorded::clone(recorded)).collect()
}

#[track_caller]
fn assert_conflict(result: Result<(), LogError>, stale: u64, end: u64) {
    match result {
        Err(LogError::Conflict { expected, actual, .. }) => assert_eq!((expected.0, actual.0), (stale, end)),
        other => panic!("expected a conflict, got {other:?}"),
    }
}
