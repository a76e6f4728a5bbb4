//! Each reply as the documents write it, each way to get it wrong, and what is then said.

use serde_json::json;

use super::*;

fn planner(text: &str) -> Result<Parsed<PlannerResponse>, Unreadable> {
    parse_planner_response(text)
}

fn executor(text: &str) -> Result<Parsed<ExecutorResponse>, Unreadable> {
    parse_executor_response(text, "task-2")
}

fn problems<T: std::fmt::Debug>(read: Result<Parsed<T>, Unreadable>) -> Vec<String> {
    read.unwrap_err().problems
}

#[test]
fn a_plan_is_read_as_the_documents_write_it() {
    let text = r#"{"type": "component", "component": "planner-response", "summary": "规划总结", "needsMorePlanning": false,
        "todos": [{"id": "task-1", "description": "任务描述", "priority": 1, "status": "pending"}]}"#;
    let todo = Todo { id: "task-1".into(), description: "任务描述".into(), priority: 1, ..Todo::default() };
    let response = PlannerResponse { summary: "规划总结".into(), needs_more_planning: false, todos: vec![todo] };
    assert_eq!(planner(text), Ok(Parsed { response: response.clone(), is_repaired: false }));
    assert_eq!(planner(&response.to_component().to_string()).unwrap().response, response);
}

#[test]
fn a_plan_may_have_titles_and_dependencies() {
    let text = r#"{"type": "component", "component": "planner-response", "summary": "s", "needsMorePlanning": true, "todos": [
        {"id": "b", "title": "B", "description": "d", "priority": 2, "dependencies": ["a"], "status": "completed"}]}"#;
    let todo = &planner(text).unwrap().response.todos[0];
    assert_eq!((&*todo.title, &todo.dependencies[..], todo.status), ("B", &["a".to_owned()][..], TodoStatus::Completed));
    let open = r#"{"type": "component", "component": "planner-response", "summary": "Which file?", "needsMorePlanning": true, "todos": []}"#;
    assert!(planner(open).unwrap().response.todos.is_empty());
}

#[test]
fn what_is_safe_to_repair_in_a_plan_is_repaired() {
    let expected = planner(
        r#"{"type":"component","component":"planner-response","summary":"s","needsMorePlanning":false,
            "todos":[{"id":"1","description":"d","priority":1,"dependencies":[],"status":"executing"}]}"#,
    )
    .unwrap()
    .response;
    for text in [
        // No type and no component.
        r#"{"summary":"s","needsMorePlanning":false,"todos":[{"id":"1","description":"d","priority":1,"status":"executing"}]}"#,
        // Numbers and flags in quotes, a number for an id, another word for a status.
        r#"{"summary":"s","needsMorePlanning":"False","todos":[{"id":1,"description":"d","priority":"1","status":"in_progress"}]}"#,
        // Fields in `props`.
        r#"{"type":"component","component":"planner-response","props":{"summary":"s","needsMorePlanning":false,
            "todos":[{"id":"1","description":"d","priority":1.0,"status":"EXECUTING","dependencies":null}]}}"#,
        // Thoughts, a fence, prose, a comma too many.
        "<think>hm {\"summary\": \"no\"}</think>Here:\n```json\n{\"type\":\"component\",\"component\":\"planner-response\",\"summary\":\"s\",\
         \"needsMorePlanning\":false,\"todos\":[{\"id\":\"1\",\"description\":\"d\",\"priority\":1,\"status\":\"executing\",},],}\n```\nOK?",
        // Quotes of another kind.
        "{“summary”：“s”，“needsMorePlanning”：false，“todos”：[{“id”：“1”，“description”：“d”，“priority”：1，“status”：“executing”}]}",
    ] {
        assert_eq!(planner(text), Ok(Parsed { response: expected.clone(), is_repaired: true }), "{text}");
    }
}

