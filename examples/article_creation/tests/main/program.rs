//! The program itself, without a key: it says who answers, quotes the files, and knows what it has done before.

use std::path::Path;
use std::process::{Command, Output};

use crate::editor;

/// Runs it in a folder, with no key and no model of this machine.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_article_creation"));
    command.args(arguments).current_dir(folder).env("POLIS_MODEL", "offline").output().unwrap()
}

#[test]
fn without_a_model_it_quotes_the_files_says_so_and_does_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    editor::write_sources(folder.path()).unwrap();
    let done = run(folder.path(), &["fish", "sleep"]);
    let (article, told) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success(), "{told}");
    assert!(told.contains("no model is set, so rules answer that quote your files"), "{told}");
    for phase in ["topic_outline", "source_search", "finding_summary", "draft_writing", "verdict_forming", "article_completion"]
    {
        assert!(told.contains(phase), "{phase}: {told}");
    }
    assert_eq!(
        article,
        "# fish sleep\n\n(offline model) No model was set, so this is what 3 lines of the files say, word for word. Nothing is added, and \
         nothing is explained.\n\n\
         ## sleep.md\n\n- “Few fish close their eyes when they sleep.” (sleep.md:1)\n\n\
         ## anatomy.md\n\n- “Most fish breathe with gills.” (anatomy.md:1)\n- “Fish have fins to swim with.” (anatomy.md:2)\n"
    );
    // The second time it is there already.
    let again = run(folder.path(), &["fish sleep"]);
    let told = String::from_utf8(again.stderr).unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), article);
    assert!(!told.contains("topic_outline: fish"), "{told}");
    // What no file mentions is not made up.
    let nothing = String::from_utf8(run(folder.path(), &["volcanoes"]).stdout).unwrap();
    assert!(
        nothing.contains("what 0 lines of the files say") && nothing.contains("The files say nothing about this."),
        "{nothing}"
    );
    assert_eq!(run(folder.path(), &[]).status.code(), Some(2));
    let help = run(folder.path(), &["--help"]);
    assert!(help.status.success() && help.stdout.starts_with(b"usage: article_creation TOPIC"));
}

#[test]
fn a_chinese_topic_is_found_in_chinese_files_and_answered_in_chinese() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("yu.md"), "鱼有鳃。\n鸟有羽毛。\n鱼用鳃呼吸，不用肺。\n").unwrap();
    for (topic, quoted) in [
        ("鱼", "2 行原文，没有添加，也没有解释。\n\n## yu.md\n\n- “鱼有鳃。” (yu.md:1)\n- “鱼用鳃呼吸，不用肺。” (yu.md:3)\n"),
        ("鱼怎样呼吸？", "1 行原文，没有添加，也没有解释。\n\n## yu.md\n\n- “鱼用鳃呼吸，不用肺。” (yu.md:3)\n"),
        ("火山", "0 行原文，没有添加，也没有解释。\n\n## 火山\n\n文件中没有关于它的内容。\n"),
    ] {
        let article = String::from_utf8(run(folder.path(), &[topic]).stdout).unwrap();
        assert_eq!(article, format!("# {topic}\n\n（离线模型）没有设置模型，所以这里是文件中的 {quoted}"));
    }
}
