//! The organisation as a document: what is exported can be imported, and what is not sound is refused (P13, R206-R209).

use polis_domain::*;
use serde_json::{Value, json};

use crate::support::*;

fn bureau() -> Society {
    let mut society = four_agents();
    let make = [
        Command::CreateRole { role: role("writer") },
        Command::Spawn { agent: "d".into(), role: "writer".into(), parent: "a".into() },
        Command::Terminate { agent: "b".into(), children: Children::Cascade, reason: "done".to_owned(), now: false },
    ];
    make.into_iter().for_each(|command| drop(society.command(command, NOON).unwrap()));
    society
}

#[test]
fn the_document_has_the_documented_shape() {
    let written = serde_json::to_value(Org::of(&bureau().spine)).unwrap();
    let at = "1970-01-01T00:00:01.000Z";
    assert_eq!(
        written["roles"][1],
        json!({ "id": "writer", "name": "writer", "rolePrompt": "work", "behaviour": "plain", "createdBy": "user", "createdAt": at })
    );
    let agent = |id: &str| written["agents"].as_array().unwrap().iter().find(|agent| agent["id"] == id).unwrap().clone();
    let d = json!({ "id": "d", "roleId": "writer", "parentAgentId": "a", "createdAt": at, "terminatedAt": null, "status": "active" });
    assert_eq!(agent("d"), d);
    assert_eq!((&agent("b")["status"], &agent("b")["terminatedAt"]), (&json!("terminated"), &json!(at)));
    assert_eq!(agent("root")["parentAgentId"], Value::Null);
    let gone = json!([{ "agentId": "b", "terminatedBy": "user", "terminatedAt": at, "reason": "done" }]);
    assert_eq!(written["terminations"], gone);
}

#[test]
fn what_is_exported_is_imported_and_a_second_time_changes_nothing() {
    let old = bureau();
    let written = serde_json::to_string(&Org::of(&old.spine)).unwrap();
    let org: Org = serde_json::from_str(&written).unwrap();
    let mut new = Society::found(Limits::default());
    let import = Command::Import { org: Box::new(org.clone()), root: false };
    new.command(import.clone(), NOON).unwrap();
    let living = |society: &Society| {
        let mut agents: Vec<_> =
            society.spine.agents.iter().map(|(id, it)| (id.clone(), it.role.clone(), it.parent.clone())).collect();
        agents.sort();
        (agents, society.spine.roles.clone())
    };
    assert_eq!(living(&new), living(&old));
    let again = new.command(import, NOON);
    assert_eq!(again, Err(BadOrg("everything in it is here already".to_owned()).into()));
}

#[test]
fn a_document_that_is_not_sound_is_refused_with_the_place() {
    let role = json!({ "id": "worker", "name": "worker", "rolePrompt": "work", "behaviour": "plain" });
    let agent = |id: &str, role: &str, parent: Option<&str>| json!({ "id": id, "roleId": role, "parentAgentId": parent, "status": "active" });
    let root = || agent("root", "worker", None);
    let refused = |roles: Vec<Value>, agents: Vec<Value>| {
        let org: Org = serde_json::from_value(json!({ "roles": roles, "agents": agents })).unwrap();
        org.changes(&four_agents().spine, false).unwrap_err().0
    };
    let one = || vec![role.clone()];
    assert_eq!(refused(vec![role.clone(), role.clone()], vec![]), "role `worker` stands there twice");
    assert_eq!(refused(one(), vec![root(), root()]), "agent `root` stands there twice");
    assert_eq!(refused(one(), vec![agent("x", "worker", Some("y"))]), "`x` has a parent `y` that is not there");
    assert_eq!(refused(one(), vec![agent("x", "worker", None)]), "`x` has no parent; only root has none");
    let circle = vec![agent("x", "worker", Some("y")), agent("y", "worker", Some("x"))];
    assert_eq!(refused(one(), circle), "`x` is above itself");
    assert_eq!(refused(one(), vec![root(), agent("x", "none", Some("root"))]), "`x` has a role `none` that is not there");
    assert_eq!(
        refused(one(), vec![root(), agent("c", "worker", Some("root")), agent("a", "worker", Some("c"))]),
        "agent `a` exists here and is another one"
    );
    let hot = json!({ "id": "hot", "name": "hot", "rolePrompt": "x", "behaviour": "plain", "settings": { "temperature": 3 } });
    assert_eq!(refused(vec![hot], vec![]), "the role `hot`: `temperature` is a number from 0 to 2");
    let other = |id: &str| json!({ "id": id, "name": "other", "rolePrompt": "work", "behaviour": "plain" });
    let org: Org = serde_json::from_value(json!({ "roles": [other("writer")], "agents": [] })).unwrap();
    assert_eq!(org.changes(&bureau().spine, true).unwrap_err().0, "role `writer` exists here and is another one");
    // Root's role is the society's own, unless a person says otherwise.
    let org: Org = serde_json::from_value(json!({ "roles": [other("worker")], "agents": [] })).unwrap();
    let spine = four_agents().spine;
    assert_eq!((org.changes(&spine, false), org.left_out(&spine, false).len()), (Ok(vec![]), 1));
    let changed = org.changes(&spine, true).unwrap();
    assert!(matches!(&changed[..], [OrgChange::ChangeRole(_)]) && org.left_out(&spine, true).is_empty(), "{changed:?}");
    assert!(serde_json::from_value::<Org>(json!({ "roles": [], "agents": [{ "id": "x" }] })).is_err());
}
