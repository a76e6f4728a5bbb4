//! The mistakes of models that are not good: a function of the request, so that a run can be repeated.

use polis_ports::ModelRequest;
use polis_testkit::ScriptedReply;
use serde_json::Value;

use super::model::{Said, Seat, View};
use super::task::Task;

/// How well a model does what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Makes no mistakes.
    Good,
    /// Does something wrong in one reply of three, and does it right when it is told so.
    Sloppy,
    /// Says nothing (at most twice in a row), repeats itself, calls tools that do not exist, writes prose where JSON is wanted, and does not answer before it
    /// must.
    Weak,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Good, Self::Sloppy, Self::Weak];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Sloppy => "sloppy",
            Self::Weak => "weak",
        }
    }
}

/// What a model of this kind says to a request.
pub(crate) fn reply(kind: Kind, task: &Task, request: &ModelRequest) -> ScriptedReply {
    let view = View::new(task, request);
    let right = view.right_reply();
    let draw = draw(task, &view);
    match kind {
        Kind::Good => plain(&view, &right),
        Kind::Sloppy if draw.is_multiple_of(3) && view.reminders() == 0 => sloppy(draw / 3, &view, right),
        Kind::Sloppy => plain(&view, &right),
        Kind::Weak => weak(draw, &view, right),
    }
}

fn plain(view: &View<'_>, said: &Said) -> ScriptedReply {
    match said {
        Said::Calls(calls) => called(view, calls),
        Said::Text(text) => ScriptedReply::text(text),
        Said::Json(value) => ScriptedReply::text(&value.to_string()),
    }
}

fn called(view: &View<'_>, calls: &[(String, String)]) -> ScriptedReply {
    let place = view.request.messages.len();
    calls.iter().enumerate().fold(ScriptedReply::default(), |reply, (n, (tool, arguments))| {
        reply.and_call(&format!("call_{place}_{n}"), tool, arguments)
    })
}

fn sloppy(draw: u64, view: &View<'_>, right: Said) -> ScriptedReply {
    match right {
        Said::Calls(mut calls) => {
            let Some((tool, arguments)) = calls.first_mut() else { return ScriptedReply::text("") };
            match draw % 5 {
                0 => *arguments = with_comma(arguments),
                1 => *arguments = Value::from(arguments.clone()).to_string(),
                2 => *tool = tool.replace('_', ""),
                3 => {
                    let twice = calls[0].clone();
                    calls.insert(0, twice);
                }
                _ => *arguments = arguments.replacen('{', r#"{"because":"it is needed","#, 1).replacen(",}", "}", 1),
            }
            called(view, &calls)
        }
        Said::Text(text) => ScriptedReply::text(if draw.is_multiple_of(2) { "" } else { &text }),
        Said::Json(value) => {
            let text = value.to_string();
            ScriptedReply::text(&match draw % 5 {
                0 => format!("Sure, here it is:\n```json\n{text}\n```\nShall I go on?"),
                1 => with_comma(&text),
                2 => text[..text.len() - 1].to_owned(),
                3 => "I will do that now.".to_owned(),
                _ => format!("// the reply\n{text}"),
            })
        }
    }
}

fn with_comma(object: &str) -> String {
    match object.strip_suffix('}') {
        Some(rest) => format!("{rest},}}"),
        None => object.to_owned(),
    }
}

fn weak(draw: u64, view: &View<'_>, right: Said) -> ScriptedReply {
    let may_be_empty = view.reminders() < 2;
    let empty = || ScriptedReply::text("");
    match (view.seat, right) {
        (Seat::Summary, right) if draw.is_multiple_of(2) => plain(view, &right),
        (Seat::Summary, _) => empty(),
        (Seat::Planner, _) => ScriptedReply::text("First I would look at the files, and then I would see."),
        (Seat::Verifier, _) => ScriptedReply::text("It looks good to me."),
        _ if view.must_conclude() => {
            let conclusion = || ScriptedReply::text(&what_is_there(view));
            Some(()).filter(|()| draw.is_multiple_of(4)).and_then(|()| repeated(view)).unwrap_or_else(conclusion)
        }
        (_, Said::Calls(calls)) => match draw % 8 {
            0 if may_be_empty => empty(),
            1 => called(view, &[("do_everything".to_owned(), "{}".to_owned())]),
            2 | 3 => repeated(view).unwrap_or_else(|| called(view, &calls)),
            4 => called(view, &[(calls[0].0.clone(), with_comma(&calls[0].1))]),
            _ => called(view, &calls),
        },
        // It would be time to answer.
        (_, right) => match draw % 4 {
            0 if may_be_empty => empty(),
            1 => called(view, &[("do_everything".to_owned(), "{}".to_owned())]),
            _ => repeated(view).unwrap_or_else(|| match right {
                Said::Json(_) => ScriptedReply::text(&what_is_there(view)),
                right => plain(view, &right),
            }),
        },
    }
}

/// The newest call once more.
fn repeated(view: &View<'_>) -> Option<ScriptedReply> {
    let (call, _, _) = view.own_calls().pop()?;
    Some(called(view, &[(call.name.to_string(), call.arguments.to_string())]))
}

/// The facts that the model sees and the calls that it made.
fn what_is_there(view: &View<'_>) -> String {
    let calls: Vec<String> = view.own_calls().iter().map(|(call, _, _)| call.name.to_string()).collect();
    match (view.facts.0.is_empty(), calls.is_empty()) {
        (true, true) => "I have nothing.".to_owned(),
        (true, false) => format!("I called {} and found nothing.", calls.join(", ")),
        (false, _) => format!("Found: {}", view.all_facts()),
    }
}

/// A number that follows from the request.
fn draw(task: &Task, view: &View<'_>) -> u64 {
    let asked = view.ask().map(|ask| ask.cue()).unwrap_or_default();
    let bytes = task.name.bytes().chain(asked.bytes()).chain([view.seat as u8, view.request.messages.len() as u8]);
    let mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}
