//! The tools of the pipeline as its units use them: write a file, run a command in the sandbox, read what a file holds.
//! What comes from data or from a person reaches the shell in quotes only.

use polis::domain::ToolCall;
use polis::prelude::*;
use serde_json::json;

/// Longest file that is read whole.
const MAX_READ_BYTES: usize = 16 << 20;

/// Longest text of a program that is told, in characters.
const MAX_TOLD_CHARS: usize = 1_500;

/// How a command ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    /// Such as `exit status 0`.
    pub(super) status: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    pub(super) fn is_good(&self) -> bool {
        self.status == "exit status 0"
    }

    /// What went wrong, in a few lines.
    pub(super) fn problem(&self) -> String {
        let said = [&self.stderr, &self.stdout].map(|text| shortened(text));
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        if said.is_empty() { self.status.clone() } else { format!("{}: {}", self.status, said.join("\n")) }
    }

    /// Takes apart what `run_command` tells.
    fn read(content: &str) -> Self {
        let (status, rest) = content.split_once('\n').unwrap_or((content, ""));
        let (stdout, rest) = stream("stdout", rest);
        let (stderr, _) = stream("stderr", rest);
        Self { status: status.to_owned(), stdout, stderr }
    }
}

/// What a stream had, and what follows it.
fn stream<'a>(name: &str, text: &'a str) -> (String, &'a str) {
    let Some(text) = text.strip_prefix(name) else { return (String::new(), text) };
    if let Some(rest) = text.strip_prefix(": nothing") {
        return (String::new(), rest.trim_start_matches('\n'));
    }
    let Some((head, rest)) = text.split_once("bytes):\n") else { return (String::new(), "") };
    let bytes: usize = head.trim_matches([' ', '(']).parse().unwrap_or_default();
    // Line breaks at its end are counted and not told, so what follows may begin earlier.
    let is_next = |(at, _): &(usize, &str)| {
        let after = &rest[at + "\nstderr".len()..];
        *at <= bytes && name == "stdout" && (after.starts_with(" (") || after.starts_with(": nothing"))
    };
    let end = rest.rmatch_indices("\nstderr").find(is_next).map_or(rest.len(), |(at, _)| at);
    (rest[..end].trim_end().to_owned(), rest[end..].trim_start_matches('\n'))
}

/// A word for the shell, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The beginning of a text.
pub(super) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_TOLD_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// Where the files of a request are, from the workspace's root.
pub(super) fn folder(turn: &Turn) -> String {
    let id = turn.task().id.to_string();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("runs/{}", id.chars().map(plain).collect::<String>())
}

/// Runs a line of the shell in the workspace.
pub(super) async fn run(turn: &mut Turn, command: &str) -> Ran {
    let result = turn.call_tool(call("run_command", &json!({ "command": command }))).await;
    if result.is_error {
        return Ran { status: "it could not be run".to_owned(), stdout: String::new(), stderr: result.content.to_string() };
    }
    Ran::read(&result.content)
}

/// Runs a line of the shell in the folder of the request.
pub(super) async fn run_inside(turn: &mut Turn, command: &str) -> Ran {
    let inside = format!("cd {} && {{ {command}; }}", quoted(&folder(turn)));
    run(turn, &inside).await
}

/// Writes a file of the request.
pub(super) async fn write(turn: &mut Turn, name: &str, content: &str) -> Result<(), Failure> {
    let path = format!("{}/{name}", folder(turn));
    let result = turn.call_tool(call("write_file", &json!({ "path": path, "content": content }))).await;
    if result.is_error { Err(Failure::new("not_written", result.content.to_string())) } else { Ok(()) }
}

/// Keeps a file of the request as it is now, as an artifact of this name and kind.
pub(super) async fn keep(turn: &mut Turn, file: &str, name: &str, media_type: &str) -> Result<Artifact, Failure> {
    let arguments = json!({ "path": format!("{}/{file}", folder(turn)), "name": name, "mediaType": media_type });
    let result = turn.call_tool(call("put_artifact", &arguments)).await;
    match result.artifacts.into_iter().next().filter(|_| !result.is_error) {
        Some(artifact) => Ok(artifact),
        None => Err(Failure::new("not_read", result.content.to_string())),
    }
}

/// What was kept, every byte of it.
pub(super) async fn read(turn: &mut Turn, kept: &Artifact) -> Result<String, Failure> {
    let window = turn.artifact(&kept.id, 0, MAX_READ_BYTES).await?;
    let whole = String::from_utf8(window.bytes).ok().filter(|text| text.len() as u64 == window.total);
    let message = || format!("{} is no text in UTF-8 of at most {MAX_READ_BYTES} bytes", kept.name);
    whole.ok_or_else(|| Failure::new("not_read", message()))
}

fn call(tool: &str, arguments: &serde_json::Value) -> ToolCall {
    ToolCall { id: tool.into(), name: tool.into(), arguments: arguments.to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_told_is_taken_apart() {
        let ran = |status: &str, stdout: &str, stderr: &str| Ran {
            status: status.to_owned(),
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        for (content, want) in [
            ("exit status 3\nstdout (4 bytes):\nout\nstderr (4 bytes):\nerr", ran("exit status 3", "out", "err")),
            ("exit status 0\nstdout: nothing\nstderr: nothing", ran("exit status 0", "", "")),
            ("exit status 0\nstdout (7 bytes):\na\n你\nstderr: nothing", ran("exit status 0", "a\n你", "")),
            (
                "exit status 0\nstdout: nothing\nstderr (15 bytes):\nx\nstdout: y\nz",
                ran("exit status 0", "", "x\nstdout: y\nz"),
            ),
            (
                "exit status 1\nstdout (15 bytes):\na\nstderr (9\nb\nstderr (16 bytes):\nx\nstderr (9\ny",
                ran("exit status 1", "a\nstderr (9\nb", "x\nstderr (9\ny"),
            ),
            ("ended by signal 9\nstdout: nothing\nstderr: nothing", ran("ended by signal 9", "", "")),
        ] {
            assert_eq!(Ran::read(content), want, "{content}");
        }
    }

    #[test]
    fn a_word_for_the_shell_stays_one_word() {
        for word in ["a b", "$(id)", "`id`", "a'b", "';rm -rf x;'", "a\nb", "\\", ""] {
            let printed =
                std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), word);
        }
    }
}
