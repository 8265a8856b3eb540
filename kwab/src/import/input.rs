//! Tells what an input is by its first bytes, and makes a log of one that is compressed or in UTF-16.
//!
//! gzip, zlib, zstd and xz are unpacked while they are read, UTF-16 becomes UTF-8. Everything else that is not text is
//! refused by its name: [`InputError::NotALog`]. A compressed log that is cut, damaged or larger than [`most_unpacked`]
//! allows ends there: what was unpacked before is imported, and [`LogInput::problem`] says why it is not more.

use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read};
use std::rc::Rc;

use encoding_rs_io::DecodeReaderBytesBuilder;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::magic::{self, Kind, Packing};

/// Bytes that decide what an input is.
const HEAD: u64 = 64 << 10;
/// The largest window of a zstd frame: the memory that unpacking needs. `zstd -19` uses 8 MiB.
const LARGEST_WINDOW: u64 = 32 << 20;
/// The most memory that unpacking xz takes, in KiB: the dictionary of `xz -9` is 64 MiB, and what the decoder needs.
const LARGEST_DICTIONARY: u32 = 66 << 10;

/// The most bytes that `packed` bytes may become: more than logs do, and far less than a bomb does.
#[must_use]
pub const fn most_unpacked(packed: u64) -> u64 {
    (64 << 20) + packed.saturating_mul(128)
}

/// Why an input cannot be imported: what it is, and what can be done with it.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Reading the log failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The input has no bytes.
    #[error("is empty: 0 bytes; nothing was written to it (is the guest's console connected?)")]
    Empty,
    /// Something else than a log.
    #[error("is {what}, not a log; {advice}")]
    NotALog {
        /// What it is.
        what: String,
        /// What can be done with it.
        advice: &'static str,
    },
}

/// A log as text, whatever it was packed in.
pub struct LogInput<'a> {
    input: Box<dyn Read + 'a>,
    /// The format it came in; `None` for plain text.
    pub form: Option<&'static str>,
    /// What was packed is a file that another tool has recorded, not a text.
    pub is_recorded: bool,
    head: Vec<u8>,
    problem: Rc<RefCell<Option<String>>>,
}

impl std::fmt::Debug for LogInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogInput").field("form", &self.form).finish_non_exhaustive()
    }
}

impl<'a> LogInput<'a> {
    /// Looks at the first bytes and unpacks what is packed.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn open(mut input: impl Read + 'a) -> Result<Self, InputError> {
        let head = head_of(&mut input)?;
        if head.is_empty() {
            return Err(InputError::Empty);
        }
        let problem = Rc::default();
        let kind = magic::kind(&head);
        let start = head.clone();
        let whole = Cursor::new(head).chain(input);
        let Kind::Packed(packing) = kind else {
            let input = text_of(kind, whole)?;
            return Ok(Self { form: kind.form(), is_recorded: false, input, head: start, problem });
        };
        let mut unpacked = Unpacked::new(packing, whole, Rc::clone(&problem));
        let head = head_of(&mut unpacked)?;
        if head.is_empty() {
            let why = problem.take().unwrap_or_else(|| "no bytes were compressed".to_owned());
            return Err(not_a_log(format!("{} data without content: {why}", packing.name()), "record the log again"));
        }
        let kind = magic::kind(&head);
        let (start, whole) = (head.clone(), Cursor::new(head).chain(unpacked));
        let is_recorded = matches!(kind, Kind::Recorded(_));
        let input: Box<dyn Read + 'a> = match kind {
            Kind::Text | Kind::Utf16(_) => text_of(kind, whole)?,
            Kind::Recorded(_) => Box::new(whole),
            Kind::Packed(_) | Kind::Other(..) | Kind::Binary { .. } => {
                return Err(not_a_log(format!("{} data, and in it {}", packing.name(), kind.name()), packing.advice()));
            }
        };
        Ok(Self { form: Some(packing.name()), is_recorded, input, head: start, problem })
    }

    /// The first bytes, unpacked: at most 64 KiB.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Why the log ended before its input did, once it has been read to the end.
    #[must_use]
    pub fn problem(&self) -> Rc<RefCell<Option<String>>> {
        Rc::clone(&self.problem)
    }
}

impl Read for LogInput<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.input.read(bytes)
    }
}

