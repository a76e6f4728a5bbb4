//! The chore `picture`: records a run that is killed with SIGKILL in the middle of a tool call that writes, and continued, and draws
//! `docs/page/survives.svg` of it, which plays in a README without a script. Takes a program that is built already, or builds one.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::workspace::{Workspace, succeed};

/// Where the picture is.
const PICTURE: &str = "docs/page/survives.svg";

/// The longest pause that is shown, and how long a finished screen stays, in seconds.
const LONGEST: f64 = 0.9;
const REST: f64 = 3.5;

/// Columns of the screen; a longer line is cut.
const COLUMNS: usize = 100;

/// A line of the screen, and when it appeared, in seconds from the start of its command.
struct Line {
    at: f64,
    text: String,
}

/// A screen: a command that was typed, what it printed, and how it ended if it was killed.
struct Scene {
    lines: Vec<Line>,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let program = match args {
        [] => {
            succeed(workspace.cargo().args(["build", "--quiet", "--workspace", "--bin", "polis"]), "building polis")?;
            workspace.target_dir.join("debug/polis")
        }
        [program] => program.into(),
        _ => anyhow::bail!("give at most the path of a program"),
    };
    let folder = std::env::temp_dir().join(format!("polis-picture-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let scenes = record(&program, &folder);
    fs::remove_dir_all(&folder)?;
    fs::write(workspace.root.join(PICTURE), draw(&scenes?))?;
    println!("{PICTURE}");
    Ok(())
}

/// Runs the commands in a folder.
fn record(polis: &Path, folder: &Path) -> Result<Vec<Scene>> {
    let command = |args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(polis).args(args).current_dir(folder).stdin(Stdio::null());
        command.env("POLIS_MODEL", "offline").env("POLIS_TRUST", "all").env("XDG_CONFIG_HOME", folder).env("LC_ALL", "C.UTF-8");
        command.stdout(Stdio::piped());
        command
    };
    let said = |args: &[&str]| -> Result<String> { Ok(String::from_utf8_lossy(&command(args).output()?.stdout).into_owned()) };
    said(&["new", "tool", "publish"])?;
    let tool = folder.join("tools/publish.py");
    let text = fs::read_to_string(&tool)?;
    let body = "    import time\n    with open(\"published.txt\", \"a\") as file:\n        file.write(text + \"\\n\")\n    time.sleep(3)\n    return \"published\"";
    let changed = text.replace("    return f\"{len(text.split())} words\"", body);
    ensure!(changed != text, "polis new tool writes another function than this chore knows");
    fs::write(&tool, changed)?;
    let settings = fs::read_to_string(folder.join("polis.toml"))?.replace("\"read\"", "\"write\"");
    fs::write(folder.join("polis.toml"), settings + "\n[[policy]]\nserver = \"publish\"\nthen = \"allow\"\n")?;
    fs::write(folder.join("sales.csv"), "city,amount\nUlm,10\nUlm,30\nBern,5\n")?;
    fs::create_dir(folder.join("sops"))?;
    let steps = "1. average amount by city in sales.csv\n2. tool `publish__publish` {\"text\": \"weekly report\"}\n";
    fs::write(
        folder.join("sops/weekly_report.md"),
        format!("---\nname: weekly_report\nwhen:\n  - weekly report\n---\n\n## Steps\n\n{steps}"),
    )?;

    // It is killed when the tool has written and not yet answered.
    let published = folder.join("published.txt");
    let mut first = scene("polis run \"weekly report\"", command(&["run", "weekly report"]), || published.exists())?;
    let end = first.lines.last().map_or(0.0, |line| line.at) + LONGEST;
    first.lines.push(Line {
        at: end,
        text: "Killed                                   # kill -9, in the middle of a call that writes".to_owned(),
    });

    let tasks = said(&["tasks"])?;
    let task = first_word(&tasks).context("no task is open")?;
    let mut second = scene(&format!("polis attach {task}"), command(&["attach", &task]), || false)?;
    // Who looks at the file sees that it was done, and once.
    let end = second.lines.last().map_or(0.0, |line| line.at);
    second.lines.push(Line { at: end + LONGEST, text: "$ cat published.txt".to_owned() });
    second.lines.push(Line { at: end + LONGEST, text: fs::read_to_string(&published)?.trim().to_owned() });

    let waiting = said(&["approvals"])?;
    let id = first_word(&waiting).context("nothing waits")?;
    let args = ["approve", &id, "--done", "published"];
    let mut third = scene(&format!("polis {}", args.join(" ")), command(&args), || false)?;
    let end = third.lines.last().map_or(0.0, |line| line.at);
    third.lines.push(Line { at: end + LONGEST, text: "$ cat published.txt".to_owned() });
    let text = fs::read_to_string(&published)?;
    ensure!(text.trim() == "weekly report", "the tool was called twice: {text}");
    third.lines.push(Line { at: end + LONGEST, text: format!("{}                            # once", text.trim()) });
    let shown = |scene: &Scene, text: &str| scene.lines.iter().any(|line| line.text.contains(text));
    ensure!(shown(&second, "unknown whether it was done"), "the call is not in doubt: {tasks}");
    Ok(vec![first, second, third])
}

/// The word with which a list begins, below notes.
fn first_word(list: &str) -> Option<String> {
    let entry = list.lines().find(|line| !line.starts_with("polis:"))?;
    entry.split_whitespace().next().map(str::to_owned)
}

/// Runs a command until it ends, or kills it when it is time; what it printed.
fn scene(typed: &str, mut command: Command, is_time: impl Fn() -> bool) -> Result<Scene> {
    let began = Instant::now();
    let mut lines = vec![Line { at: 0.0, text: format!("$ {typed}") }];
    let mut child = command.spawn()?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let stdout = child.stdout.take().context("stdout is piped")?;
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send((began.elapsed().as_secs_f64(), line)).is_err() {
                break;
            }
        }
    });
    let mut is_killed = false;
    loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            // How the recording is set up is not shown.
            Ok((_, text)) if text.contains("POLIS_TRUST") || text.contains("the offline model answers") => {}
            Ok((at, text)) => lines.push(Line { at, text }),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(_) if !is_killed && is_time() => {
                child.kill()?;
                is_killed = true;
            }
            Err(_) => ensure!(began.elapsed() < Duration::from_secs(60), "{typed} does not end"),
        }
        // Its tool holds the pipe until it is done.
        if is_killed && child.try_wait()?.is_some() {
            break;
        }
    }
    child.wait()?;
    drop(receiver);
    drop(reader);
    Ok(Scene { lines })
}

