//! A workspace with a sandbox, and a society in it whose model says what the test wrote.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use data_pipeline::{DataPipelineAgent, TableReportAgent, tools};
use polis::domain::{CallResult, Ruling};
use polis::ports::{CallContext, Caller, ToolError};
use polis::prelude::*;
use polis::tools::sandbox::Sandbox;
use polis::{SubThreadPath, ToolSpec, Toolbox};
use polis_testkit::{MemoryArtifacts, MemoryLog, ScriptedModel, ask, open};
use tempfile::TempDir;

/// A workspace, beside which there is a secret.
pub(crate) struct Place {
    around: TempDir,
    pub(crate) pipeline: DataPipelineAgent,
}

/// What came of a request.
pub(crate) struct Outcome {
    pub(crate) answer: Result<String, Failure>,
    /// The tools that were called, with their arguments.
    pub(crate) calls: Vec<(String, String)>,
    /// Bot and user, in turn.
    pub(crate) rounds: Vec<Arc<Message>>,
    pub(crate) report: Option<String>,
}

impl Place {
    /// None where this machine has no sandbox that is good enough.
    pub(crate) async fn new(test: &str) -> Option<Self> {
        let features = sandbox().features().await.unwrap();
        if !features.may_run_unattended() {
            let _ = writeln!(std::io::stderr(), "skipped: {test}: this machine offers only: {features}");
            return None;
        }
        let around = tempfile::tempdir().unwrap();
        std::fs::create_dir(around.path().join("work")).unwrap();
        std::fs::write(around.path().join("secret"), "the secret").unwrap();
        Some(Self { around, pipeline: DataPipelineAgent::default() })
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.around.path().join("work")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.around.path().join("secret")
    }

    /// Asks once, in a society of its own.
    pub(crate) async fn ask(&self, request: &str, model: ScriptedModel) -> Outcome {
        let tools = Watched::new(&self.workspace());
        let calls = tools.calls.clone();
        let ports = Ports::new(MemoryLog::new()).with_model(model).with_artifacts(MemoryArtifacts::new()).with_tools(tools);
        let society = open(self.cast(), ports).await;
        let answer = ask(&society, request).await;
        let rounds = society.thread(&"root".into(), &"messages[1].meta._thread".parse().unwrap()).await;
        let report = report(&society).await;
        let calls = calls.lock().unwrap().clone();
        Outcome { answer, calls, rounds: rounds.map(|thread| thread.messages).unwrap_or_default(), report }
    }

    pub(crate) fn cast(&self) -> Cast {
        Cast::new().with("root", TableReportAgent { pipeline: self.pipeline })
    }
}

/// The tools of the pipeline, and what they were asked.
pub(crate) struct Watched {
    tools: Box<dyn Toolbox>,
    pub(crate) calls: Arc<Mutex<Vec<(String, String)>>>,
}

impl Watched {
    pub(crate) fn new(workspace: &Path) -> Self {
        Self { tools: Box::new(tools(workspace, sandbox()).unwrap()), calls: Arc::default() }
    }
}

#[async_trait]
impl Toolbox for Watched {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.tools()
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        self.tools.ruling(tool, arguments, who)
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.calls.lock().unwrap().push((tool.to_owned(), arguments.to_owned()));
        self.tools.call(tool, arguments, context).await
    }
}

impl Outcome {
    /// The texts of the rounds.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.rounds.iter().map(|message| &*message.text).collect()
    }

    /// The report of a run that went well.
    pub(crate) fn page(&self) -> &str {
        self.report.as_deref().unwrap_or_else(|| panic!("no report: {:?}\n{:#?}", self.answer, self.texts()))
    }
}

/// The sandbox, whose program is ours.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_data_pipeline"))
}

/// The report that hangs on the message of the main thread.
async fn report(society: &Society) -> Option<String> {
    let main = society.thread(&"root".into(), &SubThreadPath::main()).await.unwrap();
    let artifact = Artifact::attached(&main.messages.get(1)?.meta).pop()?;
    assert_eq!(&*artifact.media_type, "text/html; charset=utf-8");
    let window = society.artifacts().read(&artifact.id, 0, 64 << 20).await.unwrap();
    Some(String::from_utf8(window.bytes).unwrap())
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}
