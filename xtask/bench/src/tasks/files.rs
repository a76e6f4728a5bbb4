//! Tasks about files of the workspace, and tasks about tools.

use polis_domain::EffectClass;
use serde_json::json;

use super::task::{Area, Ask, Gives, Task};

fn new(name: &str) -> Task {
    Task::new(Area::Files, name)
}

pub(crate) fn files() -> Vec<Task> {
    let mut tasks = vec![
        new("read one file")
            .file("app.conf", "port=8471\n")
            .turn(Ask::new("Which port does app.conf set?").read("app.conf", "port").answer("port={port}")),
        new("follow the name in an index").file("index.txt", "newest=orders7\n").file("orders7", "total=5512\n").turn(
            Ask::new("What is the total of the newest orders? index.txt names their file.")
                .read("index.txt", "newest")
                .read("{newest}", "total")
                .answer("total={total}"),
        ),
        new("search for a setting")
            .file("src/a.conf", "host=Alder\n")
            .file("src/deep/b.conf", "color=Teal\n")
            .file("src/deep/c.conf", "limit=7741\n")
            .turn(
                Ask::new("Where is the limit set, and to what?")
                    .fact("search_files", json!({ "text": "limit=" }), "limit")
                    .answer("limit={limit}"),
            ),
        new("list a folder and read what is there").file("inbox/letter.txt", "sender=Ingrid\n").turn(
            Ask::new("Who sent the letter in the folder inbox?")
                .done("list_files", json!({ "path": "inbox" }), "inbox")
                .read("inbox/letter.txt", "sender")
                .answer("sender={sender}"),
        ),
        new("write a report from two files")
            .file("a.txt", "apples=311\n")
            .file("b.txt", "pears=877\n")
            .file_after("report.md", "apples 311, pears 877\n")
            .turn(
                Ask::new("Write report.md with the counts of a.txt and b.txt.")
                    .read("a.txt", "apples")
                    .read("b.txt", "pears")
                    .write("report.md", "apples {apples}, pears {pears}\n")
                    .answer("report.md has apples={apples} and pears={pears}"),
            ),
        new("write into a new folder").file("seed.txt", "seed=Quartz\n").file_after("out/deep/seed.txt", "Quartz\n").turn(
            Ask::new("Put the seed of seed.txt into out/deep/seed.txt.")
                .read("seed.txt", "seed")
                .write("out/deep/seed.txt", "{seed}\n")
                .answer("out/deep/seed.txt has seed={seed}"),
        ),
        new("edit one line")
            .file("app.toml", "# settings\nlevel=debug\nmode=fast\n")
            .file_after("app.toml", "# settings\nlevel=info\nmode=fast\n")
            .turn(
                Ask::new("Set the level in app.toml to info, and tell me the mode.")
                    .read("app.toml", "mode")
                    .done("edit_file", edit("app.toml", "level=debug", "level=info"), "app.toml")
                    .answer("mode={mode}"),
            ),
        new("rename a word in three files")
            .file("a.md", "owner=Kofi\nblue\n")
            .file("b.md", "blue\n")
            .file("c.md", "blue\n")
            .file_after("a.md", "owner=Kofi\ngreen\n")
            .file_after("b.md", "green\n")
            .file_after("c.md", "green\n")
            .turn(
                Ask::new("Replace blue by green in a.md, b.md and c.md, and tell me the owner.")
                    .read("a.md", "owner")
                    .done("edit_file", edit("a.md", "blue", "green"), "a.md")
                    .done("edit_file", edit("b.md", "blue", "green"), "b.md")
                    .done("edit_file", edit("c.md", "blue", "green"), "c.md")
                    .answer("Done. owner={owner}"),
            ),
        new("read the end of a long file")
            .file("log.txt", format!("{}last_entry=Merlin\n", "nothing of interest happened at this time\n".repeat(2_500)))
            .turn(
                Ask::new("What is the last entry of log.txt?")
                    .read("log.txt", "last_entry")
                    .fact("read_file", json!({ "path": "log.txt", "start_line": 2_400 }), "last_entry")
                    .answer("last_entry={last_entry}"),
            ),
        new("a file that is missing").file("new/place.txt", "place=Lund\n").turn(
            Ask::new("Read place.txt; it may have moved to the folder new.")
                .read("place.txt", "place")
                .read("new/place.txt", "place")
                .answer("place={place}"),
        ),
        new("a value that a write destroyed")
            .file("db.conf", "password_hint=Saffron\n")
            .file_after("db.conf", "emptied\n")
            .turn(Ask::new("Read db.conf.").read("db.conf", "password_hint").answer("I have read it."))
            .turn(Ask::new("Now overwrite db.conf with the word emptied.").write("db.conf", "emptied\n").answer("Done."))
            .turn(
                Ask::new("What was the hint in it before?").read("db.conf", "password_hint").answer("It was {password_hint}."),
            ),
        new("a second look at the same files")
            .file("x.txt", "north=Boreas\n")
            .file("y.txt", "south=Notus\n")
            .turn(Ask::new("Read x.txt and y.txt.").read("x.txt", "north").read("y.txt", "south").answer("I have read both."))
            .turn(Ask::new("What is the north?").read("x.txt", "north").answer("{north}"))
            .turn(Ask::new("And the south?").read("y.txt", "south").answer("{south}")),
        new("一个中文请求")
            .file("设置.txt", "city=Suzhou\n")
            .turn(Ask::new("请读取 设置.txt，告诉我城市是什么。").read("设置.txt", "city").answer("city={city}")),
    ];
    tasks.extend([2, 5, 9].map(read_in_parallel));
    tasks.extend([3, 6].map(follow_a_chain));
    tasks.extend([4, 12].map(write_many));
    tasks
}

