//! Calls that need a person's word, or may not be made at all.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Always, CallResult, EffectClass, EffectId, OpenKind, Outcome, Resolution, Ruling, Stage, Verdict};
use polis_engine::{Ports, Society};
use polis_ports::{CallContext, Caller, ToolError, ToolIdentity, ToolSpec, Toolbox};
use polis_testkit::{Op, Program, ScriptedTools, world};

use crate::bed::*;

/// `mark` is asked about, `stamp` is denied, `look` may be used.
async fn open(bed: &Bed) -> Society {
    let done = bed.done.clone();
    let tools = world::tools(move |class, key| done.lock().unwrap().push((class, key.to_owned())));
    let tools = tools.ruled(|tool, _| match tool {
        "mark" => Ruling::Ask("It cannot be undone.".to_owned()),
        "stamp" => Ruling::Deny("stamps are dear".to_owned()),
        _ => Ruling::Allow,
    });
    let ports = Ports { toolbox: Arc::new(tools), ..bed.ports(bed.log.clone()) };
    Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
}

fn say(verdict: Verdict) -> Resolution {
    Resolution::Outcome(Outcome::Verdict(verdict))
}

async fn asked(society: &Society) -> EffectId {
    open_effect(society, |kind, stage| matches!(kind, OpenKind::Approval(Some(_))) && stage == Stage::Waiting).await
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_never_made_and_the_agent_reads_why() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let ops = vec![Op::Call(vec![("look".into(), "a".into()), ("stamp".into(), "b".into())])];
    let said = ask(&society, ops).await.unwrap();
    assert_eq!(said, "look(a),this call of stamp is forbidden by a rule: stamps are dear (policy_denied)");
    assert_eq!(bed.done.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_a_word_waits_for_it_and_results_keep_their_order() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let calls = [("look", "a"), ("mark", "b"), ("look", "c"), ("mark", "d")];
    let sent = submit(&society, vec![Op::Call(calls.map(|(tool, text)| (tool.into(), text.into())).to_vec())]).await;
    let first = asked(&society).await;
    assert_eq!(bed.writes(), 0);
    society.resolve(first, say(Verdict::yes())).await.unwrap();
    let second = asked(&society).await;
    assert_ne!(first, second);
    society.resolve(second, say(Verdict::no("not this one"))).await.unwrap();
    let said = answer(&society, &sent).await.unwrap();
    let no = "not made: the person said no: \"not this one\". Do not try it again, nor reach the same end another way. Go on \
              without it, or ask with ask_person what they want instead.";
    assert_eq!(said, format!("look(a),mark(b),look(c),{no}"));
    assert_eq!(bed.writes(), 1);
}

/// An approval three levels deep; the process ends while it waits, and comes back.
#[tokio::test(start_paused = true)]
async fn a_word_given_three_levels_deep_after_a_restart_has_the_call_made_once_with_the_words_arguments() {
    let bed = Bed::new();
    let first = open(&bed).await;
    let deep = (0..3).fold(Program(vec![call("mark", "planned")]), |below, _| Program(vec![Op::Units(vec![below])]));
    let sent = submit(&first, deep.0).await;
    let id = asked(&first).await;
    first.stop(Duration::ZERO).await;

    let second = open(&bed).await;
    assert_eq!(asked(&second).await, id);
    let edited = Verdict { arguments: Some("edited".into()), ..Verdict::yes() };
    second.resolve(id, say(edited)).await.unwrap();
    let told = "{{{[polis] The person changed the arguments. What was called: edited. Report that, not your own version.\n\n\
                mark(edited)}}}";
    assert_eq!(answer(&second, &sent).await.unwrap(), told);
    assert_eq!(bed.writes(), 1);
    second.stop(Duration::ZERO).await;

    let third = open(&bed).await;
    assert_eq!(answer(&third, &sent).await.unwrap(), told);
    assert_eq!(bed.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_word_for_always_is_not_asked_for_again_as_far_as_it_goes() {
    for (always, asked_again_by_other, asked_again_later) in
        [(Always::Agent, true, false), (Always::Task, false, true), (Always::Tool, false, false)]
    {
        let bed = Bed::new();
        let society = open(&bed).await;
        spawn(&society, &["a1"]).await;
        let marks = || call("mark", "x");
        let other = Op::Ask { agent: "a1".into(), program: Program(vec![marks()]), patience_ms: 60_000 };
        let sent = submit(&society, vec![marks(), marks(), other]).await;
        let id = asked(&society).await;
        society.resolve(id, say(Verdict { always: Some(always), ..Verdict::yes() })).await.unwrap();
        if asked_again_by_other {
            let id = asked(&society).await;
            society.resolve(id, say(Verdict::yes())).await.unwrap();
        }
        assert_eq!(answer(&society, &sent).await.unwrap(), "mark(x) mark(x) [mark(x)]");
        let later = submit(&society, vec![marks()]).await;
        if asked_again_later {
            let id = asked(&society).await;
            society.resolve(id, say(Verdict::no(""))).await.unwrap();
            let no = answer(&society, &later).await.unwrap();
            assert!(no.starts_with("not made: the person said no. Do not try it again, "), "{no}");
        } else {
            assert_eq!(answer(&society, &later).await.unwrap(), "mark(x)");
        }
    }
}

/// A call that a person allowed and that was cut is in doubt like any other write.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_agreed_to_and_cut_is_in_doubt() {
    let bed = Bed::new();
    let done = bed.done.clone();
    let tools = world::tools(move |class, key| done.lock().unwrap().push((class, key.to_owned())));
    let tools = tools.ruled(|_, _| Ruling::Ask(String::new())).delayed(|_| Duration::from_secs(60));
    let ports = Ports { toolbox: Arc::new(tools), ..bed.ports(bed.log.clone()) };
    let first = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    submit(&first, vec![call("mark", "x")]).await;
    let id = asked(&first).await;
    first.resolve(id, say(Verdict::yes())).await.unwrap();
    open_effect(&first, |kind, _| *kind == OpenKind::Tool(EffectClass::Write)).await;
    first.stop(Duration::ZERO).await;
    let second = open(&bed).await;
    let doubted = open_effect(&second, |_, stage| stage == Stage::InDoubt).await;
    assert_eq!(doubted.n, id.n + 1);
}

/// Tools that are listed under longer names than they are called by, while their server is there.
struct Named {
    tools: ScriptedTools,
    is_there: bool,
}

#[async_trait::async_trait]
impl Toolbox for Named {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.tools()
    }

    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        if self.is_there { Ok(format!("s__{tool}").into()) } else { Err(ToolError::Absent("the server is gone".to_owned())) }
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        self.tools.ruling(tool, arguments, who)
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.tools.call(tool, arguments, context).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_before_it_is_judged_and_means_the_same_after_a_restart() {
    let bed = Bed::new();
    let open = async |is_there| {
        let tools =
            ScriptedTools::new().with("s__mark", EffectClass::Write, |text, _| CallResult::good(format!("marked {text}")));
        let tools = tools.ruled(|tool, _| if tool == "s__mark" { Ruling::Ask(String::new()) } else { Ruling::Allow });
        let ports = Ports { toolbox: Arc::new(Named { tools, is_there }), ..bed.ports(bed.log.clone()) };
        Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
    };
    let first = open(true).await;
    let sent = submit(&first, vec![call("mark", "a")]).await;
    let id = asked(&first).await;
    first.stop(Duration::ZERO).await;

    let second = open(false).await;
    second.resolve(id, say(Verdict::yes())).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "marked a", "what was agreed to is what was asked about");
    let absent = submit(&second, vec![call("mark", "b")]).await;
    assert_eq!(answer(&second, &absent).await.unwrap(), "the server is gone; nothing was done (unknown_tool)");
}

/// A server that may have changed its tool.
struct Pinned {
    tools: ScriptedTools,
    form: &'static str,
}

#[async_trait::async_trait]
impl Toolbox for Pinned {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.tools()
    }

    fn identity(&self, _: &str) -> Option<ToolIdentity> {
        Some(ToolIdentity { digest: self.form.into(), definition: self.form.into(), reads: Vec::new() })
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        self.tools.call(tool, arguments, context).await
    }
}

