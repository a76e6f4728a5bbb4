//! How a unit does what the bot message says: saves the code, runs it in the sandbox, checks what it wrote, and reports.

use polis::domain::MessagePatch;
use polis::prelude::*;
use serde_json::Map;

use super::bench::{Ran, folder, keep, quoted, read, run, run_inside, shortened, write};
use super::code::{Interpreter, find_block};
use super::said::{Said, Tongue};
use super::source::Source;
use super::stage::{FORMATTING, STAGES, Stage};
use super::trial::{Author, Trial, Tried};
use super::{feedback, report};

const COMPARE: &str = include_str!("scripts/compare.sh");
const TABLE: &str = "text/tab-separated-values";
const DRAFT: &str = "text/plain; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";

/// Does what the message says and reports what came of it. Code of a model that fails is asked for again in the same phase;
/// a built-in script that fails ends the sub-thread.
pub(super) async fn carry_out(
    stage: &Stage,
    interpreter: &Interpreter,
    bot: &Message,
    turn: &mut Turn,
) -> Result<String, Failure> {
    let request = turn.task().message.clone();
    let tongue = Tongue::of(&request);
    let trials = Trial::all(turn).await?;
    if trials.is_empty() {
        take_in(&Source::of(&request)?, turn).await?;
    }
    let author = Author::of(bot);
    let interpreter = if author == Author::Model { interpreter } else { &Interpreter::SHELL };
    // Code of a model may change what it should only read; what it was stays out of its reach.
    let seal = match author {
        Author::Model => Some(keep(turn, stage.input, stage.input, TABLE).await?),
        Author::BuiltIn(_) => None,
    };
    let work = Work { stage, interpreter, author: &author, tongue, trials: &trials };
    let done = work.perform(bot, seal.as_ref(), turn).await;
    if let (Err(_), Some(seal)) = (&done, &seal) {
        restore(stage, seal, turn).await?;
    }
    let trial = Trial { phase: stage.phase.to_owned(), author, problem: done.as_ref().err().cloned() };
    trial.note(bot, turn).await?;
    match (done, trial.author) {
        (Ok(facts), _) => Ok(feedback::report(stage, tongue, &facts, turn).await),
        (Err(problem), Author::Model) => {
            turn.suggest_phase(turn.phase().clone()).await?;
            const FAILED: Said =
                Said { en: "{} was saved and run, and failed.\n", zh: "{} 已保存并执行，但失败了。\n" };
            Ok(format!("{}{problem}", tongue.say(FAILED).replace("{}", &stage.file(interpreter))))
        }
        (Err(problem), Author::BuiltIn(_)) => {
            Err(Failure::new("pipeline_failed", format!("the phase {} failed: {problem}", stage.phase)))
        }
    }
}

/// Brings the table into the folder of the request.
async fn take_in(source: &Source, turn: &mut Turn) -> Result<(), Failure> {
    match source {
        Source::Text(text) => write(turn, "input.csv", text).await,
        Source::File(path) => {
            let folder = quoted(&folder(turn));
            let ran = run(turn, &format!("mkdir -p {folder} && cp -- {} {folder}/input.csv", quoted(path))).await;
            if ran.is_good() { Ok(()) } else { Err(Failure::new("no_table", ran.problem())) }
        }
    }
}

/// Puts the input of a phase back if it is not what it was.
async fn restore(stage: &Stage, seal: &Artifact, turn: &mut Turn) -> Result<(), Failure> {
    let now = keep(turn, stage.input, stage.input, TABLE).await;
    if now.is_ok_and(|now| now.id == seal.id) {
        return Ok(());
    }
    let content = read(turn, seal).await?;
    good(run_inside(turn, &format!("rm -rf {}", stage.input)).await).map_err(|problem| Failure::new("not_written", problem))?;
    write(turn, stage.input, &content).await
}

