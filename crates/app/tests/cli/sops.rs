//! Procedures that people write down: made, checked, followed offline, and shown.

use polis_domain::Event;
use serde_json::Value;

use super::support::Home;

const SALES: &str = "city,amount\nUlm,10\nUlm,30\nBern,5\n";

const REPORT: &str = "---\nname: sales_report\nwhen:\n  - sales report for {city}\n  - \"{city}的销售报告\"\n---\n# Sales report\n\n## Steps\n\n\
                      1. average amount by city in sales.csv\n2. @analyst Explain it. (within 1 minute; if it fails: do it yourself)\n\
                      3. sum of amount in sales.csv where city = {city}\n";

fn home() -> Home {
    let home = Home::new();
    std::fs::create_dir(home.path().join("sops")).unwrap();
    home.write("sales.csv", SALES);
    home
}

#[test]
fn a_procedure_is_followed_offline_from_start_to_finish_and_shown() {
    let home = home();
    home.write("sops/sales_report.md", REPORT);
    let answer = home.polis(&["run", "--conversation", "root", "Please make the sales report for Ulm."]).ok();
    assert!(answer.contains("40"), "{answer}");

    let plans: Value = serde_json::from_str(&home.polis(&["tasks", "--json"]).ok()).unwrap();
    let plan = &plans["plans"][0];
    assert_eq!(plan["strategy"]["name"], "template");
    assert_eq!(plan["strategy"]["reason"], "SOP `sales_report` fits: `sales report for {city}`");
    assert_eq!((plan["status"].as_str(), plan["agentId"].as_str()), (Some("completed"), Some("root")));
    let steps = plan["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["status"] == "completed"), "{steps:#?}");
    assert!(steps[0]["result"].as_str().unwrap().contains("20"), "{steps:#?}");

    let shown = home.polis(&["tasks"]).ok();
    assert!(shown.contains("done  template: SOP `sales_report`") && shown.contains("3. [x] sum of amount"), "{shown}");
    let task = plan["taskId"].as_str().unwrap();
    assert_eq!(home.polis(&["tasks", task]).ok(), shown);
    home.polis(&["tasks", "nobody"]).fails(1, "unknown_task");
    assert!(home.polis(&["show", "root"]).ok().contains("(template: SOP `sales_report` fits"));
    assert!(home.polis(&["log"]).ok().contains("planSet  template (SOP `sales_report` fits"));

    let answer = home.polis(&["run", "--conversation", "root", "--strategy", "template", "Ulm的销售报告"]).ok();
    assert!(answer.contains("40"), "{answer}");
    let simple = home.polis(&["run", "--conversation", "root", "--strategy", "simple", "sales report for Ulm"]);
    assert_eq!(simple.code, 4, "without the procedure the offline model does not know what to do: {}", simple.stderr);
    assert!(home.polis(&["show", "root", "--json"]).ok().contains("it was asked for"));
}

#[test]
fn a_new_procedure_can_be_followed_at_once() {
    let home = Home::new();
    for (name, words) in [("daily_check", "daily check"), ("每日检查", "每日检查")] {
        let made = home.polis(&["new", "sop", name]).ok();
        assert_eq!(made, format!("sops/{name}.md\n"));
        home.polis(&["new", "sop", name]).fails(1, "already_there");
        home.polis(&["run", "--strategy", "template", words]).ok();
    }
    let steps = |event: &Event| matches!(event, Event::PlanSet { plan, .. } if plan.status.is_some() && plan.steps.len() == 2);
    assert_eq!(home.log().iter().filter(|recorded| steps(&recorded.event)).count(), 2);
    home.polis(&["check"]).ok();
    home.polis(&["new", "sop", "a b"]).fails(2, "bad_sop_name");
}

#[test]
fn a_procedure_with_faults_is_told_with_file_and_line_and_not_followed() {
    let home = home();
    home.write("sops/good.md", REPORT);
    home.write("sops/twin.md", REPORT);
    home.write("sops/bad.md", "---\nname: bad\nwhen: do it\n---\n1. look (within ten minutes)\n2. say {what}\n");
    home.write("sops/README.md", "no procedure");
    home.polis(&["new", "role", "analyst"]).ok();
    let done = home.polis(&["check"]);
    assert_eq!(done.code, 1);
    let lines: Vec<_> = done.stdout.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert_eq!(lines, ["sops/bad.md:5: sop", "sops/bad.md:6: sop", "sops/twin.md:1: sop"], "{}", done.stdout);
    home.polis(&["run", "--strategy", "template", "do it"]).fails(1, "no_sop");
}

#[test]
fn an_agent_may_read_the_procedures_and_never_write_them() {
    let home = home();
    home.write("sops/sales_report.md", REPORT);
    let answer = home.polis(&["run", "read sops/sales_report.md"]);
    assert!(answer.stdout.contains("Explain it"), "{}", answer.stdout);
    let answer = home.polis(&["run", "write sops/sales_report.md: do it all"]);
    assert!(answer.stdout.contains("so only the person may write it"), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(std::fs::read_to_string(home.path().join("sops/sales_report.md")).unwrap(), REPORT);
}
