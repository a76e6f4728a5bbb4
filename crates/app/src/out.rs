//! Where words go: results to stdout, everything else to stderr. Texts of models, tools and servers cannot steer a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use polis_docs::ErrorCode;
use polis_domain::is_hidden;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::error::{CliError, Exit};

/// Writes one line of the result.
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    self::text(&format!("{text}\n"))
}

/// Writes the result as JSON for people and programs.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let value = serde_json::to_value(value).map_err(|error| CliError::new("output_failed", error.to_string()))?;
    line(&format!("{value:#}"))
}

/// The name that a value has in JSON, such as the status of a request.
pub(crate) fn name_of(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    }
}

/// Whether the result goes into a file or a pipe as it is.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Has the result written as it is, byte for byte, where that is no terminal.
pub(crate) fn set_raw(is_raw: bool) {
    IS_RAW.store(is_raw, Ordering::Relaxed);
}

/// Writes a part of the result at once.
pub(crate) fn text(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let is_raw = IS_RAW.load(Ordering::Relaxed) && !stdout.is_terminal();
    let shown = if is_raw { Cow::Borrowed(text) } else { harmless(text) };
    let written = stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::output_closed(),
        _ => CliError::new("output_failed", format!("the output cannot be written: {error}")),
    })
}

/// Tells the person something beside the result.
pub(crate) fn note(text: &str) {
    say(Level::INFO, text);
}

/// Whether everything on stderr is JSON, one object a line.
static IS_JSON: AtomicBool = AtomicBool::new(false);

fn say(level: Level, text: &str) {
    // Without a stderr there is nobody to tell.
    let _ = match IS_JSON.load(Ordering::Relaxed) {
        true => writeln!(io::stderr(), "{}", json_line(level, "polis", Map::from_iter([("message".to_owned(), text.into())]))),
        false => writeln!(io::stderr(), "{}", harmless(text)),
    };
}

/// What is said, as one object: when, how urgent, by whom, and the fields.
fn json_line(level: Level, target: &str, fields: Map<String, Value>) -> String {
    let mut time = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let head = [("time", time), ("level", level.to_string()), ("target", target.to_owned())];
    let head = head.map(|(name, value)| (name.to_owned(), Value::String(value)));
    harmless(&Value::Object(fields.into_iter().chain(head).collect()).to_string()).into_owned()
}

/// How an entry of the libraries' log is written.
enum LogLines {
    Json,
    /// For people, without time and source.
    Notes,
}

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let about = event.metadata();
        let line = match self {
            Self::Json => json_line(*about.level(), about.target(), fields.0),
            Self::Notes => harmless(&warning(*about.level(), fields.0)).into_owned(),
        };
        writeln!(writer, "{line}")
    }
}

/// A warning as a line: how urgent, the message, and the fields in brackets.
fn warning(level: Level, mut fields: Map<String, Value>) -> String {
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let message = fields.remove("message").map(text).unwrap_or_default();
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
    let about = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
    let urgency = if level == Level::ERROR { "error" } else { "warning" };
    format!("polis: {urgency}: {message}{about}")
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

/// The same without ending the line.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{}", harmless(text)).and_then(|()| stderr.flush());
}

/// Tells why it failed, and how the program ends.
pub(crate) fn report_error(error: &CliError) -> Exit {
    if !error.message.is_empty() {
        say(Level::ERROR, &format!("polis: {error}"));
        // Programs read the line of the error alone.
        if io::stderr().is_terminal() && ErrorCode::find(&error.code).is_some() {
            note(&format!("polis: polis docs {} explains it", error.code));
        }
    }
    error.exit
}

/// The text with everything visible that could steer a terminal or hide something from its reader: control characters, except for
/// line ends and tabs, marks that change the direction of writing, and characters without a width. They are written as JSON
/// escapes (`\u001b`), so JSON stays JSON and means the same.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut last = None;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let is_plain = match c {
            '\r' => next == Some('\n'),
            // Between messages and pictures of other scripts they join or part them; elsewhere they only hide.
            '\u{200c}' | '\u{200d}' => [last, next].into_iter().all(|by| by.is_some_and(|by| !by.is_ascii() && !is_hidden(by))),
            c => !is_hidden(c),
        };
        if is_plain {
            shown.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string does not fail.
                let _ = fmt::Write::write_fmt(&mut shown, format_args!("\\u{unit:04x}"));
            }
        }
        last = Some(c);
    }
    shown.into()
}