/// The screens one after another, for ever.
fn draw(scenes: &[Scene]) -> String {
    // Pauses are shortened, and nothing appears before its command was typed.
    let mut clock = 0.3;
    let mut placed: Vec<(usize, f64, f64, usize, String)> = Vec::new();
    for (number, scene) in scenes.iter().enumerate() {
        let mut before = 0.0;
        let mut times = Vec::new();
        for line in &scene.lines {
            clock += (line.at - before).clamp(0.12, LONGEST);
            before = line.at;
            times.push(clock);
        }
        clock += REST;
        let lines = scene.lines.iter().zip(times).enumerate();
        placed.extend(lines.map(|(row, (line, at))| (row, at, clock, number, cut(&line.text))));
        clock += 0.2;
    }
    let rows = scenes.iter().map(|scene| scene.lines.len()).max().unwrap_or_default();
    let (width, height) = (COLUMNS * 8 + 32, rows * 19 + 56);
    let mut style = String::new();
    let mut text = String::new();
    for (number, (row, from, to, scene, line)) in placed.iter().enumerate() {
        let (on, off) = (from / clock * 100.0, to / clock * 100.0);
        let _ = writeln!(
            style,
            "@keyframes k{number}{{0%,{on:.2}%{{opacity:0}}{:.2}%,{off:.2}%{{opacity:1}}{:.2}%,100%{{opacity:0}}}}",
            on + 0.01,
            off + 0.01
        );
        let class = match line.as_str() {
            line if line.starts_with('$') => "c",
            line if line.starts_with("Killed") || line.contains("unknown whether") => "w",
            line if line.starts_with('·') => "q",
            _ => "t",
        };
        let last = if *scene + 1 == scenes.len() { " last" } else { "" };
        let y = row * 19 + 52;
        let _ = writeln!(
            text,
            "<text class=\"{class}{last}\" x=\"16\" y=\"{y}\" style=\"animation-name:k{number}\">{}</text>",
            escaped(line)
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">
<title>A run is killed with kill -9 in the middle of a call that writes, and continued: finished steps are not repeated, and the call is done once</title>
<!-- Recorded and drawn by cargo xtask picture. -->
<style>
text{{font:13px/19px ui-monospace,SFMono-Regular,Menlo,\"DejaVu Sans Mono\",monospace;fill:#d7dae0;white-space:pre;opacity:0;animation-duration:{clock:.2}s;animation-iteration-count:infinite;animation-timing-function:step-end}}
.c{{fill:#8fd18f}}.w{{fill:#f2b56b}}.q{{fill:#97a0ad}}
.last{{opacity:1}}
@media (prefers-reduced-motion:reduce){{text{{animation:none}}}}
{style}</style>
<rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#15181c\"/>
<circle cx=\"20\" cy=\"18\" r=\"5\" fill=\"#e0675c\"/><circle cx=\"38\" cy=\"18\" r=\"5\" fill=\"#e0b15c\"/><circle cx=\"56\" cy=\"18\" r=\"5\" fill=\"#6bbf6b\"/>
{text}</svg>
"
    )
}

fn cut(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(COLUMNS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_appear_one_after_another_and_pauses_are_short() {
        let line = |at, text: &str| Line { at, text: text.to_owned() };
        let scenes = [Scene { lines: vec![line(0.0, "$ a <b>"), line(50.0, "done")] }, Scene { lines: vec![line(0.0, "$ c")] }];
        let svg = draw(&scenes);
        assert!(svg.contains(">$ a &lt;b&gt;</text>") && svg.contains("class=\"c last\""), "{svg}");
        // 0.3 + 0.12 + 0.9 + 3.5 + 0.2 + 0.12 + 3.5 + 0.2
        assert!(svg.contains("animation-duration:8.84s"), "{svg}");
        assert_eq!(svg.matches("@keyframes").count(), 3);
    }

    #[test]
    fn the_picture_of_the_readme_shows_the_kill_and_what_came_of_it() {
        let picture = include_str!("../../docs/page/survives.svg");
        for wanted in ["$ polis run", "Killed", "unknown whether it was done", "--done published", "# once"] {
            assert!(picture.contains(wanted), "{wanted}");
        }
    }
}
