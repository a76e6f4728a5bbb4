//! How a bot message comes about: the model writes the code of the phase, or the built-in script stands in for it.

use polis::ports::ChatMessage;
use polis::prelude::*;

use super::bench::{quoted, run, run_inside, shortened};
use super::code::{Interpreter, block, find_block};
use super::said::{Said, Tongue};
use super::source::Source;
use super::stage::Stage;
use super::trial::{Author, Trial, Tried};

/// How often a model may try before the built-in script takes over.
pub(super) const MAX_TRIALS: usize = 3;

/// How freely code is written (R150).
const TEMPERATURE: f64 = 0.7;

/// How much of the data is shown to a model, in bytes.
const SAMPLE_BYTES: usize = 1_200;

/// Why a built-in script is used.
const NO_ANSWER: Said = Said { en: "the model gave no answer ({})", zh: "模型没有回答（{}）" };
const NO_CODE: Said = Said { en: "the model wrote no code", zh: "模型没有写代码" };
const OTHER_CODE: Said =
    Said { en: "the model wrote `{}` instead of {wanted}", zh: "模型写的是 `{}`，而不是 {wanted}" };
const FAILED: Said = Said {
    en: "the model's code failed {times} times, at last with {}",
    zh: "模型的代码失败了 {times} 次，最后一次：{}",
};

/// The bot message of a phase: code, and what to do with it.
pub(super) async fn code_message(stage: &Stage, interpreter: &Interpreter, turn: &mut Turn) -> Result<Response, Failure> {
    let request = turn.task().message.clone();
    let (tongue, source) = (Tongue::of(&request), Source::of(&request)?);
    let mut trials = Trial::all(turn).await?;
    trials.retain(|(trial, ..)| trial.phase == stage.phase);
    let written = match trials.last() {
        Some((last, ..)) if trials.len() >= MAX_TRIALS => {
            let problem = last.problem.as_deref().unwrap_or_default();
            Err(tongue.say(FAILED).replace("{times}", &MAX_TRIALS.to_string()).replace("{}", &shortened(problem)))
        }
        _ => ask(stage, interpreter, &source, &trials, turn).await?,
    };
    let (author, interpreter, code) = match written {
        Ok(code) => (Author::Model, *interpreter, code),
        Err(why) => (Author::BuiltIn(why), Interpreter::SHELL, stage.built_in.to_owned()),
    };
    let text = message(stage, &interpreter, &author, &code, tongue);
    let mut response = Response::new(text);
    response.meta = author.into_meta().into();
    Ok(response)
}

/// The message as people read it.
fn message(stage: &Stage, interpreter: &Interpreter, author: &Author, code: &str, tongue: Tongue) -> String {
    const BUILT_IN: Said = Said { en: "[Built-in script, because {}]\n", zh: "【内置脚本，原因：{}】\n" };
    const SAVE: Said = Said {
        en: "Save this code as {file} and run it. It reads {input} and writes {output}.",
        zh: "请将此代码保存到 {file} 并执行，处理 {input}，结果写入 {output}。",
    };
    let note = match author {
        Author::Model => String::new(),
        Author::BuiltIn(why) => tongue.say(BUILT_IN).replace("{}", why),
    };
    let save = tongue.say(SAVE).replace("{file}", &stage.file(interpreter));
    let save = save.replace("{input}", stage.input).replace("{output}", stage.output);
    format!("{note}{}\n{}\n{save}", tongue.say(stage.announcement), block(interpreter.language, code))
}

/// Code by the model, or why there is none.
async fn ask(
    stage: &Stage,
    interpreter: &Interpreter,
    source: &Source,
    trials: &[Tried],
    turn: &mut Turn,
) -> Result<Result<String, String>, Failure> {
    let tongue = Tongue::of(&turn.task().message);
    let sample = sample(stage, source, turn).await?;
    let prompt = format!(
        "The request: {}\n\nThe beginning of {}:\n{}\n\nWrite the program {} in {}. It is run in the folder of the files, without \
         arguments and without a network. Answer with one block of code.",
        shortened(&turn.task().message),
        stage.input,
        block("", &sample),
        stage.file(interpreter),
        interpreter.language,
    );
    let mut messages = vec![ChatMessage::user(prompt)];
    for (_, bot, user) in trials {
        messages.push(ChatMessage::assistant(&*bot.text));
        messages.extend(user.as_ref().map(|user| ChatMessage::user(&*user.text)));
    }
    let reply = turn
        .generate(ModelRequest { settings: ModelSettings::at_temperature(TEMPERATURE), messages, ..ModelRequest::default() })
        .await;
    Ok(match reply {
        Err(failure) => Err(tongue.say(NO_ANSWER).replace("{}", &failure.to_string())),
        Ok(reply) => match find_block(&reply) {
            Some((language, code)) if speaks(interpreter, language) => Ok(code),
            Some((language, _)) => {
                let other = tongue.say(OTHER_CODE).replace("{wanted}", interpreter.language);
                Err(other.replace("{}", &shortened(language)))
            }
            None => Err(tongue.say(NO_CODE).to_owned()),
        },
    })
}

/// Whether code that is marked with this language is for the interpreter.
fn speaks(interpreter: &Interpreter, language: &str) -> bool {
    let language = language.to_ascii_lowercase();
    let is_shell = *interpreter == Interpreter::SHELL && ["bash", "shell", "posix"].contains(&&*language);
    is_shell || language.is_empty() || [interpreter.language, interpreter.program, interpreter.extension].contains(&&*language)
}

/// The beginning of what the code will read.
async fn sample(stage: &Stage, source: &Source, turn: &mut Turn) -> Result<String, Failure> {
    let ran = match source {
        Source::Text(text) if stage.input == "input.csv" => {
            return Ok(text[..text.floor_char_boundary(SAMPLE_BYTES)].to_owned());
        }
        Source::File(path) if stage.input == "input.csv" => {
            run(turn, &format!("head -c {SAMPLE_BYTES} -- {}", quoted(path))).await
        }
        _ => run_inside(turn, &format!("head -c {SAMPLE_BYTES} {}", stage.input)).await,
    };
    if ran.is_good() {
        return Ok(ran.stdout);
    }
    Err(Failure::new("no_table", format!("{} cannot be read: {}", stage.input, ran.problem())))
}
