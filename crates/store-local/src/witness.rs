//! The witness: names an event of the last acknowledged commit, in a file of its own.
//!
//! SQLite drops everything behind a damaged frame of its WAL without a word, also what was acknowledged. The witness is
//! written after the commit is on the disk and before anybody is told, so it never claims more than was committed; what
//! it names must be there at the next opening. It is not synced: after a power cut it may claim less, which is harmless.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::sums::Sums;

pub(crate) const FILE: &str = "witness";

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Claim {
    /// Whether the last stop was clean.
    pub(crate) clean: bool,
    /// An event of the last acknowledged commit.
    pub(crate) last: Option<Named>,
    /// What the indexes list, where the last stop was clean and it is known.
    pub(crate) sums: Option<Kept>,
}

/// What is known of the indexes at a clean stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    pub(crate) indexes: Sums,
    pub(crate) societies: u64,
}

/// An event by its row and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: i64,
    pub(crate) crc: u32,
}

/// What the file claims. One that is missing or not whole claims nothing.
pub(crate) fn read(dir: &Path) -> Claim {
    fs::read(dir.join(FILE)).ok().and_then(|text| parse(&text)).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Witness {
    file: File,
    last: Option<Named>,
}

impl Witness {
    /// Goes on from `claim`, marked as in use for the case that this process dies.
    pub(crate) fn begin(dir: &Path, claim: Claim) -> io::Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(dir.join(FILE))?;
        let witness = Self { file, last: claim.last };
        witness.write(State::Running)?;
        witness.file.sync_all()?;
        Ok(witness)
    }

    /// A commit that ends with this event is on the disk.
    pub(crate) fn committed(&mut self, last: Named) {
        self.last = Some(last);
        // If this fails the file claims less than it could; the commit stands all the same.
        let _ = self.write(State::Running);
    }

    /// Everything is in `polis.db` and nothing will follow.
    pub(crate) fn end(self, sums: Option<Kept>) -> io::Result<()> {
        self.write(State::Stopped(sums))?;
        self.file.sync_all()
    }

    fn write(&self, state: State) -> io::Result<()> {
        let (clean, sums) = match state {
            State::Running => (false, None),
            State::Stopped(sums) => (true, sums),
        };
        write_at_start(&self.file, print(Claim { clean, last: self.last, sums }).as_bytes())
    }
}

enum State {
    Running,
    Stopped(Option<Kept>),
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

/// Always the same length, so that a new claim overwrites the old one whole.
fn print(claim: Claim) -> String {
    let state = match (claim.clean, claim.sums) {
        (false, _) => "running",
        (true, None) => "stopped",
        (true, Some(_)) => "counted",
    };
    let Named { id, crc } = claim.last.unwrap_or(Named { id: 0, crc: 0 });
    let Kept { indexes: Sums { events, threads }, societies } = claim.sums.unwrap_or_default();
    let text = format!("polis witness 2 {state} {id:016x} {crc:08x} {events:016x} {threads:016x} {societies:016x}");
    let check = crc32fast::hash(text.as_bytes());
    format!("{text} {check:08x}\n")
}

/// What an older version has written.
fn print_1(claim: Claim) -> String {
    let state = if claim.clean { "stopped" } else { "running" };
    let Named { id, crc } = claim.last.unwrap_or(Named { id: 0, crc: 0 });
    let text = format!("polis witness 1 {state} {id:016x} {crc:08x}");
    let check = crc32fast::hash(text.as_bytes());
    format!("{text} {check:08x}\n")
}

fn parse(bytes: &[u8]) -> Option<Claim> {
    let text = std::str::from_utf8(bytes).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (state, id, crc, sums) = match *fields.as_slice() {
        ["polis", "witness", "1", state, id, crc, _] => (state, id, crc, None),
        ["polis", "witness", "2", state, id, crc, events, threads, societies, _] => {
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let indexes = Sums { events: number(events)?, threads: number(threads)? };
            (state, id, crc, Some(Kept { indexes, societies: number(societies)? }))
        }
        _ => return None,
    };
    let id = i64::from_str_radix(id, 16).ok()?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    let claim = Claim {
        clean: state != "running",
        last: (id != 0).then_some(Named { id, crc }),
        sums: sums.filter(|_| state == "counted"),
    };
    (print(claim) == text || print_1(claim) == text).then_some(claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_back_as_written_and_a_broken_one_claims_nothing() {
        for claim in [
            Claim::default(),
            Claim { clean: true, last: Some(Named { id: 1 << 40 | 7, crc: 0xfedc_ba98 }), sums: None },
            Claim {
                clean: true,
                last: Some(Named { id: 1 << 40 | 7, crc: 0xfedc_ba98 }),
                sums: Some(Kept { indexes: Sums { events: u64::MAX, threads: 1 }, societies: 7 }),
            },
            Claim { clean: false, last: Some(Named { id: i64::MAX, crc: 0 }), sums: None },
        ] {
            let text = print(claim);
            assert_eq!(parse(text.as_bytes()), Some(claim));
            for at in 0..text.len() {
                let mut broken = text.clone().into_bytes();
                broken[at] ^= 1;
                assert_eq!(parse(&broken), None, "byte {at} changed");
                assert_eq!(parse(&text.as_bytes()[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn what_an_older_version_has_written_is_read() {
        let claim = Claim { clean: true, last: Some(Named { id: 1 << 40 | 7, crc: 3 }), sums: None };
        assert_eq!(parse(print_1(claim).as_bytes()), Some(claim));
    }
}
