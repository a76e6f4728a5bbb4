//! Where words go: results to stdout, everything else to stderr. Model and tool texts cannot steer a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::trouble::{Exit, Trouble};

/// Writes one line of the result.
pub(crate) fn line(text: &str) -> Result<(), Trouble> {
    piece(&format!("{text}\n"))
}

/// Writes a part of the result at once.
pub(crate) fn piece(text: &str) -> Result<(), Trouble> {
    let mut stdout = io::stdout().lock();
    let shown = if stdout.is_terminal() { harmless(text) } else { Cow::Borrowed(text) };
    let written = stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Trouble::nobody_listens(),
        _ => Trouble::new("output_failed", format!("the output cannot be written: {error}")),
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
    Value::Object(fields.into_iter().chain(head).collect()).to_string()
}

/// Writes what the libraries log as JSON.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let about = event.metadata();
        writeln!(writer, "{}", json_line(*about.level(), about.target(), fields.0))
    }
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
pub(crate) fn trouble(trouble: &Trouble) -> Exit {
    if !trouble.message.is_empty() {
        say(Level::ERROR, &format!("polis: {trouble}"));
    }
    trouble.exit
}

/// The text without control characters, apart from line ends and tabs.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful =
        |c: char| (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if text.contains(harmful) { text.replace(harmful, "\u{fffd}").into() } else { text.into() }
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

/// Sends what the libraries log to stderr, as `POLIS_LOG` wants it (`info`, `polis_engine=debug`, …); warnings by default. With
/// `POLIS_LOG_FORMAT=json` everything on stderr is one object a line.
pub(crate) fn start_log() -> Result<(), Trouble> {
    let wanted = std::env::var("POLIS_LOG").unwrap_or_default();
    let wanted = if wanted.trim().is_empty() { "warn" } else { wanted.trim() };
    let bad = |error| Trouble::usage("bad_log_filter", format!("POLIS_LOG: {error}; write for example POLIS_LOG=info"));
    let mut filter = EnvFilter::try_new(wanted).map_err(bad)?;
    for quiet in SECRETIVE {
        filter =
            filter.add_directive(quiet.parse().map_err(|error| Trouble::new("bad_log_filter", format!("{quiet}: {error}")))?);
    }
    let colour = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match std::env::var("POLIS_LOG_FORMAT").unwrap_or_default().trim() {
        "" | "text" => log.with_ansi(colour).init(),
        "json" => {
            IS_JSON.store(true, Ordering::Relaxed);
            log.with_ansi(false).event_format(JsonLines).init();
        }
        other => {
            let what = format!("POLIS_LOG_FORMAT: `{other}` is none of the formats; write json or text");
            return Err(Trouble::usage("bad_log_format", what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\u{1b}[31mb\r\n\tc"), "a\u{fffd}[31mb\u{fffd}\n\tc");
        assert_eq!(harmless("纯文本 plain"), "纯文本 plain");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(short("一二三\n四五", 10), "一二三 四五");
        assert_eq!(short("一二三四五", 3), "一二…");
    }
}