/// One round.
struct Work<'a> {
    stage: &'a Stage,
    interpreter: &'a Interpreter,
    author: &'a Author,
    tongue: Tongue,
    trials: &'a [Tried],
}

impl Work<'_> {
    /// What can be said about a run that went well; else what went wrong.
    async fn perform(&self, bot: &Message, seal: Option<&Artifact>, turn: &mut Turn) -> Result<String, String> {
        let Self { stage, interpreter, .. } = self;
        let (_, code) = find_block(&bot.text).ok_or("the message has no code")?;
        let results = self.results(turn).await?;
        let file = stage.file(interpreter);
        write(turn, &file, &code).await.map_err(told)?;
        let ran = run_inside(turn, &format!("rm -f {} && {} {file}", stage.output, interpreter.program)).await;
        if !ran.is_good() {
            return Err(ran.problem());
        }
        if let Some(seal) = seal {
            self.compare(seal, turn).await?;
        }
        let report = match results {
            Some(results) => Some(self.keep_report(&results, bot, turn).await?),
            None => None,
        };
        let seen = good(run_inside(turn, stage.inspect).await)?;
        Ok(self.facts(&file, &ran, &seen.stdout, report.as_ref()))
    }

    /// What the report is made of: the results, and how they came about.
    async fn results(&self, turn: &mut Turn) -> Result<Option<String>, String> {
        if self.stage.phase != FORMATTING.phase {
            return Ok(None);
        }
        let kept = keep(turn, self.stage.input, self.stage.input, TABLE).await.map_err(told)?;
        let results = read(turn, &kept).await.map_err(told)?;
        let steps = self.steps(&turn.task().message);
        write(turn, "steps.tsv", &steps).await.map_err(told)?;
        Ok(Some(results))
    }

    /// The lines of `steps.tsv`.
    fn steps(&self, request: &str) -> String {
        let name = match Source::of(request) {
            Ok(Source::File(path)) => path,
            _ => self.tongue.say(Said { en: "the table in the request", zh: "请求中的表格" }).to_owned(),
        };
        let now = Trial { phase: self.stage.phase.to_owned(), author: self.author.clone(), problem: None };
        let all: Vec<&Trial> = self.trials.iter().map(|(trial, ..)| trial).chain([&now]).collect();
        let mut lines = format!("language\t{}\nsource\t{}\n", self.tongue.code(), cell(&name));
        for stage in STAGES {
            let of: Vec<_> = all.iter().filter(|trial| trial.phase == stage.phase).collect();
            let Some(last) = of.last() else { continue };
            let (author, note) = match &last.author {
                Author::Model => (
                    Said { en: "the model", zh: "模型" },
                    self.tongue.say(Said { en: "attempts: {}", zh: "尝试次数：{}" }).replace("{}", &of.len().to_string()),
                ),
                Author::BuiltIn(why) => (Said { en: "built-in script", zh: "内置脚本" }, why.clone()),
            };
            lines.push_str(&format!("step\t{}\t{}\t{}\n", stage.phase, self.tongue.say(author), cell(&note)));
        }
        lines
    }

    /// Whether code of a model wrote what the built-in script would have written, from data that it left alone.
    async fn compare(&self, seal: &Artifact, turn: &mut Turn) -> Result<(), String> {
        let Stage { input, output, stem, built_in, .. } = self.stage;
        if keep(turn, input, input, TABLE).await.map_err(told)?.id != seal.id {
            return Err(format!("the program changed {input}, which it may only read"));
        }
        if self.stage.phase == FORMATTING.phase {
            return Ok(());
        }
        good(run_inside(turn, &format!("rm -rf check && mkdir check && cp {input} check/")).await)?;
        write(turn, &format!("check/{stem}.sh"), built_in).await.map_err(told)?;
        write(turn, "check/compare.sh", COMPARE).await.map_err(told)?;
        let compare = format!("(cd check && sh {stem}.sh) 2> /dev/null; sh check/compare.sh {output} check/{output}");
        let ran = run_inside(turn, &compare).await;
        if ran.is_good() { Ok(()) } else { Err(format!("{output} is not what it should be: {}", ran.problem())) }
    }

    /// Keeps a report that may be shown as an artifact, and names it in the message.
    async fn keep_report(&self, results: &str, bot: &Message, turn: &mut Turn) -> Result<Artifact, String> {
        // Until it has been looked at it is nothing that a browser shows.
        let draft = keep(turn, self.stage.output, "draft of the report", DRAFT).await.map_err(told)?;
        let html = read(turn, &draft).await.map_err(told)?;
        if let Some(problem) = report::problem(&html, results) {
            return Err(problem);
        }
        let artifact = turn.put_artifact(self.stage.output, PAGE, html.into_bytes()).await.map_err(told)?;
        let mut meta = Map::new();
        Artifact::attach(&mut meta, std::slice::from_ref(&artifact));
        let patch = MessagePatch { text: None, meta: meta.into() };
        turn.update_message(&turn.path(), &bot.id, patch).await.map_err(told)?;
        Ok(artifact)
    }

    /// What happened, line by line.
    fn facts(&self, file: &str, ran: &Ran, seen: &str, report: Option<&Artifact>) -> String {
        let say = |en, zh| self.tongue.say(Said { en, zh });
        let mut facts = vec![format!("- {file}: {}", ran.status)];
        for line in seen.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            facts.push(match cells[..] {
                ["number", name, count, sum, mean, least, most] => {
                    let form = say(
                        "- {0}: count {1}, sum {2}, mean {3}, minimum {4}, maximum {5}",
                        "- {0}：个数 {1}，总和 {2}，平均值 {3}，最小值 {4}，最大值 {5}",
                    );
                    filled(form, &[name, count, sum, mean, least, most])
                }
                ["group", column, value, count] => {
                    filled(say("- {0} {1}: records {2}", "- {0} {1}：记录数 {2}"), &[column, value, count])
                }
                [name, figure] => format!("- {}: {figure}", self.name(name)),
                _ => continue,
            });
        }
        let printed = shortened(&[&*ran.stdout, &*ran.stderr].join("\n"));
        if !printed.is_empty() {
            facts.push(format!("- {}: {printed}", say("it printed", "程序输出")));
        }
        if let Author::BuiltIn(why) = self.author {
            facts.push(format!("- {}: {why}", say("built-in script, because", "使用内置脚本，原因")));
        }
        if let Some(report) = report {
            facts.push(format!("- {}: {report}", say("the report", "报告")));
        }
        facts.join("\n")
    }

    fn name<'a>(&self, name: &'a str) -> &'a str {
        match (self.tongue, name) {
            (Tongue::Chinese, "lines") => "写入行数",
            (Tongue::Chinese, "records") => "记录数",
            (Tongue::Chinese, "columns") => "列数",
            (Tongue::Chinese, "low") => "低",
            (Tongue::Chinese, "medium") => "中",
            (Tongue::Chinese, "high") => "高",
            (Tongue::Chinese, "none") => "无数值",
            (Tongue::English, "lines") => "lines written",
            _ => name,
        }
    }
}

/// Puts texts into the places `{0}`, `{1}` … of a form. What is in the texts stays as it is.
fn filled(form: &str, texts: &[&str]) -> String {
    let mut parts = form.split('{');
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_once('}').unwrap_or(("", part));
        done.push_str(place.parse().ok().and_then(|place: usize| texts.get(place)).copied().unwrap_or_default());
        done.push_str(rest);
    }
    done
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    let plain = text.replace('\\', r"\\").replace('\t', r"\t").replace(['\n', '\r'], r"\n");
    plain.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn good(ran: Ran) -> Result<Ran, String> {
    if ran.is_good() { Ok(ran) } else { Err(ran.problem()) }
}

fn told(failure: Failure) -> String {
    failure.to_string()
}
