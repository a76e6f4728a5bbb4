//! Tasks for several agents, and tasks that are done by a plan.

use polis_domain::EffectClass;
use serde_json::{Value, json};

use super::task::{Area, Ask, Gives, Task};

fn new(name: &str) -> Task {
    Task::new(Area::Agents, name)
}

/// Makes a role and an agent of it, unless they are there.
fn hire(ask: Ask, agent: &str) -> Ask {
    let role = json!({ "name": agent, "id": agent, "rolePrompt": "Do what you are asked, and answer with what you found." });
    ask.done("create_role", role, &format!("\"id\":\"{agent}\"")).done(
        "spawn_agent",
        json!({ "roleId": agent, "agentId": format!("{agent}-1") }),
        &format!("{agent}-1"),
    )
}

fn request(agent: &str, text: &str) -> Value {
    json!({ "requests": [{ "to": format!("{agent}-1"), "text": text }] })
}

pub(crate) fn agents() -> Vec<Task> {
    let ask_reader = |ask: Ask| ask.fact("request_collaboration", request("reader", "Job R: read deep.txt."), "depth");
    let job_reader = || Ask::new("Job R: read deep.txt.").read("deep.txt", "depth").answer("depth={depth}");
    let mut tasks = vec![
        new("one helper reads")
            .file("deep.txt", "depth=Fathom-9\n")
            .turn(ask_reader(hire(Ask::new("Let a reader find the depth."), "reader")).answer("depth={depth}"))
            .job(job_reader()),
        new("a helper is asked again")
            .file("deep.txt", "depth=Fathom-9\n")
            .file("wide.txt", "width=Span-4\n")
            .turn(ask_reader(hire(Ask::new("Let a reader find the depth."), "reader")).answer("The reader has read it."))
            .turn(
                hire(Ask::new("Let the same reader find the width, and tell me depth and width."), "reader")
                    .fact("request_collaboration", request("reader", "Job R: read deep.txt."), "depth")
                    .fact("request_collaboration", request("reader", "Job W: read wide.txt."), "width")
                    .answer("depth={depth}, width={width}"),
            )
            .job(job_reader())
            .job(Ask::new("Job W: read wide.txt.").read("wide.txt", "width").answer("width={width}")),
        new("a helper writes once")
            .file("deep.txt", "depth=Fathom-9\n")
            .file_after("copy.txt", "Fathom-9\n")
            .turn(
                hire(Ask::new("Let a clerk copy the depth of deep.txt into copy.txt."), "clerk")
                    .fact("request_collaboration", request("clerk", "Job C: copy the depth into copy.txt."), "depth")
                    .answer("depth={depth} is in copy.txt"),
            )
            .job(
                Ask::new("Job C: copy the depth into copy.txt.")
                    .read("deep.txt", "depth")
                    .write("copy.txt", "{depth}\n")
                    .answer("depth={depth}"),
            ),
        new("one helper needs what another found")
            .reading("desk__who", "owner=Yusuf")
            .tool(
                "desk__phone",
                EffectClass::Read,
                "Finds a number.",
                Gives::For(vec![("Yusuf".to_owned(), "phone=T-3090".to_owned())]),
            )
            .turn(
                hire(hire(Ask::new("Let a finder find the owner, and a caller the phone number."), "finder"), "caller")
                    .fact("request_collaboration", request("finder", "Job F: find the owner."), "owner")
                    .fact("request_collaboration", request("caller", "Job P: find the phone number of {owner}."), "phone")
                    .answer("owner={owner}, phone={phone}"),
            )
            .job(Ask::new("Job F: find the owner.").fact("desk__who", json!({}), "owner").answer("owner={owner}"))
            .job(
                // The name that it was given is a fact of the request.
                Ask::new("Job P: find the phone number of {owner}.")
                    .fact("desk__phone", json!({ "id": "Yusuf" }), "phone")
                    .answer("phone={phone}"),
            ),
        new("a helper has a helper")
            .file("deep.txt", "depth=Fathom-9\n")
            .turn(
                hire(Ask::new("Let a lead find the depth; the lead may have a reader."), "lead")
                    .fact("request_collaboration", request("lead", "Job L: have a reader find the depth."), "depth")
                    .answer("depth={depth}"),
            )
            .job(
                hire(Ask::new("Job L: have a reader find the depth."), "reader")
                    .fact("request_collaboration", request("reader", "Job R: read deep.txt."), "depth")
                    .answer("depth={depth}"),
            )
            .job(job_reader()),
        new("a helper among many tools")
            .reading("bank__balance", "balance=7120")
            .with_other_tools(30)
            .turn(
                hire(Ask::new("Let a banker find the balance."), "banker")
                    .fact("request_collaboration", request("banker", "Job B: find the balance."), "balance")
                    .answer("balance={balance}"),
            )
            .job(Ask::new("Job B: find the balance.").fact("bank__balance", json!({}), "balance").answer("balance={balance}")),
        new("a helper is ended")
            .file("deep.txt", "depth=Fathom-9\n")
            .turn(
                ask_reader(hire(Ask::new("Let a reader find the depth, then end the reader."), "reader"))
                    .done("terminate_agent", json!({ "agentId": "reader-1" }), "reader-1")
                    .answer("depth={depth}; the reader is ended"),
            )
            .job(job_reader()),
        new("what a helper found is known later")
            .tool("vault__code", EffectClass::Read, "Gives a code once.", Gives::Once("code=K7-Q2".to_owned()))
            .turn(
                hire(Ask::new("Let a keeper fetch the code."), "keeper")
                    .fact("request_collaboration", request("keeper", "Job K: fetch the code."), "code")
                    .answer("The keeper has fetched it."),
            )
            .turn(Ask::remark("Very good."))
            .turn(
                Ask::new("So what is the code?")
                    .fact("request_collaboration", request("keeper", "Job K: fetch the code."), "code")
                    .answer("{code}"),
            )
            .job(Ask::new("Job K: fetch the code.").fact("vault__code", json!({}), "code").answer("code={code}")),
    ];
    tasks.extend([2, 4].map(helpers_in_parallel));
    tasks
}

