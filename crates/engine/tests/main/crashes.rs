//! Code that breaks down: run again a little later, set aside when that does not help, and nobody else is disturbed (P12).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polis_domain::{Event, Failure, MessageKind, Recorded, Response, Role};
use polis_engine::{Agent, Cast, Ports, Society, Turn, replay};
use polis_testkit::{MemoryLog, ScriptedModel, ask, open};

/// Asks the model, then breaks down as long as there is something to break it; a text with `poison` always does.
#[derive(Clone, Default)]
struct Fragile(Arc<AtomicUsize>);

impl Agent for Fragile {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let said = turn.generate("think").await?;
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        assert!(left.is_err(), "a passing trouble");
        assert!(!turn.task().message.contains("poison"), "poisoned by {}", turn.task().message);
        Ok(Response::new(format!("{said}: {}", turn.task().message)))
    }
}

/// Makes an agent and leaves it alone; else it says what it heard.
struct Parent;
impl Agent for Parent {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let text = turn.task().message.clone();
        match text.strip_prefix("send ") {
            Some(text) => {
                let _ = turn.spawn_agent(&"child".into(), &"fragile".into()).await;
                turn.send(&"child".into(), text).await?;
                Ok(Response::new("sent"))
            }
            None => Ok(Response::new(format!("heard: {text}"))),
        }
    }
}

struct Bed {
    log: Arc<MemoryLog>,
    society: Society,
    asked: Arc<AtomicUsize>,
}

async fn bed(trouble: usize) -> Bed {
    let log = Arc::new(MemoryLog::new());
    let model = ScriptedModel::saying("ok");
    let asked = model.counter();
    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model) };
    let cast = Cast::new().with("root", Parent).with("fragile", Fragile(Arc::new(AtomicUsize::new(trouble))));
    let society = open(cast, ports).await;
    society.create_role(Role::new("fragile", "fragile")).await.unwrap();
    society.spawn("child".into(), "fragile".into(), "root".into()).await.unwrap();
    Bed { log, society, asked }
}

impl Bed {
    fn events(&self) -> Vec<Arc<Recorded>> {
        self.log.events(&"main".into())
    }

    fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.events().iter().filter(|recorded| which(&recorded.event)).count()
    }

    /// Says something to the child; what the person is told of it.
    async fn say(&self, text: &str) -> Result<String, String> {
        let sent = self.society.send("child".into(), text, None).await.unwrap();
        let envelope = self.society.answer(&sent).await.unwrap();
        match &envelope.kind {
            MessageKind::Failure(failure) => Err(failure.code.to_string()),
            _ => Ok(envelope.payload.text.to_string()),
        }
    }
}

fn crashed(event: &Event) -> bool {
    matches!(event, Event::TurnCrashed { .. })
}

