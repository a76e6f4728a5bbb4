//! The body of a response as text: compressed bodies are decoded, although none are asked for. Also knows whether a body has
//! come whole.

use std::io::{self, Write};
use std::task::{Context, Poll, ready};

use brotli_decompressor::{BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, DecompressorWriter as BrotliDecoder};
use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use polis_http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use polis_http::{Body, Bytes, HeaderMap, Version};

/// Most bytes that one chunk may become. A few compressed bytes can stand for very many.
const MAX_DECODED_BYTES: usize = 64 << 20;

/// The buffer of brotli between its window and what takes the bytes.
const BROTLI_BUFFER_BYTES: usize = 16 << 10;

/// A body and how it is written.
pub(super) struct Content {
    body: Body,
    decoder: Decoder,
    /// Whether the end of the body is told apart from a lost connection.
    is_framed: bool,
}

enum Decoder {
    /// Nothing has come; the first byte of gzip begins no text.
    Unknown(Encoding),
    Plain,
    Gzip(GzDecoder<Decoded>),
    Zlib(ZlibDecoder<Decoded>),
    Deflate(DeflateDecoder<Decoded>),
    Brotli(Box<BrotliDecoder<Decoded>>),
}

/// What the head says about the encoding.
#[derive(Clone, Copy)]
enum Encoding {
    /// None, or gzip, which the first byte tells.
    Usual,
    /// `deflate`, which some servers send with a zlib header and some without.
    Deflate,
    Brotli,
}

/// What was decoded of one chunk, which has a limit.
#[derive(Default)]
struct Decoded(Vec<u8>);

impl Write for Decoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_DECODED_BYTES {
            return Err(io::Error::other(format!("it has more than {MAX_DECODED_BYTES} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Content {
    /// The content of a response; an error with the name of an encoding that cannot be read.
    pub(super) fn new(version: Version, headers: &HeaderMap, body: Body) -> Result<Self, String> {
        let value = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
        let encoding = match value(CONTENT_ENCODING).as_deref() {
            None | Some("" | "identity" | "gzip" | "x-gzip") => Encoding::Usual,
            Some("deflate") => Encoding::Deflate,
            Some("br") => Encoding::Brotli,
            Some(other) => return Err(other.to_owned()),
        };
        let is_chunked = value(TRANSFER_ENCODING).is_some_and(|encoding| encoding.ends_with("chunked"));
        let is_framed = version > Version::HTTP_11 || is_chunked || headers.contains_key(CONTENT_LENGTH);
        Ok(Self { body, decoder: Decoder::Unknown(encoding), is_framed })
    }

    /// The next bytes; none at the end. An error says why no more can come.
    pub(super) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            let Some(chunk) = ready!(self.body.poll_chunk(cx)) else { return Poll::Ready(None) };
            let decoded = chunk.map_err(|error| error.to_string()).and_then(|chunk| self.decoder.decode(chunk));
            if !matches!(&decoded, Ok(bytes) if bytes.is_empty()) {
                return Poll::Ready(Some(decoded));
            }
        }
    }

    /// At the end: whether nothing is missing, as far as HTTP can tell.
    pub(super) fn is_whole(&mut self) -> bool {
        self.is_framed
            && match &mut self.decoder {
                Decoder::Unknown(_) | Decoder::Plain => true,
                Decoder::Gzip(decoder) => decoder.try_finish().is_ok(),
                Decoder::Zlib(decoder) => decoder.try_finish().is_ok(),
                Decoder::Deflate(decoder) => decoder.try_finish().is_ok(),
                Decoder::Brotli(decoder) => decoder.close().is_ok(),
            }
    }

    /// The whole of it, unless it has more bytes.
    pub(super) async fn read(mut self, max_bytes: usize) -> Result<Vec<u8>, polis_http::HttpError> {
        let bytes = Bytes::from(self.body.read(max_bytes).await?);
        Ok(self.decoder.decode(bytes.clone()).unwrap_or(bytes).into())
    }
}

impl Decoder {
    fn decode(&mut self, chunk: Bytes) -> Result<Bytes, String> {
        if let Self::Unknown(encoding) = self {
            let Some(&first) = chunk.first() else { return Ok(chunk) };
            *self = match (first, *encoding) {
                (0x1f, Encoding::Usual) => Self::Gzip(GzDecoder::new(Decoded::default())),
                (_, Encoding::Usual) => Self::Plain,
                // The compression method of zlib.
                (first, Encoding::Deflate) if first & 0x0f == 8 => Self::Zlib(ZlibDecoder::new(Decoded::default())),
                (_, Encoding::Deflate) => Self::Deflate(DeflateDecoder::new(Decoded::default())),
                (_, Encoding::Brotli) => {
                    let mut decoder = BrotliDecoder::new(Decoded::default(), BROTLI_BUFFER_BYTES);
                    // The window is at most 16 MiB; a large one could be 1 GiB.
                    decoder.set_parameter(BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                    Self::Brotli(Box::new(decoder))
                }
            };
        }
        match self {
            Self::Unknown(_) | Self::Plain => Ok(chunk),
            Self::Gzip(decoder) => inflate(decoder, GzDecoder::get_mut, &chunk),
            Self::Zlib(decoder) => inflate(decoder, ZlibDecoder::get_mut, &chunk),
            Self::Deflate(decoder) => inflate(decoder, DeflateDecoder::get_mut, &chunk),
            Self::Brotli(decoder) => inflate(&mut **decoder, BrotliDecoder::get_mut, &chunk),
        }
    }
}

fn inflate<W: Write>(decoder: &mut W, output: impl Fn(&mut W) -> &mut Decoded, chunk: &[u8]) -> Result<Bytes, String> {
    let written = decoder.write_all(chunk).and_then(|()| decoder.flush());
    written.map_err(|error| format!("the answer cannot be decompressed: {error}"))?;
    Ok(std::mem::take(&mut output(decoder).0).into())
}
