//! An agent that does what its task says, step by step: any society can be written down as data and checked against what it
//! should have answered.

use std::time::Duration;

use polis_domain::{AgentId, CallResult, Children, Failure, Phase, Response, Role, Task, ToolCall};
use polis_engine::{Agent, Operation, Turn};
use polis_ports::{ChatMessage, ModelRequest, ModelSettings};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Steps, one after another. The answer is what each of them came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program(pub Vec<Op>);

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Add a bot message to the thread.
    Say(String),
    /// Ask the model.
    Think(String),
    /// Call tools, at once: name and argument.
    Call(Vec<(String, String)>),
    /// Ask another agent.
    Ask {
        /// The agent that is asked.
        agent: String,
        /// What it should do.
        program: Program,
        /// How long to wait.
        patience_ms: u64,
    },
    /// Send another agent a program and do not wait for it.
    Send(String, Program),
    /// Run programs in sub-threads, at once.
    Units(Vec<Program>),
    /// Let time pass.
    Sleep(u64),
    /// Ask a person.
    Approve(String),
    /// Write to the person.
    Tell(String),
    /// Make an agent.
    Spawn(String),
    /// Send away an agent that this one made, within so many milliseconds.
    Terminate(String, u64),
    /// Suggest a phase.
    Phase(String),
    /// Fail with this code.
    Fail(String),
    /// Panic.
    Panic(String),
    /// Keep a content, list it, and read it again.
    Keep(String),
    /// Queue a follow-up. Whoever waits is answered by it.
    Then(Program),
}

impl Program {
    /// The text of a task that asks for this.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a program is plain data")
    }
}

/// Does what its task says.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgrammedAgent;

impl ProgrammedAgent {
    /// The name under which it is cast.
    pub const NAME: &'static str = "programmed";

    /// What it answers to the notice of a failure.
    pub const NOTED: &'static str = "noted";

    /// The most tokens that it lets a model write.
    pub const REPLY_TOKENS: u32 = 100;
}

/// The role of an agent that does what it is told.
pub fn worker_role() -> Role {
    Role { name: "Worker".into(), prompt: "You do what you are told.".into(), ..Role::new("worker", ProgrammedAgent::NAME) }
}

impl Agent for ProgrammedAgent {
    fn operations(&self) -> Vec<Operation> {
        let nothing = Operation::new("nothing", "Do nothing", "[]").with_meta("_ui_action", "nothing");
        vec![nothing.translated("zh", "什么都不做", "[ ]")]
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if turn.task().message.starts_with('`') {
            // The notice of a failure, which is no program.
            return Ok(Response::new(Self::NOTED));
        }
        let program: Program =
            serde_json::from_str(&turn.task().message).map_err(|error| Failure::new("no_program", error.to_string()))?;
        let mut words = Vec::new();
        let mut next = None;
        for op in program.0 {
            match op {
                Op::Then(program) => next = Some(program),
                op => words.push(step(turn, op).await?),
            }
        }
        let mut response = Response::new(words.join(" "));
        if let Some(program) = next {
            let id = turn.task().id.clone();
            response.add_next_task(Task::action(id, "ContinueProcessing", program.text()));
        }
        Ok(response)
    }
}

async fn step(turn: &mut Turn, op: Op) -> Result<String, Failure> {
    Ok(match op {
        Op::Say(text) => {
            turn.say(&text).await?;
            format!("said:{text}")
        }
        Op::Think(prompt) => {
            let messages = vec![ChatMessage::user(prompt)];
            let request = ModelRequest {
                messages,
                settings: ModelSettings { max_tokens: Some(ProgrammedAgent::REPLY_TOKENS), ..ModelSettings::default() },
                ..ModelRequest::default()
            };
            let reply = turn.model(request).await;
            reply.map_or_else(failed, |reply| reply.text)
        }
        Op::Call(calls) => {
            let calls = (0..).zip(calls).map(|(i, (tool, argument))| ToolCall {
                id: format!("call_{i}").into(),
                name: tool.into(),
                arguments: argument.into(),
            });
            let results = turn.call_tools(calls.collect()).await;
            let told = |result: &CallResult| match &result.note {
                Some(note) => format!("{} ({note})", result.for_model()),
                None => result.for_model().to_string(),
            };
            results.iter().map(told).collect::<Vec<_>>().join(",")
        }
        Op::Ask { agent, program, patience_ms } => {
            let answer = turn.ask(&AgentId::from(agent), &program.text(), Duration::from_millis(patience_ms)).await;
            format!("[{}]", answer.map_or_else(failed, |text| text.to_string()))
        }
        Op::Send(agent, program) => {
            turn.send(&agent.into(), &program.text()).await?;
            "sent".to_owned()
        }
        Op::Units(programs) => units(turn, programs).await?,
        Op::Sleep(ms) => {
            turn.sleep(Duration::from_millis(ms)).await?;
            "slept".to_owned()
        }
        Op::Approve(question) => {
            let verdict = turn.approve(&question, Value::Null, None).await?;
            if verdict.approved { "approved".to_owned() } else { format!("denied:{}", verdict.reason) }
        }
        Op::Tell(text) => {
            turn.send(&AgentId::user(), &text).await?;
            "told".to_owned()
        }
        Op::Spawn(agent) => {
            turn.spawn_agent(&agent.into(), &worker_role().id).await.map_or_else(failed, |()| "spawned".to_owned())
        }
        Op::Terminate(agent, ms) => {
            let gone = turn.terminate(&agent.into(), Children::Cascade, "done", Duration::from_millis(ms)).await;
            gone.map_or_else(failed, |()| "gone".to_owned())
        }
        Op::Phase(phase) => {
            turn.suggest_phase(Phase::new(&phase)?).await?;
            format!("{}>{phase}", turn.phase())
        }
        Op::Keep(content) => keep(turn, &content).await?,
        Op::Fail(code) => return Err(Failure::new(code, "as the program says")),
        Op::Panic(text) => panic!("{text}"),
        Op::Then(_) => String::new(),
    })
}