fn set_aside(event: &Event) -> bool {
    matches!(event, Event::MessageDeadLettered { .. })
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_breaks_down_goes_on_where_it_was_a_little_later() {
    let bed = bed(2).await;
    let before = tokio::time::Instant::now();
    assert_eq!(bed.say("hello").await.unwrap(), "ok: hello");
    assert!(before.elapsed().as_millis() >= 1_500, "it rests before it is run again");
    assert_eq!((bed.count(crashed), bed.count(set_aside)), (2, 0));
    assert_eq!(bed.asked.load(Ordering::Relaxed), 1, "what the log has is not asked for again");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_breaks_its_agent_down_is_set_aside_and_the_queue_moves_on() {
    let bed = bed(0).await;
    let poison = bed.society.send("child".into(), "poison", None).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(bed.say("behind it").await.unwrap(), "ok: behind it");
    assert!(before.elapsed().as_secs() < 10);
    let told = bed.society.answer(&poison).await.unwrap();
    assert!(matches!(&told.kind, MessageKind::Failure(failure) if &*failure.code == "panicked"), "{told:?}");
    assert_eq!((bed.count(crashed), bed.count(set_aside)), (2, 1));
    let dead = bed.society.look(|spine| spine.dead_letters.iter().cloned().collect::<Vec<_>>()).await.unwrap();
    assert_eq!((dead.len(), dead[0].agent.as_str(), &dead[0].task), (1, "child", &poison.task_id));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_keeps_breaking_down_stands_still_and_its_parent_is_told() {
    let bed = bed(0).await;
    for text in ["send poison 1", "send poison 2", "send poison 3", "send good"] {
        ask(&bed.society, text).await.unwrap();
    }
    let stands = |spine: &polis_domain::Spine| {
        let turn = spine.agents.get(&"child".into())?.turn?;
        Some((turn, spine.turns.get(&turn)?.parked().cloned()?))
    };
    let mut parked = None;
    for _ in 0..600 {
        if parked.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        parked = bed.society.look(stands).await.unwrap();
    }
    let (turn, reason) = parked.unwrap();
    assert_eq!((&*reason.code, bed.count(set_aside)), ("agent_crashing", 3));
    let events = bed.events();
    let told = events.iter().filter(|recorded| {
        let envelope = recorded.event.envelope();
        envelope.is_some_and(|envelope| envelope.to.as_str() == "root" && envelope.payload.text.contains("is a dead letter"))
    });
    assert_eq!(told.count(), 3);
    let last = events
        .iter()
        .filter_map(|recorded| recorded.event.envelope().cloned())
        .rfind(|envelope| envelope.from.as_str() == "child");
    assert!(last.unwrap().payload.text.contains("is blocked until a person acts"));

    bed.society.resume(turn).await.unwrap();
    assert_eq!(bed.say("and now?").await.unwrap(), "ok: and now?");
    let in_a_row = bed.society.look(|spine| spine.agents[&"child".into()].dead_letters).await.unwrap();
    assert_eq!(in_a_row, 0, "what goes well counts anew");
}

/// Ends its process when it hears `deadly`, as far as a test can: it is never heard of again. What is `slow` takes an hour.
struct Deadly(Arc<AtomicUsize>);

impl Agent for Deadly {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let text = turn.task().message.clone();
        if &*text == "deadly" {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
        let said = turn.generate(&*text).await?;
        Ok(Response::new(format!("{said}: {text}")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_ends_its_process_again_and_again_is_set_aside_and_others_are_not() {
    let log = Arc::new(MemoryLog::new());
    let runs = Arc::new(AtomicUsize::new(0));
    let again = async || {
        let model = ScriptedModel::new(|request| {
            let is_slow = format!("{:?}", request.messages).contains("slow");
            polis_testkit::ScriptedReply::text("ok").after(std::time::Duration::from_secs(if is_slow { 10 } else { 0 }))
        });
        let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model) };
        open(Cast::new().with("root", Parent).with("deadly", Deadly(runs.clone())), ports).await
    };
    let society = again().await;
    society.create_role(Role::new("deadly", "deadly")).await.unwrap();
    for name in ["child", "slow"] {
        society.spawn(name.into(), "deadly".into(), "root".into()).await.unwrap();
    }
    let slow = society.send("slow".into(), "slow", None).await.unwrap();
    let deadly = society.send("child".into(), "deadly", None).await.unwrap();
    let behind = society.send("child".into(), "behind it", None).await.unwrap();
    let (mut society, mut seen) = (society, 0);
    // Each process ends as soon as what is deadly has begun.
    loop {
        for _ in 0..600 {
            if runs.load(Ordering::Relaxed) > seen {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        if runs.load(Ordering::Relaxed) == seen {
            break;
        }
        seen = runs.load(Ordering::Relaxed);
        assert!(seen < 20, "it is run for ever");
        drop(society);
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        society = again().await;
    }
    assert_eq!(log.events(&"main".into()).iter().filter(|recorded| set_aside(&recorded.event)).count(), 1);
    assert!((6..=9).contains(&runs.load(Ordering::Relaxed)), "{}", runs.load(Ordering::Relaxed));
    let told = society.answer(&deadly).await.unwrap();
    assert!(matches!(&told.kind, MessageKind::Failure(failure) if &*failure.code == "ends_process"), "{told:?}");
    assert_eq!(&*society.answer(&behind).await.unwrap().payload.text, "ok: behind it");
    assert_eq!(&*society.answer(&slow).await.unwrap().payload.text, "ok: slow", "it came no further, and is not to blame");

    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()) };
    let cast = Cast::new().with("root", Parent).with("deadly", Deadly(runs));
    let replayed = tokio::time::timeout(std::time::Duration::from_secs(60), replay(&"main".into(), &ports, &cast)).await;
    let replayed = replayed.expect("what ends a process is not run again").unwrap();
    assert_eq!((replayed.divergences, replayed.turns), (vec![], 2), "what was given up is not run again");
}
