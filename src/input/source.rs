//! Opens an input and undoes its compression and encoding.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    os::fd::AsFd,
    sync::Arc,
};

use super::{Input, InputError, gzip::Gzip, pieces::Plain, utf16::Utf16};

/// Bytes read from a compressed file at a time. 64 KiB: below it zlib-rs slows, above it nothing is won.
const COMPRESSED_BUFFER: usize = 64 * 1024;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Skippable zstd frames, which pzstd writes first: `50 2a 4d 18` to `5f 2a 4d 18`.
const ZSTD_SKIPPABLE: &[u8] = b"\x2a\x4d\x18";

/// An open input: text in UTF-8, whatever it was stored as.
pub(crate) struct Source {
    pub(crate) input: Input,
    reader: Box<dyn Read + Send>,
    /// The bytes are given as they are stored.
    is_raw: bool,
    /// Set where the same bytes can be read in pieces: a regular file that is neither compressed nor UTF-16.
    pub(crate) plain: Option<Plain>,
}

impl Source {
    /// Opens a file or standard input.
    pub(crate) fn open(input: &Input) -> Result<Self, InputError> {
        match input {
            Input::Stdin => match io::stdin().as_fd().try_clone_to_owned() {
                // A descriptor of our own reads without std's buffer; a file may have been read in part already.
                Ok(owned) => {
                    let mut file = File::from(owned);
                    let start = file.stream_position().ok();
                    Self::file(input, file, start)
                }
                Err(source) => Err(InputError::open(input, source)),
            },
            Input::File(path) => {
                let file = File::open(path).map_err(|source| InputError::open(input, source))?;
                Self::file(input, file, Some(0))
            }
        }
    }

    fn file(input: &Input, file: File, start: Option<u64>) -> Result<Self, InputError> {
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(InputError::Directory { input: input.clone() });
        }
        let file = Arc::new(file);
        let plain = start.and_then(|start| Plain::new(Arc::clone(&file), start));
        let source = Self::over(input, Box::new(file))?;
        Ok(Self { plain: plain.filter(|_| source.is_raw), ..source })
    }

    /// The same over bytes that are already open; `input` names them in messages.
    pub(crate) fn over(input: &Input, mut raw: Box<dyn Read + Send>) -> Result<Self, InputError> {
        let fail = |source| InputError::read(input, source);
        let start = first_bytes(&mut raw).map_err(fail)?;
        let magic = start.clone();
        let whole = io::Cursor::new(start).chain(raw);
        let reader: Box<dyn Read + Send> = if magic.starts_with(GZIP) {
            Box::new(Gzip::new(BufReader::with_capacity(COMPRESSED_BUFFER, whole)))
        } else if is_zstd(&magic) {
            let buffered = BufReader::with_capacity(COMPRESSED_BUFFER, whole);
            Box::new(zstd::stream::read::Decoder::with_buffer(buffered).map_err(fail)?)
        } else {
            let is_raw = !is_utf16(&magic);
            return Ok(Self { input: input.clone(), reader: decode(&magic, whole), is_raw, plain: None });
        };
        Self::decompressed(input, reader)
    }

    /// Bytes that stand in the middle of an input, taken as they are.
    pub(crate) fn bare(input: &Input, reader: Box<dyn Read + Send>) -> Self {
        Self { input: input.clone(), reader, is_raw: true, plain: None }
    }

    /// The text's own first bytes tell of its encoding, once the compression is undone. Damage this early is left
    /// for the reader of the lines to meet again.
    fn decompressed(input: &Input, mut reader: Box<dyn Read + Send>) -> Result<Self, InputError> {
        let mut start = Vec::new();
        let outcome = reader.by_ref().take(4).read_to_end(&mut start);
        let reader: Box<dyn Read + Send> = match outcome {
            Ok(_) => decode(&start.clone(), io::Cursor::new(start).chain(reader)),
            Err(error) if is_damage(&error) => Box::new(io::Cursor::new(start).chain(Broken(Some(error)))),
            Err(error) => return Err(InputError::read(input, error)),
        };
        Ok(Self { input: input.clone(), reader, is_raw: false, plain: None })
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// A reader that has only its error left to give.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Whether the stream itself is at fault, rather than the device: the system's own errors carry a number.
pub(super) fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}

fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(ZSTD)
        || (start.first().is_some_and(|&byte| byte & 0xf0 == 0x50) && start.get(1..4) == Some(ZSTD_SKIPPABLE))
}

fn is_utf16(start: &[u8]) -> bool {
    matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

/// Up to four bytes, fewer only at the end.
fn first_bytes(raw: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(4);
    raw.take(4).read_to_end(&mut start)?;
    Ok(start)
}

/// Decodes by the byte order mark; the UTF-8 one is left, since it counts as bytes read (see `Blocks`).
fn decode<R: Read + Send + 'static>(start: &[u8], mut whole: R) -> Box<dyn Read + Send> {
    if !is_utf16(start) {
        return Box::new(whole);
    }
    let big_endian = start.first() == Some(&0xfe);
    // Reads from memory: the mark is in the chained cursor.
    let mut mark = [0; 2];
    match whole.read_exact(&mut mark) {
        Ok(()) => Box::new(Utf16::new(whole, big_endian)),
        Err(error) => Box::new(Broken(Some(error))),
    }
}
