//! Tasks of many turns: what was said, found and done earlier is needed later.

use polis_domain::EffectClass;
use serde_json::json;

use super::task::{Area, Ask, Gives, Task};

fn new(name: &str) -> Task {
    Task::new(Area::Conversations, name)
}

/// So many turns about other things.
fn chat(task: Task, count: usize) -> Task {
    const TOPICS: [&str; 5] = ["the garden", "the trains", "a book", "the weekend", "some music"];
    (0..count).fold(task, |task, n| {
        task.turn(Ask::remark(format!("Remark {n}: today it was about {}, and that went well enough.", TOPICS[n % 5])))
    })
}

pub(crate) fn conversations() -> Vec<Task> {
    let mut tasks: Vec<Task> = [5, 15, 30, 60].map(remark_after).into();
    tasks.extend([3, 30].map(found_after));
    tasks.extend([4, 24].map(given_once_after));
    tasks.push(many_remarks(12));
    tasks.push(many_results(8));
    tasks.push(go_on_writing(30));
    tasks.push(go_on_reading(34));
    tasks.push(
        chat(new("a changed mind").turn(Ask::remark("Paint it in the color first_color=Crimson.")), 3)
            .turn(Ask::remark("No, rather in second_color=Ivory."))
            .turn(Ask::new("Which colors did I name, in order?").answer("{first_color}, then {second_color}")),
    );
    tasks.push(
        chat(
            new("written once in a long conversation")
                .file_after("name.txt", "Tamsin\n")
                .turn(Ask::remark("My name is name=Tamsin."))
                .turn(Ask::new("Write my name into name.txt.").write("name.txt", "{name}\n").answer("Done.")),
            8,
        )
        .turn(Ask::new("See to it that name.txt has my name.").write("name.txt", "{name}\n").answer("It has.")),
    );
    tasks.push(
        chat(new("中文的长对话").turn(Ask::remark("我的工号是 badge=B-909。")), 6)
            .turn(Ask::new("我的工号是多少？").answer("{badge}")),
    );
    tasks
}

/// A remark is asked about after so many turns. From 25 turns on the conversation is compressed meanwhile.
fn remark_after(turns: usize) -> Task {
    let task = new(&format!("a remark of {turns} turns ago")).turn(Ask::remark("My locker has the number locker=N-3371."));
    chat(task, turns).turn(Ask::new("What number has my locker?").answer("{locker}"))
}

/// What a tool returned, which the answer did not repeat, is asked about after so many turns.
fn found_after(turns: usize) -> Task {
    let task = new(&format!("a result of {turns} turns ago"))
        .reading("crm__contact", "contact=Odalys, street=Elm-12")
        .turn(Ask::new("Look the contact up.").fact("crm__contact", json!({}), "contact").answer("I have looked."));
    chat(task, turns).turn(Ask::new("In which street is that?").fact("crm__contact", json!({}), "street").answer("{street}"))
}

/// The same for a result that can be had only once.
fn given_once_after(turns: usize) -> Task {
    let task = new(&format!("a code of {turns} turns ago"))
        .tool("vault__code", EffectClass::Read, "Gives a code once.", Gives::Once("code=K7-Q2".to_owned()))
        .turn(Ask::new("Get the code of the vault.").fact("vault__code", json!({}), "code").answer("I have it."));
    chat(task, turns).turn(Ask::new("What is the code?").fact("vault__code", json!({}), "code").answer("{code}"))
}

fn many_remarks(count: usize) -> Task {
    let task = (1..=count).fold(new(&format!("{count} remarks at once")), |task, n| {
        task.turn(Ask::remark(format!("Keep in mind number {n}: item{n}=I{}.", n * 977)))
    });
    let answer = (1..=count).map(|n| format!("{{item{n}}}")).collect::<Vec<_>>().join(", ");
    task.turn(Ask::new("Now say all the items.").answer(&answer))
}

/// Long results of many turns: the older ones are shortened. The fact that is wanted is at the end of the oldest one.
fn many_results(count: usize) -> Task {
    let task = (1..=count).fold(new(&format!("{count} long results")), |task, n| {
        let (file, key) = (format!("book{n}.txt"), format!("end{n}"));
        let content = format!("{}{key}=E{}\n", "a line of the book that says nothing about its end\n".repeat(200), n * 613);
        let ask = Ask::new(format!("Read the book {file}.")).read(&file, &key).answer("I have read it.");
        task.file(&file, content).turn(ask)
    });
    task.turn(
        Ask::new("How do the first and the last book end?")
            .read("book1.txt", "end1")
            .read(&format!("book{count}.txt"), &format!("end{count}"))
            .answer(&format!("{{end1}} and {{end{count}}}")),
    )
}

/// More writes than a turn has rounds.
fn go_on_writing(count: usize) -> Task {
    let with_steps = |ask: Ask| {
        (1..=count).fold(ask, |ask, n| ask.done("mail__send", json!({ "id": format!("M-{n}-") }), &format!("M-{n}-")))
    };
    new(&format!("{count} writes and a second turn to finish them"))
        .writing("mail__send")
        .turn(
            with_steps(Ask::new(format!("Send the {count} mails M-1- to M-{count}-.")))
                .partial()
                .answer("I sent some of them."),
        )
        .turn(with_steps(Ask::new("Please finish the mails.")).answer("All are sent."))
}

/// More reads than a turn has rounds.
fn go_on_reading(count: usize) -> Task {
    let with_steps = |ask: Ask| (1..=count).fold(ask, |ask, n| ask.read(&format!("page{n}.txt"), &format!("page{n}")));
    let task = new(&format!("{count} reads and a second turn to finish them"));
    let task = (1..=count).fold(task, |task, n| task.file(&format!("page{n}.txt"), format!("page{n}=G{}\n", n * 53)));
    task.turn(with_steps(Ask::new(format!("Read the {count} pages."))).partial().answer("The first is {page1}."))
        .turn(with_steps(Ask::new("Please finish the pages.")).answer(&format!("{{page1}} … {{page{count}}}")))
}
