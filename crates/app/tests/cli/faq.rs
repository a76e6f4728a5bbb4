//! The page with questions: its commands work as they stand, without a key.

use super::support::{Done, Home};

const PAGES: [&str; 2] = [include_str!("../../../../docs/faq.md"), include_str!("../../../../docs/faq.zh.md")];

/// The lines of the blocks for a shell.
fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("polis ")).collect()
}

#[test]
fn the_commands_of_the_page_work_and_every_question_is_answered() {
    assert_eq!(commands(PAGES[0]), commands(PAGES[1]));
    for (page, questions) in
        PAGES.iter().zip([["add a tool", "what agents are told", "limits"], ["添加工具", "自定义提示词", "参数"]])
    {
        questions.iter().for_each(|question| assert!(page.contains(question), "{question}"));
    }
    let home = Home::new();
    for line in commands(PAGES[0]) {
        let args: Vec<&str> = match line.split_once(" \"") {
            Some((words, text)) => words.split(' ').chain([text.trim_end_matches('"')]).collect(),
            None => line.split(' ').collect(),
        };
        let mut command = home.command(&args);
        let done = Done::from(command.env("POLIS_MODEL", "offline").output().unwrap());
        let said = done.ok();
        assert!(args[0] != "run" || said.contains("144"), "{said}");
    }
}