#[test]
fn a_planner_is_told_everything_that_is_wrong_at_once() {
    let text = r#"{"type": "plan", "component": "executor-response", "todos": [{"id": "a", "priority": "high"}, 7, {"id": {}, "description": " ",
        "priority": 0, "status": "later", "dependencies": [1, {}]}]}"#;
    assert_eq!(
        problems(planner(text)),
        [
            "type: must be \"component\", but is \"plan\"",
            "component: must be \"planner-response\", but is \"executor-response\"",
            "summary: is missing; must be a text",
            "needsMorePlanning: is missing; must be true or false",
            "todos[1]: must be an object, but is 7",
            "todos[0].description: is missing; must be a text",
            "todos[0].priority: must be a whole number from 1 up, but is \"high\"",
            "todos[2].id: must be a text, but is {}",
            "todos[2].description: is empty",
            "todos[2].priority: must be a whole number from 1 up, but is 0",
            "todos[2].dependencies[1]: must be a text, but is {}",
            "todos[2].status: must be one of \"pending\", \"executing\", \"completed\", \"failed\", \"skipped\", but is \"later\"",
        ]
    );
    let error = planner("I will do it.").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Your reply could not be used. It must be one JSON object with \"type\": \"component\" and \"component\": \"planner-response\".\n\
         What is wrong:\n- there is no JSON object in the reply\n\
         Write the whole corrected object again: JSON alone, no words around it."
    );
}

#[test]
fn a_plan_without_todos_must_say_what_it_needs() {
    let text =
        r#"{"type": "component", "component": "planner-response", "summary": "s", "needsMorePlanning": false, "todos": []}"#;
    assert_eq!(
        problems(planner(text)),
        ["todos: is empty; write at least one todo, or set needsMorePlanning to true and say what you need"]
    );
    let list = r#"{"type": "component", "component": "planner-response", "summary": "s", "needsMorePlanning": 1, "todos": {}}"#;
    assert_eq!(
        problems(planner(list)),
        ["needsMorePlanning: must be true or false, but is 1", "todos: must be a list, but is {}"]
    );
}

#[test]
fn a_plan_that_does_not_fit_together_is_told_the_same_way() {
    let error = Unreadable::from(PlanError::Twice("a".into()));
    assert!(error.to_string().contains("- todos: the id \"a\" is used more than once"));
}

/// A reply of an executor with these fields.
fn said(fields: Value) -> String {
    let mut object = json!({ "type": "component", "component": "executor-response", "summary": "3 lines", "todos": [] });
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object.to_string()
}

#[test]
fn an_executor_is_read_as_the_documents_write_it() {
    let text = r#"{"type": "component", "component": "executor-response", "summary": "任务执行总结", "taskCompleted": false,
        "shouldContinue": true, "nextAction": "continue", "todos": [
        {"id": "task-1", "description": "任务描述", "priority": 1, "status": "completed"},
        {"id": "task-2", "description": "当前任务描述", "priority": 2, "status": "executing", "isCurrent": true}]}"#;
    let read = executor(text).unwrap();
    assert!(!read.is_repaired);
    assert_eq!(read.response.verdict("task-2"), Verdict::Continue);
    assert_eq!(
        read.response.states(),
        [("task-1".to_owned(), TodoStatus::Completed), ("task-2".to_owned(), TodoStatus::Executing)]
    );
    assert_eq!(executor(&read.response.to_component().to_string()).unwrap().response, read.response);
}

#[test]
fn completion_is_decided_by_the_first_field_that_says_so() {
    let done = json!([{ "id": "task-2", "status": "completed" }]);
    let other = json!([{ "id": "task-1", "status": "completed" }, { "id": "task-2", "status": "executing" }]);
    for (fields, verdict) in [
        (json!({ "taskCompleted": true }), Verdict::Completed),
        (json!({ "taskCompleted": true, "nextAction": "retry", "shouldContinue": true }), Verdict::Completed),
        (json!({ "taskCompleted": false, "nextAction": "complete", "todos": done }), Verdict::Continue),
        (json!({ "taskCompleted": false, "todos": done }), Verdict::Continue),
        (json!({ "nextAction": "complete" }), Verdict::Completed),
        (json!({ "nextAction": "continue", "todos": done }), Verdict::Completed),
        (json!({ "todos": done }), Verdict::Completed),
        (json!({ "todos": other }), Verdict::Continue),
        (json!({ "taskCompleted": false }), Verdict::Continue),
        (json!({ "taskCompleted": false, "shouldContinue": true, "nextAction": "continue" }), Verdict::Continue),
        (json!({ "taskCompleted": false, "nextAction": "skip" }), Verdict::Skipped),
        (json!({ "taskCompleted": false, "nextAction": "skip", "shouldContinue": false }), Verdict::Skipped),
        (json!({ "taskCompleted": false, "nextAction": "retry", "shouldContinue": false }), Verdict::Retry),
        (json!({ "taskCompleted": false, "shouldContinue": false }), Verdict::Failed),
        (json!({ "taskCompleted": false, "shouldContinue": false, "nextAction": "continue" }), Verdict::Failed),
        (json!({ "todos": [{ "id": "task-2", "status": "failed" }] }), Verdict::Failed),
        (json!({ "todos": [{ "id": "task-2", "status": "skipped" }] }), Verdict::Skipped),
    ] {
        let response = executor(&said(fields.clone())).unwrap_or_else(|error| panic!("{fields}: {error}")).response;
        assert_eq!(response.verdict("task-2"), verdict, "{fields}");
        assert_eq!(response.is_completed("task-2"), verdict == Verdict::Completed, "{fields}");
    }
}

