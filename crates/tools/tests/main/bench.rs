//! A workbench over a fresh folder, and one `check` that knows the API.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{
    AgentId, CallResult, EffectClass, EffectId, Seq, SocietyId, SubThreadPath, TaskId, ThreadId, Timestamp, TurnId,
};
use polis_ports::{ArtifactStore, CallContext, Clock, Tool, ToolError, ToolSpec, Toolbox};
use polis_tools::{DuplicateTool, ToolRegistry, Workspace, built_ins};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    tool_registry: ToolRegistry,
}

pub(crate) fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let tool_registry = over(folder.path());
    Bench { folder, tool_registry }
}

pub(crate) fn over(root: &Path) -> ToolRegistry {
    laid_out(&Workspace::open(root).unwrap())
}

pub(crate) fn laid_out(workspace: &Workspace) -> ToolRegistry {
    ToolRegistry::new(built_ins(workspace, Arc::new(Stopped))).unwrap()
}

/// A clock that stands still on an evening in November.
struct Stopped;

#[async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }

    async fn sleep_until(&self, _: Timestamp) {}
}

pub(crate) fn context() -> CallContext {
    CallContext {
        host: None,
        society: SocietyId::from("main"),
        seed: 7,
        effect: EffectId { turn: TurnId(Seq(1)), n: 0 },
        agent: AgentId::root(),
        thread: ThreadId::from("root"),
        task: TaskId::from("task"),
        artifacts: ArtifactStore::none(),
        path: SubThreadPath::create(2),
        resource: Some("doc-7".into()),
        application: Default::default(),
    }
}

impl Bench {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<CallResult, ToolError> {
        self.tool_registry.call(tool, arguments, &context()).await
    }

    pub(crate) async fn good(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, &arguments.to_string()).await.unwrap();
        assert!(!result.is_error, "{}", result.content);
        result.content.to_string()
    }

    /// What the model reads of a failure, whichever way it comes.
    pub(crate) async fn bad(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, &arguments.to_string()).await {
            Ok(result) => {
                assert!(result.is_error, "{}", result.content);
                result.content.to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    /// Every name in the folder, to see that nothing is left behind.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn the_built_in_tools_are_told_with_their_class_and_a_schema() {
    let bench = bench();
    let told: Vec<_> = bench.tool_registry.tools().iter().map(|spec| (spec.name.to_string(), spec.class)).collect();
    let files = ["read_file", "write_file", "edit_file", "list_files", "search_files"];
    let names = files.into_iter().chain(["now", "put_artifact", "get_artifact", "list_artifacts", "ask_person"]);
    let want: Vec<_> = names
        .map(|name| match name {
            "write_file" | "edit_file" => (name.to_owned(), EffectClass::Write),
            "put_artifact" => (name.to_owned(), EffectClass::Idempotent),
            _ => (name.to_owned(), EffectClass::Read),
        })
        .collect();
    assert_eq!(told, want);
    for spec in bench.tool_registry.tools().iter() {
        assert_eq!(spec.parameters["type"], "object");
        assert!(spec.parameters["properties"].is_object() && !spec.description.is_empty(), "{}", spec.name);
    }
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_unknown() {
    let unknown = bench().call("rm", "{}").await.unwrap_err();
    assert_eq!(unknown, ToolError::Unknown("rm".to_owned()));
}

#[tokio::test]
async fn arguments_that_cannot_be_used_do_nothing_and_say_why() {
    let bench = bench();
    for (tool, arguments, want) in [
        ("read_file", "", "missing field `path`"),
        ("read_file", "{\"path\":", "EOF"),
        ("read_file", "[]", "must be a JSON object"),
        ("write_file", "[\"a\",\"by place\"]", "must be a JSON object"),
        ("read_file", "{\"path\":7}", "invalid type: integer"),
        ("read_file", "{\"path\":\"a\",\"lines\":3}", "unknown field `lines`"),
        ("read_file", "{\"path\":\"a\",\"start_line\":0}", "lines count from 1"),
        ("read_file", "{\"path\":\"a\",\"start_line\":3,\"end_line\":2}", "lines count from 1"),
        ("write_file", "{\"path\":\"a\"}", "missing field `content`"),
        ("edit_file", "{\"path\":\"a\",\"edits\":[]}", "edits are 1 to"),
        ("edit_file", "{\"path\":\"a\",\"edits\":[{\"old_text\":\"\",\"new_text\":\"\"}]}", "old_text is empty"),
        ("edit_file", "{\"path\":\"../a\",\"edits\":[{\"old_text\":\"a\",\"new_text\":\"\"}]}", "holds `..`"),
        ("list_files", "{\"path\":\"/\"}", "is absolute"),
        ("list_files", "{\"path\":\"a/../..\"}", "holds `..`"),
        ("list_files", "{\"pattern\":\"{\"}", "braces"),
        ("search_files", "{}", "missing field `text`"),
        ("search_files", "{\"text\":\"\"}", "one line"),
        ("now", "{\"zone\":7}", "invalid type: integer"),
        ("put_artifact", "{}", "either content or path"),
        ("put_artifact", "{\"content\":\"a\"}", "name is missing"),
        ("put_artifact", "{\"path\":\"../a\"}", "holds `..`"),
        ("get_artifact", "{}", "missing field `id`"),
        ("get_artifact", "{\"id\":\"../../token\"}", "64 digits"),
        ("list_artifacts", "{\"after\":-1}", "invalid value"),
    ] {
        match bench.call(tool, arguments).await {
            Err(ToolError::BadArguments(why)) => assert!(why.contains(want), "{arguments}: {why}"),
            other => panic!("{arguments}: {other:?}"),
        }
    }
    assert!(bench.names().is_empty());
}

struct Twin;

#[async_trait]
impl Tool for Twin {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "twin".into(),
            description: String::new(),
            parameters: json!({}),
            class: EffectClass::Write,
            volatile: false,
        }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        Ok(CallResult::good(""))
    }
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let made = ToolRegistry::new([Box::new(Twin) as Box<dyn Tool>, Box::new(Twin)]);
    assert_eq!(made.err(), Some(DuplicateTool("twin".into())));
}
