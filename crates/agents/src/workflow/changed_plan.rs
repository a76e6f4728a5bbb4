//! A plan that a person has changed: parsed as strictly as a planner's, and told to the roles as what the person wants.

use serde_json::{Map, Value};

use super::engine::open;
use super::fields::Reading;
use super::phrases::phrases;
use super::response::planned;
use super::truncate::{clipped, one_line};
use super::{Component, Language, Plan, Todo, TodoList};

/// What a todo may say. What is done with it is not the person's to write; it stands there all the same when they change what
/// they were shown.
const FIELDS: [&str; 10] =
    ["id", "title", "description", "priority", "dependencies", "writes", "status", "isCurrent", "lastResult", "result"];

/// The todos that a person wants instead: a list, or an object that has one. The error says what is wrong, each with its place.
pub(super) fn parse_changed_plan(arguments: &str) -> Result<Vec<Todo>, String> {
    let value: Value = serde_json::from_str(arguments).map_err(|error| format!("it is no JSON: {error}"))?;
    let mut reading = Reading::of(TodoList::NAME);
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(object) => {
            unknown(&mut reading, object, "", &["todos"]);
            match object.get("todos") {
                Some(Value::Array(list)) => list,
                Some(_) => return Err("todos: must be a list".to_owned()),
                None => return Err("todos: is missing; must be a list of todos".to_owned()),
            }
        }
        _ => return Err("write {\"todos\": [{\"id\", \"description\", \"priority\"} …]}".to_owned()),
    };
    for (n, todo) in list.iter().enumerate() {
        if let Value::Object(todo) = todo {
            unknown(&mut reading, todo, &format!("todos[{n}]."), &FIELDS);
        }
    }
    let todos = planned(&mut reading, list);
    reading.end(Some(todos)).map(|read| read.response).map_err(|unreadable| unreadable.problems.join("; "))
}

/// Most bytes of a todo in the list of changes.
const CHANGE_BYTES: usize = 2_000;

/// What a person has changed in a plan, in their name; none if nothing is different.
pub(super) fn describe_changes(before: &Plan, after: &Plan, language: Language) -> Option<String> {
    let words = phrases(language);
    let text = |todo: &Todo| one_line(&clipped(&todo.description, CHANGE_BYTES)).into_owned();
    let what =
        |todo: &Todo| (todo.title.clone(), todo.description.clone(), todo.priority, todo.dependencies.clone(), todo.writes);
    let mut lines = Vec::new();
    for todo in open(after) {
        match open(before).find(|old| old.id == todo.id) {
            None => lines.push(format!("- {} {}: {}", words.added, todo.id, text(todo))),
            Some(old) if what(old) == what(todo) => {}
            Some(old) if old.description == todo.description => {
                let order =
                    if todo.dependencies.is_empty() { String::new() } else { format!(", {}", todo.dependencies.join(", ")) };
                lines.push(format!("- {} {} ({}{order}): {}", words.changed, todo.id, todo.priority, text(todo)));
            }
            Some(old) => {
                lines.push(format!("- {} {}: {} ({} {})", words.changed, todo.id, text(todo), words.before_it_said, text(old)));
            }
        }
    }
    let removed = open(before).filter(|old| after.todo(&old.id).is_none());
    lines.extend(removed.map(|old| format!("- {} {}: {}", words.removed, old.id, text(old))));
    (!lines.is_empty()).then(|| format!("{}\n{}", words.changed_plan, lines.join("\n")))
}

fn unknown(reading: &mut Reading, object: &Map<String, Value>, at: &str, known: &[&str]) {
    for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
        reading.problem(&format!("{at}{name}"), &format!("is not known; there are {}", known.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_plan_is_read_as_strictly_as_a_planners() {
        for (arguments, expected) in [
            ("{", "it is no JSON"),
            ("7", "write {\"todos\""),
            ("{}", "todos: is missing"),
            (r#"{"todos":"x"}"#, "todos: must be a list"),
            (r#"{"todos":[], "todo":1}"#, "todo: is not known; there are todos"),
            (r#"{"todos":[{"id":"a"}]}"#, "todos[0].description: is missing; must be a text; todos[0].priority: is missing"),
            (r#"[{"id":"a","description":"x","priority":0}]"#, "todos[0].priority: must be a whole number from 1 up, but is 0"),
            (
                r#"[{"id":"a","description":"x","priority":1,"dependecies":["zz"]}]"#,
                "todos[0].dependecies: is not known; there are id, title",
            ),
            (r#"[7]"#, "todos[0]: must be an object, but is 7"),
        ] {
            let error = parse_changed_plan(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
        let good = r#"{"todos":[{"id":"a","title":"A","description":"x","priority":1,"dependencies":[],"status":"pending"}]}"#;
        assert_eq!(parse_changed_plan(good).unwrap()[0].description, "x");
    }
}
