//! Order, circles, and new plans over old ones.

use proptest::prelude::*;

use super::*;
use TodoStatus::{Completed, Executing, Failed, Pending, Skipped};

fn todo(id: &str, priority: u32, dependencies: &[&str]) -> Todo {
    let dependencies = dependencies.iter().map(|&id| id.to_owned()).collect();
    Todo { id: id.to_owned(), description: format!("do {id}"), priority, dependencies, ..Todo::default() }
}

fn ids<'a>(todos: impl IntoIterator<Item = &'a Todo>) -> Vec<&'a str> {
    todos.into_iter().map(|todo| &*todo.id).collect()
}

fn statuses(plan: &Plan) -> Vec<(&str, TodoStatus)> {
    plan.todos().iter().map(|todo| (&*todo.id, todo.status)).collect()
}

#[test]
fn the_most_important_free_todos_are_next() {
    let mut plan = Plan::new(vec![todo("c", 3, &[]), todo("a", 1, &["c"]), todo("b", 2, &[]), todo("d", 2, &[])]).unwrap();
    assert_eq!(ids(plan.runnable(9)), ["b", "d", "c"], "a waits for c; of two alike, the first that was written");
    assert_eq!(ids(plan.runnable(1)), ["b"]);
    plan.begin("b");
    assert!(plan.todo("b").unwrap().is_current);
    assert_eq!(ids(plan.runnable(2)), ["d"], "one of two is at work already");
    assert_eq!(ids(plan.runnable(1)), [""; 0]);
    plan.settle("b", Completed, "found 3");
    plan.settle("c", Skipped, "not needed");
    assert_eq!(ids(plan.runnable(9)), ["a", "d"]);
    assert!(!plan.is_settled());
    assert_eq!(plan.todo("b").unwrap().result, "found 3");
}

#[test]
fn what_depends_on_a_failure_is_not_begun() {
    let mut plan = Plan::new(vec![todo("a", 1, &[]), todo("b", 1, &["a"]), todo("c", 1, &["b"]), todo("d", 1, &[])]).unwrap();
    plan.begin("a");
    plan.settle("a", Failed, "no such file");
    assert_eq!(statuses(&plan), [("a", Failed), ("b", Failed), ("c", Failed), ("d", Pending)]);
    assert!(plan.todo("c").unwrap().result.contains("depends on \"b\""));
    plan.settle("d", Completed, "x");
    assert!(plan.is_settled());
}

#[test]
fn todos_that_do_not_fit_together_are_refused_in_words() {
    let long = "x".repeat(65);
    let many = (0..51).map(|number| todo(&format!("t{number}"), 1, &[])).collect();
    for (todos, said) in [
        (vec![], "todos: is empty; write at least one todo"),
        (many, "todos: has 51 todos, more than 50; put some of them together"),
        (vec![todo("a", 1, &[]), todo(" ", 1, &[])], "todos[1].id: must be 1 to 64 characters, such as \"task-1\""),
        (vec![todo(&long, 1, &[])], "todos[0].id: must be 1 to 64 characters, such as \"task-1\""),
        (
            vec![todo("a", 1, &[]), todo("a", 1, &[])],
            "todos: the id \"a\" is used more than once; give each todo an id of its own",
        ),
        (
            vec![todo("a", 1, &["b"])],
            "todos: \"a\" depends on \"b\", which is not in the plan; name ids of this plan, or leave it out",
        ),
        (
            vec![todo("x", 1, &["a"]), todo("a", 1, &["b"]), todo("b", 1, &["c"]), todo("c", 1, &["a"])],
            "todos: a -> b -> c -> a wait for each other in a circle; take one of these dependencies out",
        ),
        (vec![todo("a", 1, &["a"])], "todos: a -> a wait for each other in a circle; take one of these dependencies out"),
    ] {
        assert_eq!(Plan::new(todos).unwrap_err().to_string(), said);
    }
}

