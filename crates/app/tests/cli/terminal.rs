//! A terminal at which a test types, and whose screen it reads.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::support::signal;

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// What appears on the screen.
    output: Receiver<Vec<u8>>,
    /// What the screen has shown, and how much of it was looked at.
    screen: Vec<u8>,
    seen: usize,
}

impl Terminal {
    /// Runs a command with a terminal as stdin, stdout and stderr.
    pub(crate) fn start(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // A terminal that nobody has open any more is an error.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, output, screen: Vec::new(), seen: 0 }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Ctrl-C. The terminal does not control the program, so the signal is sent.
    pub(crate) fn interrupt(&self) {
        signal(&self.child, Signal::INT);
    }

    /// Reads the screen until this is on it, after what was looked at before; what was shown until then.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let fresh = String::from_utf8_lossy(&self.screen[self.seen..]).into_owned();
            if let Some(at) = fresh.find(text) {
                self.seen += at + text.len();
                return fresh[..at].replace("\r\n", "\n");
            }
            let more = self.output.recv_timeout(Duration::from_secs(30));
            self.screen.extend(more.unwrap_or_else(|_| panic!("`{text}` is not on the screen:\n{fresh}")));
        }
    }

    /// Its exit status.
    pub(crate) fn ends(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