#[test]
fn words_never_decide_that_a_task_is_done() {
    let text = said(json!({ "taskCompleted": false, "summary": "任务已完成。The task is completed." }));
    assert_eq!(executor(&text).unwrap().response.verdict("task-2"), Verdict::Continue);
}

#[test]
fn an_executor_is_told_what_is_wrong() {
    for (fields, expected) in [
        (json!({}), "taskCompleted: is missing; must be true or false"),
        (json!({ "todos": [{ "id": "task-1", "status": "completed" }] }), "taskCompleted: is missing; must be true or false"),
        (json!({ "taskCompleted": "yes" }), "taskCompleted: must be true or false, but is \"yes\""),
        (json!({ "taskCompleted": true, "summary": "" }), "summary: is empty"),
        (json!({ "taskCompleted": true, "summary": null }), "summary: is missing; must be a text"),
        (
            json!({ "taskCompleted": true, "summary": "任务已完成！" }),
            "summary: only says that it is done; write the result itself: what was found, made or changed",
        ),
        (
            json!({ "taskCompleted": true, "nextAction": "finish" }),
            "nextAction: must be one of \"continue\", \"complete\", \"skip\", \"retry\", but is \"finish\"",
        ),
        (json!({ "taskCompleted": true, "shouldContinue": 0 }), "shouldContinue: must be true or false, but is 0"),
        (json!({ "taskCompleted": true, "todos": "none" }), "todos: must be a list, but is \"none\""),
        (json!({ "taskCompleted": true, "todos": [{ "id": "task-2" }] }), "todos[0].status: is missing; must be a status"),
    ] {
        assert_eq!(problems(executor(&said(fields.clone()))), [expected], "{fields}");
    }
    let without = r#"{"type": "component", "component": "executor-response", "summary": "3 lines", "taskCompleted": true}"#;
    assert!(executor(without).unwrap().is_repaired, "the list of todos is wanted, but nothing hangs on it");
}

/// A reply of a verifier with these fields.
fn judged_so(fields: Value) -> String {
    let mut object = json!({ "type": "component", "component": "verifier-response", "overallFeedback": "f", "tasks": [] });
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object.to_string()
}

#[test]
fn a_verifier_is_read_as_the_documents_write_it() {
    let text = judged_so(
        json!({ "allCompleted": true, "userNeedsSatisfied": true, "summary": "There are **3** lines.", "improvements": [],
        "tasks": [{ "id": "task-1", "completed": true, "feedback": "ok", "evidence": ["c1"] }] }),
    );
    let read = parse_verifier_response(&text).unwrap();
    assert!(!read.is_repaired && read.response.is_final());
    assert_eq!(read.response.tasks[0].evidence, ["c1"]);
    assert_eq!(parse_verifier_response(&read.response.to_component().to_string()).unwrap().response, read.response);

    for (all, needs) in [(false, false), (true, false), (false, true)] {
        let text = judged_so(
            json!({ "allCompleted": all, "userNeedsSatisfied": needs, "summary": "not yet", "improvements": ["Read b.txt"] }),
        );
        let response = parse_verifier_response(&text).unwrap().response;
        assert!(!response.is_final());
        assert_eq!(
            (&*response.summary, &response.improvements[..]),
            ("", &["Read b.txt".to_owned()][..]),
            "no answer without both"
        );
    }
}

