//! Three nodes under load and faults that a seed draws, and a check of the whole history. See CONTRIBUTING.md for long runs.

mod clients;
mod faults;
mod rig;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polis_domain::Recorded;
use polis_testkit::history::{Command, History, Observations, Summary};
use polis_testkit::link::Passage;
use serde_json::json;

use self::clients::{Target, ask};
use self::faults::{Fault, NAMES, Schedule};
use self::rig::{LONG, Over, Rig, Settings, until};

/// The societies of a run. Nodes share them out.
const SOCIETIES: [&str; 2] = ["main", "team"];

/// Writers of each society; the last one writes in the conversation of the first.
const WRITERS: usize = 3;

const WATCHERS: usize = 2;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// What a run came to.
struct Outcome {
    summaries: Vec<(&'static str, Summary)>,
    /// How long societies had no owner that wrote, from the fault that cost them theirs.
    takeovers: Vec<Duration>,
    faults: usize,
}

/// How long a run is, and what happens in it.
struct Plan {
    seed: u64,
    names: Vec<&'static str>,
    lease: Duration,
    /// From the beginning of one fault to the next.
    period: Duration,
    is_over: Box<dyn Fn(usize, Duration) -> bool>,
}

fn run(test: &str, plan: &Plan) -> Option<Outcome> {
    let rig = Rig::start(test, Settings { lease: plan.lease, model: clients::model() })?;
    let targets: Vec<Target> = SOCIETIES.iter().map(|name| Target::new(name)).collect();
    for target in targets.iter().filter(|target| target.society != "main") {
        let body = json!({ "name": target.society }).to_string();
        until("a society is not made", || {
            let made = rig.address(0).and_then(|address| ask(&address, "POST", "/api/societies", None, &body));
            made.is_some_and(|(status, _)| matches!(status, 200 | 409))
        });
    }
    let names: Vec<&str> = plan.names.iter().copied().filter(|name| possible(&rig, name)).collect();
    let mut schedule = Schedule::new(plan.seed, &names, plan.lease);
    let (is_over, is_settled) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut begun = Vec::new();
    let mut ended_by_themselves = Vec::new();
    let mut histories: Vec<History> = targets.iter().map(|_| History::default()).collect();
    let strange: Vec<String> = std::thread::scope(|scope| {
        let (rig, is_over, is_settled) = (&rig, &is_over, &is_settled);
        let _over = [Over(is_over), Over(is_settled)];
        let writers: Vec<Vec<_>> = targets
            .iter()
            .map(|target| {
                (0..WRITERS).map(|n| scope.spawn(move || clients::write_until_over(rig, target, n, is_over))).collect()
            })
            .collect();
        let watchers: Vec<Vec<_>> = targets
            .iter()
            .map(|target| (0..WATCHERS).map(|n| scope.spawn(move || clients::watch(rig, target, n))).collect())
            .collect();
        let persons: Vec<_> =
            targets.iter().map(|target| scope.spawn(move || clients::decide(rig, target, is_settled))).collect();
        // It lets the threads end.
        let failed = |why: &str| -> ! {
            targets.iter().for_each(|target| target.goal.store(0, Ordering::SeqCst));
            panic!("{why}")
        };
        let more = |count: usize| {
            for target in &targets {
                let (wanted, asked) = (target.acknowledged.load(Ordering::Relaxed) + count, Instant::now());
                while target.acknowledged.load(Ordering::Relaxed) < wanted {
                    if asked.elapsed() > LONG {
                        failed(&format!("nothing more is acknowledged in {}", target.society));
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        };
        let start = Instant::now();
        more(3);
        while !(plan.is_over)(begun.len(), start.elapsed()) {
            let step_begun = Instant::now();
            let step = schedule.next();
            let owners: Vec<_> = SOCIETIES.iter().map(|society| rig.owner(society)).collect();
            let at = rig.begun.elapsed();
            say(&format!("{:>6.1} s: {step:?}, owners {owners:?}", at.as_secs_f64()));
            let ongoing = rig.begin(step, &SOCIETIES);
            begun.push((at, step, ongoing.node, owners));
            std::thread::sleep(step.lasts);
            rig.end(ongoing);
            more(3);
            let ended = rig.revive();
            if !ended.is_empty() {
                say(&format!("ended by itself: {ended:?}"));
                ended_by_themselves.extend(ended);
            }
            std::thread::sleep(plan.period.saturating_sub(step_begun.elapsed()));
        }
        is_over.store(true, Ordering::SeqCst);
        for (history, writers) in histories.iter_mut().zip(writers) {
            history.commands = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<Command>>();
        }
        // Everything that was acknowledged is answered in the end.
        for target in &targets {
            let path = format!("/s/{}/api/tasks", target.society);
            let asked = Instant::now();
            while !(0..3)
                .filter_map(|n| ask(&rig.address(n)?, "GET", &path, None, ""))
                .any(|(status, tasks)| status == 200 && tasks["tasks"].as_array().is_some_and(Vec::is_empty))
            {
                if asked.elapsed() > LONG {
                    failed(&format!("open requests of {} do not end", target.society));
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        is_settled.store(true, Ordering::SeqCst);
        let strange = persons.into_iter().flat_map(|person| person.join().unwrap()).collect();
        for ((history, target), watchers) in histories.iter_mut().zip(&targets).zip(watchers) {
            history.log = read_log(rig, target.society);
            target.goal.store(history.log.len() as u64, Ordering::SeqCst);
            history.observations = watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect::<Vec<Observations>>();
        }
        strange
    });
    let mut takeovers = Vec::new();
    let mut summaries = Vec::new();
    let mut wrong: Vec<String> = strange.into_iter().map(|what| format!("waits for a person: {what}")).collect();
    wrong.extend(ended_by_themselves.into_iter().map(|node| format!("ended by itself: {node}")));
    for (n, (history, target)) in histories.iter_mut().zip(&targets).enumerate() {
        let writes = rig.writes(target.society);
        let taken = begun.iter().filter_map(|(at, step, node, owners)| {
            let costs_lease = matches!(step.fault, Fault::Kill) || step.lasts > plan.lease;
            let is_cut = matches!(step.fault, Fault::Kill | Fault::Pause | Fault::Database(_));
            (costs_lease && is_cut && owners[n] == Some(*node)).then_some(*at)
        });
        for at in taken {
            // The first write of another owner.
            let old = writes.iter().rev().find(|(when, _)| *when < at).map(|(_, write)| write.writer.clone());
            let next = writes.iter().find(|(when, write)| *when > at && Some(&write.writer) != old.as_ref());
            takeovers.extend(next.map(|(when, _)| *when - at));
        }
        let silence = silence(&history.commands);
        let [lasted, end] = [silence.0, silence.1].map(|time| time.as_secs_f64());
        say(&format!("{}: nothing was acknowledged for {lasted:.1} s at most, until {end:.1} s", target.society));
        history.writes = writes.into_iter().map(|(_, write)| write).collect();
        // Each call has the name of its society.
        let own = format!("{}-", target.society);
        history.effects = rig.effects().into_iter().filter(|id| id.starts_with(&own)).collect();
        match history.check() {
            Ok(summary) => summaries.push((target.society, summary)),
            Err(faults) => wrong.extend(faults.into_iter().take(20).map(|fault| format!("{}: {fault}", target.society))),
        }
    }
    assert!(wrong.is_empty(), "seed {}:\n{}", plan.seed, wrong.join("\n"));
    Some(Outcome { summaries, takeovers, faults: begun.len() })
}

/// The longest time in which nothing was acknowledged, and when it ended.
fn silence(commands: &[Command]) -> (Duration, Duration) {
    let mut times: Vec<Duration> =
        commands.iter().flat_map(|command| command.acknowledged.iter().map(|told| told.at)).collect();
    times.sort_unstable();
    times.iter().zip(times.iter().skip(1)).map(|(one, next)| (*next - *one, *next)).max().unwrap_or_default()
}

/// Whether faults of a name can be made here.
fn possible(rig: &Rig, name: &str) -> bool {
    match rig.impossible.iter().find(|(impossible, _)| *impossible == name) {
        Some((_, why)) => {
            say(&format!("no faults of the kind `{name}`: {why}"));
            false
        }
        None => true,
    }
}

fn read_log(rig: &Rig, society: &str) -> Vec<Recorded> {
    let (mut log, mut after) = (Vec::new(), 0);
    loop {
        let mut page = Vec::new();
        until("the log cannot be read", || {
            let path = format!("/s/{society}/api/log?after={after}&limit=500");
            let read = (0..3).find_map(|n| {
                let (status, read) = ask(&rig.address(n)?, "GET", &path, None, "")?;
                (status == 200).then_some(read)
            });
            read.map(|mut read| page = serde_json::from_value::<Vec<Recorded>>(read["events"].take()).unwrap()).is_some()
        });
        let Some(last) = page.last() else { return log };
        after = last.seq.0;
        log.append(&mut page);
    }
}

/// By default one round of faults; `POLIS_TEST_CHAOS_SECONDS` makes it longer, with one fault every ten seconds.
#[test]
fn three_nodes_under_faults_keep_one_history_that_all_clients_agree_with() {
    let test = "cli::chaos::three_nodes_under_faults_keep_one_history_that_all_clients_agree_with";
    let seed = variable("POLIS_TEST_SEED").unwrap_or(28);
    let wanted = std::env::var("POLIS_TEST_FAULTS").unwrap_or_default();
    let is_wanted = |name: &&&str| wanted.is_empty() || wanted.split(',').any(|wanted| wanted == **name);
    let names: Vec<&'static str> = NAMES.iter().filter(is_wanted).copied().collect();
    let count = names.len();
    let plan = match variable("POLIS_TEST_CHAOS_SECONDS") {
        Some(seconds) => Plan {
            seed,
            names,
            lease: Duration::from_secs(5),
            period: Duration::from_secs(10),
            is_over: Box::new(move |_, elapsed| elapsed >= Duration::from_secs(seconds)),
        },
        None => Plan {
            seed,
            names,
            lease: Duration::from_secs(2),
            period: Duration::ZERO,
            is_over: Box::new(move |faults, _| faults >= count),
        },
    };
    say(&format!("POLIS_TEST_SEED={seed}"));
    let Some(mut outcome) = run(test, &plan) else { return };
    let effects: usize = outcome.summaries.iter().map(|(_, summary)| summary.effects).sum();
    assert!(effects > 0, "nothing was written, so nothing was checked");
    outcome.takeovers.sort();
    let seconds: Vec<String> = outcome.takeovers.iter().map(|took| format!("{:.1}", took.as_secs_f64())).collect();
    say(&format!("{} faults; seconds until another node wrote: {}", outcome.faults, seconds.join(" ")));
    outcome.summaries.iter().for_each(|(society, summary)| say(&format!("{society}: {summary:?}")));
}

/// The append of an owner that was cut off arrives when another node owns the society already. Nothing has been written since, so
/// only the lease and the epoch tell that it is late.
#[test]
fn what_an_owner_sent_before_it_was_cut_off_writes_nothing_when_it_arrives_after_a_takeover() {
    let test = "cli::chaos::what_an_owner_sent_before_it_was_cut_off_writes_nothing_when_it_arrives_after_a_takeover";
    let settings = Settings { lease: Duration::from_secs(2), model: clients::model() };
    let Some(rig) = Rig::start(test, settings) else { return };
    let body = json!({ "text": "say one", "strategy": "simple" }).to_string();
    let submit = |node: usize, key: &str, body: &str| ask(&rig.address(node)?, "POST", "/api/submit", Some(key), body);
    until("the first request is not taken", || submit(0, "one", &body).is_some_and(|(status, _)| status == 200));
    let is_idle = || {
        let (status, tasks) = ask(&rig.address(0)?, "GET", "/api/tasks", None, "")?;
        (status == 200 && tasks["tasks"].as_array()?.is_empty()).then_some(())
    };
    until("it does not end", || is_idle().is_some());
    let mut owner = None;
    until("nobody owns it", || {
        owner = rig.owner("main");
        owner.is_some()
    });
    let owner = owner.unwrap();
    rig.set_database(owner, Passage::Held);
    std::thread::scope(|scope| {
        let late = json!({ "text": "say late", "strategy": "simple" }).to_string();
        let submit = &submit;
        let sent = scope.spawn(move || submit(owner, "late", &late));
        // A request has another node claim it as soon as the lease has ended.
        let other = (owner + 1) % 3;
        until("nobody takes over", || {
            let read = rig.address(other).and_then(|address| ask(&address, "GET", "/api/tasks", None, ""));
            read.is_some_and(|(status, _)| status == 200) && rig.owner("main").is_some_and(|now| now != owner)
        });
        rig.set_database(owner, Passage::Open);
        // Nobody acknowledged it, unless its node has passed it on to the new owner.
        let _ = sent.join().unwrap();
    });
    let more = json!({ "text": "say two", "strategy": "simple" }).to_string();
    until("the new owner takes nothing", || submit((owner + 1) % 3, "two", &more).is_some_and(|(status, _)| status == 200));
    until("open requests do not end", || is_idle().is_some());
    let commands = ["say one", "say late", "say two"].map(|text| Command {
        text: text.to_owned(),
        sent: Duration::ZERO,
        acknowledged: Vec::new(),
    });
    let writes = rig.writes("main").into_iter().map(|(_, write)| write).collect();
    let history = History { log: read_log(&rig, "main"), commands: commands.into(), writes, ..History::default() };
    let checked = history.check().map_err(|faults| faults.join("\n"));
    assert!(checked.as_ref().is_ok_and(|summary| summary.takeovers > 0), "{checked:?}");
}
