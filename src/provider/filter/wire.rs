//! Frames between this process and the one that runs the user's filters: a length of four bytes, little-endian, then
//! as many bytes.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::program::{Ask, Source};

/// Longest frame either side takes: a body at its cap, with room for headers. The transport's own cap is lower.
pub(super) const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// First frame of a child: its filters.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) programs: Vec<Source>,
}

/// What goes before a body, which follows in a frame of its own, as it came. A `Told` comes back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// Place among the programs.
    pub(super) program: usize,
    pub(super) ask: Ask,
}

pub(super) fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(bytes)
}

pub(super) fn write_json(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    write(to, &serde_json::to_vec(value)?)
}

/// The next frame; `None` at the end of the stream.
pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    match from.read_exact(&mut len) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let len = u32::from_le_bytes(len) as usize;
    if len > MAX_FRAME_BYTES {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    // Grows with what arrives: a length alone reserves nothing.
    let mut bytes = Vec::new();
    from.take(len as u64).read_to_end(&mut bytes)?;
    if bytes.len() < len { Ok(None) } else { Ok(Some(bytes)) }
}

pub(super) fn read_json<T: for<'de> Deserialize<'de>>(from: &mut impl Read) -> io::Result<Option<T>> {
    Ok(match read(from)? {
        None => None,
        Some(bytes) => Some(serde_json::from_slice(&bytes)?),
    })
}