fn edit(path: &str, old: &str, new: &str) -> serde_json::Value {
    json!({ "path": path, "edits": [{ "old_text": old, "new_text": new }] })
}

fn read_in_parallel(count: usize) -> Task {
    let keys: Vec<usize> = (1..=count).collect();
    let answer = keys.iter().map(|n| format!("value{n}={{value{n}}}")).collect::<Vec<_>>().join(", ");
    let ask = Ask::new(format!("What are the values in the {count} files part1.txt and following?")).answer(&answer);
    let ask = keys.iter().fold(ask, |ask, n| ask.read(&format!("part{n}.txt"), &format!("value{n}")));
    let task = new(&format!("read {count} files in one reply")).parallel().turn(ask);
    keys.iter().fold(task, |task, n| task.file(&format!("part{n}.txt"), format!("value{n}=V{}\n", n * 7_919)))
}

fn follow_a_chain(count: usize) -> Task {
    let ask = (1..count)
        .fold(Ask::new("Follow the names from start.txt on. What is the treasure?").read("start.txt", "next1"), |ask, n| {
            ask.read(&format!("{{next{n}}}"), &format!("next{}", n + 1))
        });
    let ask = ask.read(&format!("{{next{count}}}"), "treasure").answer("treasure={treasure}");
    let task = new(&format!("follow {count} names")).file("start.txt", "next1=cave1\n").turn(ask);
    let task = (1..count).fold(task, |task, n| task.file(&format!("cave{n}"), format!("next{}=cave{}\n", n + 1, n + 1)));
    task.file(&format!("cave{count}"), "treasure=Opal-77\n")
}

fn write_many(count: usize) -> Task {
    let ask = (1..=count).fold(
        Ask::new(format!("Write {count} notes from source.txt: note1.txt and following.")).read("source.txt", "text"),
        |ask, n| ask.write(&format!("note{n}.txt"), &format!("{{text}} {n}\n")),
    );
    let task =
        new(&format!("write {count} files")).file("source.txt", "text=Heron\n").turn(ask.answer("All have text={text}."));
    (1..=count).fold(task, |task, n| task.file_after(&format!("note{n}.txt"), format!("Heron {n}\n")))
}