#[test]
fn nothing_is_done_when_a_plan_begins() {
    let told = Todo { status: Completed, result: "made up".into(), is_current: true, ..todo("a", 1, &[]) };
    assert_eq!(Plan::new(vec![told]).unwrap().todos(), [todo("a", 1, &[])]);
}

#[test]
fn an_executor_moves_other_todos_only_forward() {
    let names = ["a", "b", "c", "d", "e"];
    let mut plan = Plan::new(names.map(|id| todo(id, 1, &[])).to_vec()).unwrap();
    plan.begin("a");
    plan.begin("b");
    plan.settle("c", Completed, "before");
    let said = [("a", Completed), ("b", Completed), ("c", Pending), ("d", Completed), ("e", Executing), ("zzz", Completed)];
    plan.apply("a", &said.map(|(id, status)| (id.to_owned(), status)));
    assert_eq!(statuses(&plan), [("a", Executing), ("b", Executing), ("c", Completed), ("d", Completed), ("e", Pending)]);
}

#[test]
fn what_the_verifier_does_not_accept_is_open_again() {
    let mut plan = Plan::new(["a", "b", "c"].map(|id| todo(id, 1, &[])).to_vec()).unwrap();
    plan.settle("a", Completed, "A");
    plan.settle("b", Completed, "B");
    plan.settle("c", Failed, "C");
    let judged = |id: &str, completed| TaskJudgement { id: id.into(), completed, feedback: "half".into(), evidence: vec![] };
    plan.take_judgements(&[judged("a", true), judged("b", false), judged("c", false), judged("x", false)]);
    assert_eq!(statuses(&plan), [("a", Completed), ("b", Pending), ("c", Failed)]);
    assert_eq!(plan.todo("b").unwrap().result, "half");
}

#[test]
fn a_new_plan_keeps_what_is_done() {
    let mut plan = Plan::new(vec![todo("a", 1, &[]), todo("b", 2, &[]), todo("c", 3, &[]), todo("d", 3, &[])]).unwrap();
    plan.settle("a", Completed, "A");
    plan.settle("b", Failed, "no");
    plan.settle("c", Completed, "C");
    plan.reopen("c", "the verifier says: wrong");
    let again = Todo { description: "do  b otherwise".into(), ..todo("b", 1, &["a"]) };
    let new = plan.replan(vec![todo("a", 1, &[]), again, todo("c", 2, &["b"]), todo("n", 3, &["c"])]).unwrap();
    assert_eq!(statuses(&new), [("a", Completed), ("b", Pending), ("c", Pending), ("n", Pending)], "d is gone");
    assert_eq!(new.todo("a").unwrap().result, "A");
    assert_eq!(new.todo("b").unwrap().result, "");
    assert_eq!(ids(new.runnable(9)), ["b"]);
}

#[test]
fn what_was_skipped_holds_up_nobody_in_a_new_plan() {
    let mut plan = Plan::new(vec![todo("a", 1, &[]), todo("b", 2, &[])]).unwrap();
    plan.settle("a", Skipped, "not needed");
    plan.settle("b", Failed, "no");
    let new = plan.replan(vec![todo("n", 1, &["a"])]).unwrap();
    assert_eq!((statuses(&new), ids(new.runnable(9))), (vec![("n", Pending)], vec!["n"]));
    let again = plan.replan(vec![todo("a", 1, &[]), todo("n", 1, &["a"])]).unwrap();
    assert_eq!(again.todo("n").unwrap().dependencies, ["a"], "it is planned again");
    assert!(plan.replan(vec![todo("n", 1, &["b"])]).is_err(), "what failed is not there any more");
}

