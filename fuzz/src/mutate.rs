//! Finds inputs without an instrumented build: changes those of the corpus at random. The same seed gives the same inputs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Target;

/// Longest input that is made, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Bytes and texts on which parsers of any kind stumble.
const COMMON: &[&str] = &[
    "\0",
    "\n",
    "\r\n",
    "\r",
    "\u{feff}",
    "\u{202e}",
    "\u{fffd}",
    "数",
    "😀",
    "\\",
    "\"",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "*",
    ":",
    "-1",
    "0",
    "4294967296",
    "1e999",
    "../",
    "%00",
    "%2e",
    "--",
    "<",
    ">",
    "&",
    "=",
    " ",
    "\t",
    "null",
    "true",
];

/// Random numbers that follow from a seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// An input that broke a promise.
#[derive(Debug)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What the target said.
    pub message: String,
}

/// Gives a target one input.
pub fn try_one(target: &Target, input: &[u8]) -> Result<(), Finding> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_default();
        Finding { input: input.to_vec(), message }
    })
}

/// Gives a target changed inputs of its corpus until `go_on` says no; tells how many it was given.
pub fn explore(target: &Target, seed: u64, mut go_on: impl FnMut(u64) -> bool) -> Result<u64, Finding> {
    let corpus: Vec<Vec<u8>> = target.corpus().into_iter().map(|(_, input)| input).collect();
    let (mut random, mut count) = (Random::new(seed), 0);
    while go_on(count) {
        let input = changed(&corpus, target.words, &mut random);
        try_one(target, &input)?;
        count += 1;
    }
    Ok(count)
}

/// One input of the corpus, changed in a few places.
fn changed(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| corpus.get(random.below(corpus.len())).cloned().unwrap_or_default();
    let mut input = pick(random);
    for _ in 0..=random.below(6) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(16)).min(input.len());
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let again = input[at..end].repeat(1 + random.below(8));
                insert(&mut input, at, &again);
            }
            5 => insert(&mut input, at, COMMON[random.below(COMMON.len())].as_bytes()),
            6 | 7 if !words.is_empty() => insert(&mut input, at, words[random.below(words.len())].as_bytes()),
            _ => {
                let other = pick(random);
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(MAX_BYTES);
    input
}

fn insert(input: &mut Vec<u8>, at: usize, chunk: &[u8]) {
    input.splice(at..at, chunk.iter().copied());
}