/// A length of time in its largest whole unit, such as `3 hours`.
pub(crate) fn age(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    let (unit, name) = match seconds {
        0..60 => (1, "second"),
        60..3_600 => (60, "minute"),
        3_600..86_400 => (3_600, "hour"),
        _ => (86_400, "day"),
    };
    count((seconds / unit) as usize, name)
}

/// A number of things, such as `1 role` and `2 roles`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// One line of at most `chars` characters.
pub(crate) fn short(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars {
        return line;
    }
    let kept: String = line.chars().take(chars.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// What tells of codes and keys when it is asked to talk. It is never asked.
const SECRETIVE: &[&str] = &["rmcp::transport::auth=off", "oauth2=off"];

/// Sends what the libraries log to stderr, as `POLIS_LOG` wants it (`info`, `polis_engine=debug`, …). Without it, warnings are
/// lines for people. With `POLIS_LOG_FORMAT=json` everything on stderr is one object a line.
pub(crate) fn start_log() -> Result<(), CliError> {
    let wanted = std::env::var("POLIS_LOG").unwrap_or_default();
    let is_asked_for = !wanted.trim().is_empty();
    let wanted = if is_asked_for { wanted.trim() } else { "warn" };
    let bad = |error| CliError::usage("bad_log_filter", format!("POLIS_LOG: {error}; write for example POLIS_LOG=info"));
    let mut filter = EnvFilter::try_new(wanted).map_err(bad)?;
    for quiet in SECRETIVE {
        filter =
            filter.add_directive(quiet.parse().map_err(|error| CliError::new("bad_log_filter", format!("{quiet}: {error}")))?);
    }
    let colour = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match std::env::var("POLIS_LOG_FORMAT").unwrap_or_default().trim() {
        "" | "text" if is_asked_for => log.with_ansi(colour).init(),
        "" | "text" => log.with_ansi(false).event_format(LogLines::Notes).init(),
        "json" => {
            IS_JSON.store(true, Ordering::Relaxed);
            log.with_ansi(false).event_format(LogLines::Json).init();
        }
        other => {
            let what = format!("POLIS_LOG_FORMAT: unknown format `{other}`; write json or text");
            return Err(CliError::usage("bad_log_format", what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal_or_hide_anything() {
        for (text, shown) in [
            ("纯文本 plain\n\ttext", "纯文本 plain\n\ttext"),
            ("a\u{1b}[31mb\rc\r\n\td", "a\\u001b[31mb\\u000dc\r\n\td"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}", "\\u001b]52;c;ZXZpbA==\\u0007"),
            ("\u{9b}31m \u{9d}52;c;x\u{9c} \u{7f}", "\\u009b31m \\u009d52;c;x\\u009c \\u007f"),
            ("pay \u{202e}001\u{202c} \u{2066}x\u{2069} \u{200f}y", "pay \\u202e001\\u202c \\u2066x\\u2069 \\u200fy"),
            ("r\u{200b}m -\u{200d}rf\u{2060} \u{feff}\u{ad}", "r\\u200bm -\\u200drf\\u2060 \\ufeff\\u00ad"),
            ("hi\u{e0041}\u{e007f}", "hi\\udb40\\udc41\\udb40\\udc7f"),
            ("👩\u{200d}🔬 ❤\u{fe0f} می\u{200c}خواهم", "👩\u{200d}🔬 ❤\u{fe0f} می\u{200c}خواهم"),
        ] {
            assert_eq!(harmless(text), shown);
            assert_eq!(harmless(shown), shown, "once is enough");
        }
    }

    #[test]
    fn json_means_the_same_when_it_is_made_visible() {
        let value = serde_json::json!({ "text": "\u{9b}31m\u{202e}\u{7f}\u{e0041}\u{1b}" });
        let shown = harmless(&value.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_warning_is_a_line_for_people() {
        let fields = |value: Value| value.as_object().cloned().unwrap();
        for (level, about, line) in [
            (
                Level::WARN,
                serde_json::json!({ "message": "the server is down", "server": "time" }),
                "polis: warning: the server is down (server: time)",
            ),
            (Level::ERROR, serde_json::json!({ "message": "no log", "code": 3 }), "polis: error: no log (code: 3)"),
            (Level::WARN, serde_json::json!({ "message": "no backup" }), "polis: warning: no backup"),
        ] {
            assert_eq!(warning(level, fields(about)), line);
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(short("一二三\n四五", 10), "一二三 四五");
        assert_eq!(short("一二三四五", 3), "一二…");
    }
}
