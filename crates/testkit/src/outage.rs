//! What a society does on a log that goes away now and then: it works on by itself, and does nothing twice.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polis_domain::{AgentId, EffectClass, Event, Recorded, Role, Seq, Spine};
use polis_engine::{Cast, Options, Ports, Sent, Society};
use polis_ports::Log;

use crate::world::{model_reply, resolve_open_decisions, tools};
use crate::{MemoryLog, Op, Program, ProgrammedAgent, ScriptedModel, ScriptedReply, expected};

/// What is asked for, one after another.
const REQUESTS: usize = 6;

/// How often a person looks.
const PACE: Duration = Duration::from_millis(20);

/// What is asked for: a model call, tools of each class, units.
fn program(n: usize) -> Program {
    let call = |tool: &str| (tool.to_owned(), format!("{n}"));
    Program(vec![
        Op::Think(format!("about {n}")),
        Op::Call(vec![call("look"), call("stamp")]),
        Op::Call(vec![call("mark")]),
        Op::Units(vec![Program(vec![Op::Think("one".to_owned())]), Program(vec![Op::Say("two".to_owned())])]),
        Op::Say("done".to_owned()),
    ])
}

/// Everything that the person has asked for so far.
async fn requests(log: &dyn Log) -> Vec<Sent> {
    let Ok(events) = log.read(&"main".into(), Seq(0), usize::MAX).await else { return Vec::new() };
    let sent = |recorded: &Recorded| match &recorded.event {
        Event::MessageSent { envelope, .. } if envelope.from.is_user() => Some(Sent {
            message_id: envelope.id.clone(),
            to: envelope.to.clone(),
            task_id: envelope.task_id.clone(),
            seq: recorded.seq,
        }),
        _ => None,
    };
    events.iter().filter_map(sent).collect()
}

/// Runs requests, and has the log disturbed at each of them.
///
/// # Panics
///
/// When an answer is not what was asked for, a turn stays open, or a write was done twice.
pub async fn check(log: Arc<dyn Log>, disturb: impl Fn()) {
    let done: Arc<Mutex<Vec<(EffectClass, String)>>> = Arc::default();
    let lock = |done: &Mutex<Vec<(EffectClass, String)>>| done.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let record = done.clone();
    let toolbox = tools(move |class, key| {
        record.lock().unwrap_or_else(PoisonError::into_inner).push((class, key.to_owned()));
    });
    let model = ScriptedModel::new(|request| ScriptedReply::text(&model_reply(request)));
    let ports = Ports { log: log.clone(), ..Ports::new(MemoryLog::new()).with_model(model).with_tools(toolbox) };
    let options = Options { retry_ms: 10, ..Options::new(1, Role::new("root", "programmed")) };
    let society = Society::open("main".into(), ports, Cast::new().with("programmed", ProgrammedAgent), options).await;
    let society = society.unwrap_or_else(|error| panic!("{error}"));
    for n in 0..REQUESTS {
        let program = program(n);
        let sent = loop {
            if let Some(sent) = requests(&*log).await.get(n) {
                break sent.clone();
            }
            // It may be in the log although it has failed.
            if society.submit(&program.text()).await.is_err() {
                tokio::time::sleep(PACE).await;
            }
        };
        disturb();
        let was_done = |key: &str| lock(&done).iter().any(|(_, done)| done == key);
        let answer = loop {
            let mut answer = pin!(society.answer(&sent));
            let answered = loop {
                tokio::select! {
                    biased;
                    answered = &mut answer => break answered,
                    () = tokio::time::sleep(PACE) => resolve_open_decisions(&society, was_done).await,
                }
            };
            // Following it may fail as well, while the log does.
            if let Ok(answer) = answered {
                break answer;
            }
        };
        assert_eq!(Ok(answer.payload.text.to_string()), expected(&program));
    }
    society.stop(Duration::ZERO).await;
    let events = log.read(&"main".into(), Seq(0), usize::MAX).await.unwrap_or_else(|error| panic!("{error}"));
    let spine = Spine::from_iter(&events);
    assert!(spine.turns.is_empty() && spine.agents.get(&AgentId::root()).is_some());
    let written = lock(&done).into_iter().filter(|(class, _)| *class == EffectClass::Write).map(|(_, key)| key);
    let mut written: Vec<String> = written.collect();
    let all = written.len();
    written.sort();
    written.dedup();
    assert_eq!((written.len(), all), (REQUESTS, REQUESTS), "each write was done once");
}