fn head_of(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    Read::take(input, HEAD).read_to_end(&mut head)?;
    Ok(head)
}

fn not_a_log(what: String, advice: &'static str) -> InputError {
    InputError::NotALog { what, advice }
}

/// The input as UTF-8.
fn text_of<'a>(kind: Kind, input: impl Read + 'a) -> Result<Box<dyn Read + 'a>, InputError> {
    match kind {
        Kind::Text => Ok(Box::new(input)),
        Kind::Utf16(encoding) => {
            let decoder = DecodeReaderBytesBuilder::new().encoding(Some(encoding)).strip_bom(true).build(input);
            Ok(Box::new(decoder))
        }
        Kind::Packed(_) | Kind::Recorded(_) | Kind::Other(..) | Kind::Binary { .. } => {
            Err(not_a_log(kind.name(), kind.advice()))
        }
    }
}

/// Counts what is read.
struct Counted<R> {
    input: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

/// Unpacks until the end, a defect or the limit; the last two are not errors but a problem.
struct Unpacked<R: Read> {
    decoder: Decoder<Counted<R>>,
    packing: Packing,
    read: Rc<Cell<u64>>,
    given: u64,
    problem: Rc<RefCell<Option<String>>>,
}

enum Decoder<R: Read> {
    Gzip(Box<MultiGzDecoder<R>>),
    Zstd(Box<Zstd<R>>),
    Zlib(Box<ZlibDecoder<R>>),
    Xz(Box<XzReader<R>>),
    Ended,
}

impl<R: Read> Unpacked<R> {
    fn new(packing: Packing, input: R, problem: Rc<RefCell<Option<String>>>) -> Self {
        let read = Rc::new(Cell::new(0));
        let input = Counted { input, count: Rc::clone(&read) };
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(input))),
            Packing::Zstd => Decoder::Zstd(Box::new(Zstd::new(input))),
            Packing::Zlib => Decoder::Zlib(Box::new(ZlibDecoder::new(input))),
            Packing::Xz => Decoder::Xz(Box::new(XzReader::new_mem_limit(input, true, LARGEST_DICTIONARY))),
        };
        Self { decoder, packing, read, given: 0, problem }
    }

    fn end(&mut self, why: &str) -> usize {
        let (name, at) = (self.packing.name(), self.read.get());
        let text = format!("the {name} data ends at byte {at}: {why}; what was unpacked before it is imported");
        *self.problem.borrow_mut() = Some(text);
        self.decoder = Decoder::Ended;
        0
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.given >= most_unpacked(self.read.get()) {
            let limit = most_unpacked(self.read.get());
            return Ok(self.end(&format!("it unpacks to more than {limit} bytes; unpack it first if that is meant")));
        }
        match self.decoder.read(bytes) {
            Ok(count) => {
                self.given += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Ok(self.end(&error.to_string())),
        }
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(bytes),
            Self::Zstd(decoder) => decoder.read(bytes),
            Self::Zlib(decoder) => decoder.read(bytes),
            Self::Xz(decoder) => decoder.read(bytes),
            Self::Ended => Ok(0),
        }
    }
}

/// The frames of a zstd stream, one behind the other.
struct Zstd<R> {
    frame: FrameDecoder,
    input: R,
    inside: bool,
}

impl<R: Read> Zstd<R> {
    fn new(input: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(LARGEST_WINDOW);
        Self { frame, input, inside: false }
    }

    /// Begins the next frame with data; `false` at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut first = [0];
            if self.input.read(&mut first)? == 0 {
                return Ok(false);
            }
            match self.frame.init(first.chain(&mut self.input)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut Read::take(&mut self.input, u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Compares the checksum of a frame that has one.
    fn end(&self) -> io::Result<()> {
        match (self.frame.get_checksum_from_data(), self.frame.get_calculated_checksum()) {
            (Some(told), Some(found)) if told != found => Err(io::Error::other("the checksum of a frame is wrong")),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.inside && self.frame.can_collect() > 0 {
                return self.frame.read(bytes);
            }
            if self.inside && !self.frame.is_finished() {
                let decoded = self.frame.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(io::Error::other)?;
                continue;
            }
            if std::mem::take(&mut self.inside) {
                self.end()?;
            }
            self.inside = self.begin()?;
            if !self.inside {
                return Ok(0);
            }
        }
    }
}