#[test]
fn new_work_under_a_finished_id_is_not_taken_for_done() {
    let mut plan = Plan::new(vec![todo("task-1", 1, &[]), todo("task-2", 2, &[])]).unwrap();
    plan.settle("task-1", Completed, "one");
    plan.settle("task-2", Completed, "two");
    let other = Todo { description: "something else".into(), ..todo("task-1", 1, &[]) };
    let new = plan.replan(vec![other.clone(), todo("x", 2, &["task-1"])]).unwrap();
    assert_eq!(statuses(&new), [("task-1", Completed), ("task-2", Completed), ("task-1-2", Pending), ("x", Pending)]);
    assert_eq!(new.todo("x").unwrap().dependencies, ["task-1-2"], "the planner meant its own");

    let named = Todo { status: Completed, ..other };
    let new = plan.replan(vec![named, todo("x", 2, &["task-1"])]).unwrap();
    assert_eq!(new.todo("x").unwrap().dependencies, ["task-1"]);
    assert_eq!(new.todo("task-1").unwrap().description, "do task-1");
}

#[test]
fn the_same_work_is_not_planned_twice() {
    let mut plan = Plan::new(vec![todo("a", 1, &[])]).unwrap();
    plan.settle("a", Completed, "A");
    let same = Todo { id: "z".into(), ..todo("a", 1, &[]) };
    let new = plan.replan(vec![same, todo("b", 1, &["z"])]).unwrap();
    assert_eq!(statuses(&new), [("a", Completed), ("b", Pending)]);
    assert_eq!(new.todo("b").unwrap().dependencies, ["a"]);
    assert_eq!(plan.replan(vec![todo("b", 1, &[]), todo("b", 1, &[])]), Err(PlanError::Twice("b".into())));
    assert_eq!(ids(plan.replan(vec![]).unwrap().todos()), ["a"]);
}

proptest! {
    /// Whatever fits together can be done to its end, each todo after those it depends on.
    #[test]
    fn a_plan_never_gets_stuck(
        edges in prop::collection::vec((0..12usize, 0..12usize), 0..30),
        priorities in prop::collection::vec(1..5u32, 12),
        at_once in 1..4usize,
    ) {
        let name = |number: usize| format!("t{number}");
        let todos: Vec<Todo> = (0..12).map(|number| {
            let needs: Vec<String> = edges.iter().filter(|(from, _)| *from == number).map(|(_, to)| name(*to)).collect();
            Todo { dependencies: needs, ..todo(&name(number), priorities[number], &[]) }
        }).collect();
        match Plan::new(todos) {
            Err(PlanError::Circle(path)) => {
                prop_assert_eq!(path.first(), path.last());
                for pair in path.windows(2) {
                    prop_assert!(edges.iter().any(|(from, to)| name(*from) == pair[0] && name(*to) == pair[1]));
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
            Ok(mut plan) => {
                while !plan.is_settled() {
                    let next: Vec<String> = plan.runnable(at_once).iter().map(|todo| todo.id.clone()).collect();
                    prop_assert!(!next.is_empty() && next.len() <= at_once);
                    next.iter().for_each(|id| plan.begin(id));
                    for id in &next {
                        let needs = plan.todo(id).unwrap().dependencies.clone();
                        prop_assert!(needs.iter().all(|id| plan.todo(id).unwrap().status == Completed));
                    }
                    next.iter().for_each(|id| plan.settle(id, Completed, "done"));
                }
            }
        }
    }
}

#[test]
fn a_plan_remembers_a_bounded_number_of_failed_attempts_and_none_that_was_not_begun() {
    let mut plan = Plan::new(vec![todo("a", 1, &[]), todo("b", 2, &["a"])]).unwrap();
    for n in 0..20 {
        plan.settle("a", Failed, &format!("{n} {}", "x".repeat(1_000)));
        plan = plan.replan(vec![todo("a", 1, &[]), todo("b", 2, &["a"])]).unwrap();
    }
    let tried = plan.tried();
    assert_eq!((tried.len(), &tried[0].why[..2], &tried[11].why[..3]), (12, "8 ", "19 "));
    assert!(tried.iter().all(|attempt| attempt.why.len() <= 400 && !attempt.was_refused));
}
