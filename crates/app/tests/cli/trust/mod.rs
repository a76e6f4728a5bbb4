//! A folder of somebody else does nothing until the user has trusted it. Each attack is tried against the real program, and tried
//! again with the check switched off, where it must succeed.

mod asking;
mod attacks;
mod keys;
mod running;
mod skills;
mod user;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{Done, Home};

/// What a server of `.mcp.json` leaves behind when it was started.
const PROOF: &str = "STARTED";

/// A folder whose `.mcp.json` starts a program.
fn with_program() -> Home {
    let home = Home::new();
    home.write(".mcp.json", &program(&format!("echo > {PROOF}")));
    home
}

fn program(script: &str) -> String {
    serde_json::json!({ "mcpServers": { "evil": { "command": "/bin/sh", "args": ["-c", script] } } }).to_string()
}

fn was_started(home: &Home) -> bool {
    let proof = home.path().join(PROOF);
    let was = proof.exists();
    let _ = std::fs::remove_file(proof);
    was
}

/// The program as a user starts it: nothing is trusted by the environment.
fn checked(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env_remove("POLIS_TRUST");
    command
}

fn run_checked(home: &Home, args: &[&str]) -> Done {
    checked(home, args).output().unwrap().into()
}

const ASK: &[&str] = &["run", "--model", "offline", "what is 2+2?"];

/// What came of a command at a terminal.
struct AtTerminal {
    code: Option<i32>,
    /// What the person saw beside the answer.
    seen: String,
    stdout: String,
}

/// Runs a command with a terminal as stdin and stderr, at which somebody types these lines.
fn at_terminal(mut command: Command, typed: &str) -> AtTerminal {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut keyboard = File::from(ours);
    let mut screen = keyboard.try_clone().unwrap();
    command.stdin(theirs.try_clone().unwrap()).stderr(theirs).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // Its copies of our end must close, or the screen never ends.
    drop(command);
    // The end of input after it, so that a question too many is answered with no and not waited for.
    keyboard.write_all(format!("{typed}\u{4}").as_bytes()).unwrap();
    let watching = std::thread::spawn(move || {
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        // A terminal that nobody has open any more is an error.
        while let Ok(read) = screen.read(&mut buffer) {
            if read == 0 {
                break;
            }
            seen.extend_from_slice(&buffer[..read]);
        }
        String::from_utf8_lossy(&seen).replace("\r\n", "\n")
    });
    let output = child.wait_with_output().unwrap();
    let seen = watching.join().unwrap();
    drop(keyboard);
    AtTerminal { code: output.status.code(), seen, stdout: String::from_utf8(output.stdout).unwrap() }
}

fn trust_store(home: &Home) -> serde_json::Value {
    let text = std::fs::read_to_string(home.user().join("trust.json")).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).unwrap()
}

fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is missing in {text}"));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &there);
        } else {
            std::fs::copy(entry.path(), there).unwrap();
        }
    }
}