pub(crate) fn tools() -> Vec<Task> {
    let new = |name: &str| Task::new(Area::Tools, name);
    let read = EffectClass::Read;
    let id = |id: &str| json!({ "id": id });
    let mut tasks = vec![
        new("one tool")
            .reading("weather", "sky=Cloudless")
            .turn(Ask::new("How is the weather?").fact("weather", json!({}), "sky").answer("sky={sky}")),
        new("a tool of a server")
            .reading("shop__price", "price=4811")
            .turn(Ask::new("What does it cost in the shop?").fact("shop__price", id("lamp"), "price").answer("price={price}")),
        new("a result that the next call needs")
            .reading("shop__customer", "customer=C-5521")
            .tool(
                "shop__orders",
                read,
                "Lists the orders of a customer.",
                Gives::For(vec![("C-5521".to_owned(), "newest_order=O-9917".to_owned())]),
            )
            .turn(
                Ask::new("Which is Ann's newest order?")
                    .fact("shop__customer", id("Ann"), "customer")
                    .fact("shop__orders", id("{customer}"), "newest_order")
                    .answer("newest_order={newest_order}"),
            ),
        new("a tool that is busy twice")
            .tool("gate__state", read, "Says whether the gate is open.", Gives::AfterErrors(2, "gate=Ajar".to_owned()))
            .turn(Ask::new("Is the gate open?").fact("gate__state", json!({}), "gate").tried(3).answer("gate={gate}")),
        new("an error that says what is missing")
            .tool(
                "stock__count",
                read,
                "Counts what is in stock.",
                Gives::Needs {
                    argument: "W-3".to_owned(),
                    error: "the id of a warehouse is needed: warehouse=W-3".to_owned(),
                    text: "in_stock=6610".to_owned(),
                },
            )
            .turn(
                Ask::new("How many are in stock?")
                    .fact("stock__count", json!({}), "warehouse")
                    .fact("stock__count", id("{warehouse}"), "in_stock")
                    .answer("in_stock={in_stock}"),
            ),
        new("a code that is given once, in one request")
            .tool("vault__code", read, "Gives a code once.", Gives::Once("code=K7-Q2".to_owned()))
            .tool("vault__open", read, "Opens the vault.", Gives::For(vec![("K7-Q2".to_owned(), "inside=Ledger".to_owned())]))
            .turn(
                Ask::new("What is in the vault?")
                    .fact("vault__code", json!({}), "code")
                    .fact("vault__open", id("{code}"), "inside")
                    .answer("inside={inside}"),
            ),
        new("a code that is given once, needed in the next request")
            .tool("vault__code", read, "Gives a code once.", Gives::Once("code=K7-Q2".to_owned()))
            .tool("vault__open", read, "Opens the vault.", Gives::For(vec![("K7-Q2".to_owned(), "inside=Ledger".to_owned())]))
            .turn(Ask::new("Get the code of the vault.").fact("vault__code", json!({}), "code").answer("I have it."))
            .turn(
                Ask::new("Now open the vault. What is inside?")
                    .fact("vault__code", json!({}), "code")
                    .fact("vault__open", id("{code}"), "inside")
                    .answer("inside={inside}"),
            ),
        new("one order")
            .writing("shop__order")
            .turn(Ask::new("Order the lamp L-1 for me.").done("shop__order", id("L-1"), "L-1").answer("It is ordered.")),
        new("an order that was made is not made again")
            .writing("shop__order")
            .turn(Ask::new("Order the lamp L-1.").done("shop__order", id("L-1"), "L-1").answer("Done."))
            .turn(
                Ask::new("Make sure that L-1 and L-2 are ordered.")
                    .done("shop__order", id("L-1"), "L-1")
                    .done("shop__order", id("L-2"), "L-2")
                    .answer("Both are ordered."),
            ),
        new("look, order, confirm")
            .reading("shop__find", "article=A-606")
            .writing("shop__order")
            .reading("shop__confirm", "delivery=Friday")
            .with_other_tools(12)
            .turn(
                Ask::new("Order a kettle and tell me when it comes.")
                    .fact("shop__find", id("kettle"), "article")
                    .done("shop__order", id("{article}"), "{article}")
                    .fact("shop__confirm", id("{article}"), "delivery")
                    .answer("delivery={delivery}"),
            ),
        new("a fact at the end of a long result")
            .reading(
                "audit__log",
                &format!("{}culprit=Mallory", "an entry without any meaning for this question\n".repeat(400)),
            )
            .turn(
                Ask::new("Who did it, by the audit log?").fact("audit__log", json!({}), "culprit").answer("culprit={culprit}"),
            ),
        new("a plan of its own").reading("meter__gas", "gas=1188").reading("meter__water", "water=2299").turn(
            Ask::new("Read both meters; keep a plan.")
                .done("plan", json!({ "steps": [{ "text": "gas" }, { "text": "water" }] }), "steps")
                .fact("meter__gas", json!({}), "gas")
                .fact("meter__water", json!({}), "water")
                .answer("gas={gas}, water={water}"),
        ),
        new("the same question three times")
            .reading("geo__capital", "capital=Vaduz")
            .turn(Ask::new("Look up the capital.").fact("geo__capital", json!({}), "capital").answer("I know it now."))
            .turn(Ask::new("Say its name.").fact("geo__capital", json!({}), "capital").answer("{capital}"))
            .turn(Ask::new("Say it once more.").fact("geo__capital", json!({}), "capital").answer("{capital}")),
    ];
    tasks.extend([8, 60].map(one_of_many_tools));
    tasks.push(orders(5));
    tasks
}

fn one_of_many_tools(others: usize) -> Task {
    Task::new(Area::Tools, format!("one tool among {}", others + 1))
        .reading("bank__balance", "balance=7120")
        .with_other_tools(others)
        .turn(Ask::new("What is the balance?").fact("bank__balance", json!({}), "balance").answer("balance={balance}"))
}

fn orders(count: usize) -> Task {
    let ask = (1..=count).fold(Ask::new("Order one of each: P-1 and following."), |ask, n| {
        ask.done("shop__order", json!({ "id": format!("P-{n}") }), &format!("P-{n}"))
    });
    Task::new(Area::Tools, format!("{count} orders in one reply"))
        .writing("shop__order")
        .parallel()
        .turn(ask.answer("All are ordered."))
}
