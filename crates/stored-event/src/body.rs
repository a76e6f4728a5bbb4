//! How the body of an event is stored: as the JSON that it is, or packed as a frame of zstd.
//!
//! The first byte tells them apart. Older databases have plain bodies, and both kinds may be in one table.
//!
//! Each body is packed alone, so that a thread can be read without other rows, and a body can be replaced without touching
//! others. What events have in common (field names, the prompts that ship with Polis) is in a dictionary instead, which
//! `cargo xtask dictionary` makes. A frame names its dictionary by number. A dictionary that has packed anything stays; the next
//! one gets another number, and with it another version of the tables.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{compress_bound, get_frame_content_size};

const DICTIONARY: &[u8] = include_bytes!("dictionary_1.zdict");

/// Higher levels take longer than they save.
const LEVEL: i32 = 3;

/// The level of segments, which are written once and take their time.
const SEGMENT_LEVEL: i32 = 9;

/// A shorter body stays as it is.
const MIN_BYTES: usize = 64;

/// The first byte of every frame; no JSON begins with it.
const FRAME: u8 = 0x28;

/// As much as SQLite stores in a row. A damaged frame that claims more is refused before memory is allocated for it.
const MAX_BYTES: u64 = 1_000_000_000;

static TO_PACK: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static TO_SEAL: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, SEGMENT_LEVEL));
static TO_UNPACK: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    static COMPRESSOR: RefCell<io::Result<Compressor<'static>>> =
        RefCell::new(Compressor::with_prepared_dictionary(&TO_PACK));
    static DECOMPRESSOR: RefCell<io::Result<Decompressor<'static>>> =
        RefCell::new(Decompressor::with_prepared_dictionary(&TO_UNPACK));
}

/// What to store for a body: itself, unless packing makes it shorter.
pub fn pack(body: &[u8]) -> Cow<'_, [u8]> {
    if body.len() < MIN_BYTES {
        return Cow::Borrowed(body);
    }
    let mut frame = Vec::with_capacity(compress_bound(body.len()));
    let is_packed = COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.as_mut().is_ok_and(|compressor| compressor.compress_to_buffer(body, &mut frame).is_ok())
    });
    if is_packed && frame.len() < body.len() { Cow::Owned(frame) } else { Cow::Borrowed(body) }
}

/// Packs many events together.
pub fn pack_segment(events: &[u8]) -> io::Result<Vec<u8>> {
    Compressor::with_prepared_dictionary(&TO_SEAL)?.compress(events)
}

/// The body that was stored so.
///
/// # Errors
///
/// What is wrong with it, to follow "the event is damaged:".
pub fn unpack(stored: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if stored.first() != Some(&FRAME) {
        return Ok(Cow::Borrowed(stored));
    }
    let bytes = match get_frame_content_size(stored) {
        Ok(Some(bytes)) if bytes <= MAX_BYTES => bytes as usize,
        _ => return Err("its length cannot be read".to_owned()),
    };
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = decompressor.as_mut().map_err(|error| error.to_string())?;
        let body = decompressor.decompress(stored, bytes).map_err(|error| format!("it cannot be unpacked: {error}"))?;
        Ok(Cow::Owned(body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_is_never_longer() {
        let noise: Vec<u8> = (0..500_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let text = br#"{"messageAdded":{"by":"7.1","index":3,"message":{"id":"m-1","sender":"assistant","text":"hello"}}}"#;
        for body in [&b""[..], b"{}", b"\"agentRested\"", text, &text.repeat(1_000), &noise] {
            let packed = pack(body);
            assert!(packed.len() <= body.len());
            assert_eq!(&*unpack(&packed).unwrap(), body);
        }
        assert!(pack(text).len() < text.len() / 2, "{} of {} bytes", pack(text).len(), text.len());
    }

    /// A changed byte may still give a text; the checksum of the event then does not match.
    #[test]
    fn a_frame_that_is_cut_or_claims_too_much_is_refused() {
        let text = br#"{"messageAdded":{"by":"7.1","index":3,"message":{"id":"m-1","sender":"assistant","text":"hello"}}}"#;
        let packed = pack(text).into_owned();
        for at in 1..packed.len() {
            assert!(unpack(&packed[..at]).is_err(), "cut at {at}");
        }
        let mut claims = packed[..4].to_vec();
        // A header with a length of eight bytes, and no dictionary.
        claims.push(0b1110_0000);
        claims.extend(u64::MAX.to_le_bytes());
        assert_eq!(unpack(&claims), Err("its length cannot be read".to_owned()));
        let mut another = packed;
        another[5] += 1;
        assert!(unpack(&another).is_err(), "a dictionary that is not there");
    }

    /// The number in the file is what frames name.
    #[test]
    fn the_dictionary_has_its_number() {
        assert_eq!(DICTIONARY[4..8], 1_u32.to_le_bytes());
    }
}