#[tokio::test(start_paused = true)]
async fn who_says_no_to_a_tool_that_its_server_has_changed_says_no_to_its_new_form() {
    let bed = Bed::new();
    let open = async |form| {
        let tools = ScriptedTools::new().with("mark", EffectClass::Write, |text, _| CallResult::good(format!("marked {text}")));
        let ports = Ports { toolbox: Arc::new(Pinned { tools, form }), ..bed.ports(bed.log.clone()) };
        Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap()
    };
    let first = open("old").await;
    assert_eq!(ask(&first, vec![call("mark", "a")]).await.unwrap(), "marked a");
    first.stop(Duration::ZERO).await;
    let second = open("new").await;
    let sent = submit(&second, vec![call("mark", "b")]).await;
    second.resolve(asked(&second).await, say(Verdict::no("odd"))).await.unwrap();
    let want = "not made: its server has changed this tool, and the person did not agree to the new form: \"odd\". Do without it \
                in this request.";
    assert_eq!(answer(&second, &sent).await.unwrap(), want);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_asked_the_model_reads_that_and_not_that_somebody_said_no() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let sent = submit(&society, vec![call("mark", "a")]).await;
    society.resolve(asked(&society).await, say(Verdict::no(Verdict::NOBODY_ASKED))).await.unwrap();
    let want =
        "not made: it needs a person's approval, and nobody is asked in this run. Go on without it and say what is missing.";
    assert_eq!(answer(&society, &sent).await.unwrap(), want);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_person_gave_back_as_they_were_are_not_called_changed() {
    let bed = Bed::new();
    let society = open(&bed).await;
    let sent = submit(&society, vec![call("mark", r#"{"a":1,"b":2}"#)]).await;
    let given = Verdict { arguments: Some(r#"{ "b": 2, "a": 1 }"#.into()), ..Verdict::yes() };
    society.resolve(asked(&society).await, say(given)).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), r#"mark({ "b": 2, "a": 1 })"#);
}

/// `mark` needs a word each time.
#[tokio::test(start_paused = true)]
async fn what_is_asked_about_each_time_takes_no_word_for_always() {
    let bed = Bed::new();
    let done = bed.done.clone();
    let tools = world::tools(move |class, key| done.lock().unwrap().push((class, key.to_owned())));
    let tools = tools.ruled(|_, text| match text {
        "each" => Ruling::AskEach("It is dear.".to_owned()),
        _ => Ruling::Ask(String::new()),
    });
    let ports = Ports { toolbox: Arc::new(tools), ..bed.ports(bed.log.clone()) };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    let waiting = || open_effect(&society, |kind, stage| matches!(kind, OpenKind::Approval(_)) && stage == Stage::Waiting);
    let always = || say(Verdict { always: Some(Always::Tool), ..Verdict::yes() });
    let sent = submit(&society, vec![call("mark", "x"), call("mark", "each")]).await;
    let first = waiting().await;
    society.resolve(first, always()).await.unwrap();
    let second = waiting().await;
    assert_ne!(first, second, "a word for always does not go so far");
    assert!(society.resolve(second, always()).await.unwrap_err().to_string().contains("each time"));
    society.resolve(second, say(Verdict::yes())).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "mark(x) mark(each)");
}