/// What is kept is listed and reads as it was written.
async fn keep(turn: &mut Turn, content: &str) -> Result<String, Failure> {
    let artifact = turn.put_artifact("kept.txt", "text/plain", content.as_bytes()).await?;
    let is_listed = turn.artifacts().await.iter().any(|listed| listed.artifact.id == artifact.id);
    let window = turn.artifact(&artifact.id, 0, usize::MAX).await?;
    let text = String::from_utf8_lossy(&window.bytes).into_owned();
    Ok(if is_listed { format!("kept:{text}") } else { "!unlisted".to_owned() })
}

/// Each program runs in the sub-thread of a placeholder, which then shows its answer.
async fn units(turn: &mut Turn, programs: Vec<Program>) -> Result<String, Failure> {
    let path = turn.path();
    let mut started = Vec::new();
    let mut placeholders = Vec::new();
    for program in programs {
        let placeholder = turn.say("…").await?;
        let sub = turn.open_sub_thread(&path, &placeholder.id).await?;
        let task = Task::action(turn.task().id.clone(), "ProcessSubThread", program.text());
        placeholders.push(placeholder);
        started.push((sub, ProgrammedAgent::NAME.into(), task));
    }
    let mut words = Vec::new();
    for (placeholder, result) in placeholders.iter().zip(turn.run_units(started).await?) {
        let text = result.map_or_else(failed, |text| text.to_string());
        let patch = polis_domain::MessagePatch { text: Some(text.clone()), ..Default::default() };
        turn.update_message(&path, &placeholder.id, patch).await?;
        words.push(format!("{{{text}}}"));
    }
    Ok(words.join(" "))
}

fn failed(failure: Failure) -> String {
    format!("!{}", failure.code)
}

/// What a program answers in a world where nothing fails: the model says `thought(…)`, a tool `tool(…)`, a person yes.
pub fn expected(program: &Program) -> Result<String, String> {
    let mut words = Vec::new();
    let mut next = None;
    for op in &program.0 {
        let below = |program: &Program| expected(program).unwrap_or_else(|code| format!("!{code}"));
        words.push(match op {
            Op::Say(text) => format!("said:{text}"),
            Op::Think(prompt) => format!("thought({prompt})"),
            Op::Call(calls) => calls.iter().map(|(tool, argument)| format!("{tool}({argument})")).collect::<Vec<_>>().join(","),
            Op::Ask { program, .. } => format!("[{}]", below(program)),
            Op::Send(..) => "sent".to_owned(),
            Op::Units(programs) => {
                programs.iter().map(|program| format!("{{{}}}", below(program))).collect::<Vec<_>>().join(" ")
            }
            Op::Sleep(_) => "slept".to_owned(),
            Op::Approve(_) => "approved".to_owned(),
            Op::Tell(_) => "told".to_owned(),
            Op::Spawn(_) => "spawned".to_owned(),
            Op::Terminate(..) => "gone".to_owned(),
            Op::Phase(phase) => format!("initial_phase>{phase}"),
            Op::Keep(content) => format!("kept:{content}"),
            Op::Fail(code) => return Err(code.clone()),
            Op::Panic(_) => return Err("panicked".to_owned()),
            Op::Then(program) => {
                next = Some(program);
                continue;
            }
        });
    }
    next.map_or_else(|| Ok(words.join(" ")), expected)
}