/// Several helpers who are asked in one call.
fn helpers_in_parallel(count: usize) -> Task {
    let names: Vec<String> = (1..=count).map(|n| format!("scout{n}")).collect();
    let requests: Vec<Value> =
        (1..=count).map(|n| json!({ "to": format!("scout{n}-1"), "text": format!("Job S{n}: read area{n}.txt.") })).collect();
    let answer = (1..=count).map(|n| format!("area{n}={{area{n}}}")).collect::<Vec<_>>().join(", ");
    let ask = names.iter().fold(Ask::new(format!("Let {count} scouts look at their areas.")), |ask, name| hire(ask, name));
    let ask = ask.fact("request_collaboration", json!({ "requests": requests }), &format!("area{count}")).answer(&answer);
    // Who did not answer then is asked alone.
    let ask = requests.iter().enumerate().fold(ask, |ask, (n, request)| {
        ask.fact("request_collaboration", json!({ "requests": [request] }), &format!("area{}", n + 1)).tried(2)
    });
    (1..=count).fold(new(&format!("{count} helpers in one call")).turn(ask), |task, n| {
        let (file, key) = (format!("area{n}.txt"), format!("area{n}"));
        let job = Ask::new(format!("Job S{n}: read {file}.")).read(&file, &key).answer(&format!("{key}={{{key}}}"));
        task.file(&file, format!("{key}=Zone-{}\n", n * 131)).job(job)
    })
}

pub(crate) fn plans() -> Vec<Task> {
    let new = |name: &str| Task::new(Area::Plans, name);
    let job = |text: &str, file: &str, key: &str| Ask::new(text).read(file, key).answer(&format!("{key}={{{key}}}"));
    let long = "\n- the first part is in one.txt\n- the second part is in two.txt\n- both are needed\n- nothing else is";
    let one_two = |task: Task| {
        task.file("one.txt", "one=Alpha-1\n")
            .file("two.txt", "two=Beta-2\n")
            .job(job("Part 1: read one.txt.", "one.txt", "one"))
            .job(job("Part 2: read two.txt.", "two.txt", "two"))
    };
    vec![
        one_two(new("a plan of two todos"))
            .turn(Ask::new("Find both parts with a plan.").todo(0, &[]).todo(1, &[]).planned().answer("one={one}, two={two}")),
        one_two(new("a request that the model finds complex")).turn(
            Ask::new(format!("Put the parts together and tell me both of them.{long}"))
                .todo(0, &[])
                .todo(1, &[])
                .read("one.txt", "one")
                .read("two.txt", "two")
                .answer("one={one}, two={two}"),
        ),
        new("a todo that needs the one before it")
            .file("index.txt", "newest=orders7\n")
            .file("orders7", "total=5512\n")
            .job(job("Part 1: find the newest file in index.txt.", "index.txt", "newest"))
            .job(job("Part 2: read the file that part 1 found.", "{newest}", "total"))
            .turn(
                Ask::new("Find the total of the newest orders with a plan.")
                    .todo(0, &[])
                    .todo(1, &[0])
                    .planned()
                    .answer("total={total}"),
            ),
        new("a plan that writes")
            .file("one.txt", "one=Alpha-1\n")
            .file_after("sum.txt", "Alpha-1\n")
            .job(job("Part 1: read one.txt.", "one.txt", "one"))
            .job(Ask::new("Part 2: write sum.txt.").write("sum.txt", "{one}\n").answer("sum.txt has one={one}"))
            .turn(
                Ask::new("Copy the part into sum.txt, with a plan.").todo(0, &[]).todo(1, &[0]).planned().answer("one={one}"),
            ),
        one_two(new("a plan that was kept short is asked about"))
            .turn(
                Ask::new("Find both parts with a plan, and tell me only the first.")
                    .todo(0, &[])
                    .todo(1, &[])
                    .planned()
                    .answer("one={one}"),
            )
            .turn(Ask::new("And what is the second part?").read("two.txt", "two").answer("two={two}")),
        new("a plan with a tool of a server")
            .reading("bank__balance", "balance=7120")
            .with_other_tools(20)
            .job(Ask::new("Part 1: find the balance.").fact("bank__balance", json!({}), "balance").answer("balance={balance}"))
            .turn(Ask::new("Find the balance with a plan.").todo(0, &[]).planned().answer("balance={balance}")),
        one_two(new("a plan that needs what was said before")).turn(Ask::remark("By the way, my number is badge=B-414.")).turn(
            Ask::new("Find both parts with a plan, and add my number.")
                .todo(0, &[])
                .todo(1, &[])
                .planned()
                .answer("one={one}, two={two}, badge={badge}"),
        ),
        five_todos(),
    ]
}

fn five_todos() -> Task {
    let answer = (1..=5).map(|n| format!("item{n}={{item{n}}}")).collect::<Vec<_>>().join(", ");
    let ask = (0..5).fold(Ask::new("Find the five items with a plan.").planned().answer(&answer), |ask, n| ask.todo(n, &[]));
    (1..=5).fold(Task::new(Area::Plans, "a plan of five todos").turn(ask), |task, n| {
        let (file, key) = (format!("item{n}.txt"), format!("item{n}"));
        let job = Ask::new(format!("Part {n}: read {file}.")).read(&file, &key).answer(&format!("{key}={{{key}}}"));
        task.file(&file, format!("{key}=Thing-{}\n", n * 37)).job(job)
    })
}
