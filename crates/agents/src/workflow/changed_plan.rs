//! Parses a plan that a person has changed, as strictly as a planner's.

use serde_json::{Map, Value};

use super::fields::Reading;
use super::response::planned;
use super::{Component, Todo, TodoList};

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