#[test]
fn a_verifier_is_told_what_is_wrong() {
    let both = |more: Value| {
        let mut fields = json!({ "allCompleted": true, "userNeedsSatisfied": true, "summary": "There are 3." });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        judged_so(fields)
    };
    for (text, expected) in [
        (both(json!({ "summary": "" })), "summary: is missing; with both flags true it must be the whole answer for the user"),
        (
            both(json!({ "summary": null })),
            "summary: is missing; with both flags true it must be the whole answer for the user",
        ),
        (
            both(json!({ "summary": "字".repeat(40_001) })),
            "summary: has 40001 characters; at most 40000 are allowed, so write it shorter",
        ),
        (both(json!({ "tasks": null })), "tasks: is missing; must be a list with a judgement for each task"),
        (both(json!({ "tasks": [{ "completed": true }] })), "tasks[0].id: is missing; must be a text"),
        (both(json!({ "tasks": [{ "id": "a" }] })), "tasks[0].completed: is missing; must be true or false"),
        (
            judged_so(json!({ "allCompleted": false, "userNeedsSatisfied": true, "improvements": [] })),
            "improvements: is missing; unless both flags are true it must say what to do better, one text each",
        ),
        (judged_so(json!({ "allCompleted": true, "summary": "x" })), "userNeedsSatisfied: is missing; must be true or false"),
    ] {
        assert_eq!(problems(parse_verifier_response(&text)), [expected], "{text}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_is_told_with_its_place() {
    let todo = |id: &str, title: &str, description: &str| {
        json!({ "component": "planner-response", "summary": "s", "needsMorePlanning": false,
                "todos": [{ "id": id, "title": title, "description": description, "priority": 1 }] })
        .to_string()
    };
    let long = "字".repeat(8_001);
    for (text, expected) in [
        (todo(&long, "t", "d"), "todos[0].id: has 8001 characters; at most 64 are allowed, so write it shorter"),
        (todo("a", &long, "d"), "todos[0].title: has 8001 characters; at most 300 are allowed, so write it shorter"),
        (todo("a", "t", &long), "todos[0].description: has 8001 characters; at most 8000 are allowed, so write it shorter"),
        (todo("a", "t", &long[3..]), ""),
        (
            todo("a", "t", &"x".repeat(9_000_000)),
            "the reply has 9000135 bytes; at most 196608 are allowed: write a shorter one, and put what is long into a file",
        ),
        (
            todo("a", "t", "d").replacen("{", &format!("{{\"x\":{}{},", "[".repeat(40), "]".repeat(40)), 1),
            "objects and lists stand more than 32 deep in each other; write it flat, as described",
        ),
    ] {
        match expected {
            "" => assert!(planner(&text).is_ok()),
            expected => assert_eq!(problems(planner(&text)), [expected]),
        }
    }
    let deep = "{\"a\":".repeat(100_000);
    assert!(problems(planner(&deep))[0].contains(" bytes; at most "), "{deep}");
    let two = [todo("a", "t", "d"), todo("b", "t", "d")].join("\n");
    assert_eq!(
        problems(planner(&two)),
        ["there are two different \"planner-response\" objects in the reply; write the one that counts"]
    );
    assert!(planner(&[todo("a", "t", "d"), todo("a", "t", "d")].join("\n")).is_ok());
}

#[test]
fn what_pages_show_has_a_type_and_a_name() {
    let todo = Todo { id: "a".into(), description: "d".into(), priority: 1, is_current: true, ..Todo::default() };
    assert_eq!(
        json!(TodoList { todos: vec![todo] }.to_component()),
        json!({ "type": "component", "component": "todo-list", "props": { "todos": [
            { "id": "a", "title": "", "description": "d", "priority": 1, "dependencies": [], "status": "pending", "isCurrent": true }] } })
    );
    let summary = SummaryResponse { summary: "3".into(), verified: false, missing: vec!["b.txt".into()] };
    assert_eq!(
        json!(summary.to_component()),
        json!({ "type": "component", "component": "summary-response", "summary": "3", "verified": false, "missing": ["b.txt"] })
    );
}
