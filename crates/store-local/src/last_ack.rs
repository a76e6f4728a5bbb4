//! The file `witness`: names the last event of the last acknowledged commit.
//!
//! SQLite silently drops everything behind a damaged frame of its WAL, including commits that were acknowledged. This file is
//! written after the commit is on the disk and before it is acknowledged, so it never names more than was committed; the
//! event that it names must exist at the next opening. It is not synced: after a power cut it may name an older event, which
//! is harmless.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::sums::Sums;

pub(crate) const FILE: &str = "witness";

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LastAck {
    /// Whether the last stop was clean.
    pub(crate) clean: bool,
    /// The last event of the last acknowledged commit.
    pub(crate) last: Option<EventRef>,
    /// Checksums of the indexes, if the last stop was clean and they were known.
    pub(crate) sums: Option<StoredSums>,
}

/// Checksums at a clean stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoredSums {
    pub(crate) indexes: Sums,
    pub(crate) societies: u64,
}

/// An event by its row id and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventRef {
    pub(crate) id: i64,
    pub(crate) crc: u32,
}

/// Reads the file. A missing or broken one counts as empty.
pub(crate) fn read(dir: &Path) -> LastAck {
    fs::read(dir.join(FILE)).ok().and_then(|text| parse(&text)).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct LastAckFile {
    file: File,
    last: Option<EventRef>,
}

impl LastAckFile {
    /// Opens the file with the present content, marked as unclean for the case that this process dies.
    pub(crate) fn begin(dir: &Path, last_ack: LastAck) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(dir.join(FILE))?;
        let this = Self { file, last: last_ack.last };
        this.write(State::Running)?;
        this.file.sync_all()?;
        Ok(this)
    }

    /// Records that a commit ending with this event is on the disk.
    pub(crate) fn committed(&mut self, last: EventRef) {
        self.last = Some(last);
        // If this fails the file names an older event; the commit stands all the same.
        let _ = self.write(State::Running);
    }

    /// Records a clean stop: everything is in `polis.db` and nothing will follow.
    pub(crate) fn end(self, sums: Option<StoredSums>) -> io::Result<()> {
        self.write(State::Stopped(sums))?;
        self.file.sync_all()
    }

    fn write(&self, state: State) -> io::Result<()> {
        let (clean, sums) = match state {
            State::Running => (false, None),
            State::Stopped(sums) => (true, sums),
        };
        write_at_start(&self.file, print(LastAck { clean, last: self.last, sums }).as_bytes())
    }
}

enum State {
    Running,
    Stopped(Option<StoredSums>),
}

#[cfg(unix)]
fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
}

/// The text of the file. It always has the same length, so that a new text overwrites the old one completely.
fn print(last_ack: LastAck) -> String {
    let state = match (last_ack.clean, last_ack.sums) {
        (false, _) => "running",
        (true, None) => "stopped",
        (true, Some(_)) => "counted",
    };
    let EventRef { id, crc } = last_ack.last.unwrap_or(EventRef { id: 0, crc: 0 });
    let StoredSums { indexes: Sums { events, threads }, societies } = last_ack.sums.unwrap_or_default();
    let text = format!("polis witness 2 {state} {id:016x} {crc:08x} {events:016x} {threads:016x} {societies:016x}");
    let check = crc32fast::hash(text.as_bytes());
    format!("{text} {check:08x}\n")
}

/// The text that an older version wrote.
fn print_1(last_ack: LastAck) -> String {
    let state = if last_ack.clean { "stopped" } else { "running" };
    let EventRef { id, crc } = last_ack.last.unwrap_or(EventRef { id: 0, crc: 0 });
    let text = format!("polis witness 1 {state} {id:016x} {crc:08x}");
    let check = crc32fast::hash(text.as_bytes());
    format!("{text} {check:08x}\n")
}

fn parse(bytes: &[u8]) -> Option<LastAck> {
    let text = std::str::from_utf8(bytes).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (state, id, crc, sums) = match *fields.as_slice() {
        ["polis", "witness", "1", state, id, crc, _] => (state, id, crc, None),
        ["polis", "witness", "2", state, id, crc, events, threads, societies, _] => {
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let indexes = Sums { events: number(events)?, threads: number(threads)? };
            (state, id, crc, Some(StoredSums { indexes, societies: number(societies)? }))
        }
        _ => return None,
    };
    let id = i64::from_str_radix(id, 16).ok()?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    let last_ack = LastAck {
        clean: state != "running",
        last: (id != 0).then_some(EventRef { id, crc }),
        sums: sums.filter(|_| state == "counted"),
    };
    (print(last_ack) == text || print_1(last_ack) == text).then_some(last_ack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_back_as_written_and_a_broken_one_counts_as_empty() {
        for last_ack in [
            LastAck::default(),
            LastAck { clean: true, last: Some(EventRef { id: 1 << 40 | 7, crc: 0xfedc_ba98 }), sums: None },
            LastAck {
                clean: true,
                last: Some(EventRef { id: 1 << 40 | 7, crc: 0xfedc_ba98 }),
                sums: Some(StoredSums { indexes: Sums { events: u64::MAX, threads: 1 }, societies: 7 }),
            },
            LastAck { clean: false, last: Some(EventRef { id: i64::MAX, crc: 0 }), sums: None },
        ] {
            let text = print(last_ack);
            assert_eq!(parse(text.as_bytes()), Some(last_ack));
            for at in 0..text.len() {
                let mut broken = text.clone().into_bytes();
                broken[at] ^= 1;
                assert_eq!(parse(&broken), None, "byte {at} changed");
                assert_eq!(parse(&text.as_bytes()[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn the_file_of_an_older_version_is_read() {
        let last_ack = LastAck { clean: true, last: Some(EventRef { id: 1 << 40 | 7, crc: 3 }), sums: None };
        assert_eq!(parse(print_1(last_ack).as_bytes()), Some(last_ack));
    }
}
