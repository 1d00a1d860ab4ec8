//! Reads a file on as it grows, through rotation and truncation.
//!
//! What happens to a log, and what is done:
//!
//! - It grows: what is new is read. Half a line waits for its end.
//! - It is renamed, and a new one takes its place: the old one is read to its end, and once the new one has something
//!   in it, so that the writer has moved over, the new one from its beginning. The old one is looked at until the next
//!   rotation, for what a slow writer still adds.
//! - It is cut back (copytruncate, `> eve.json`): it is read from its beginning. That is told by its length, and where
//!   it has grown beyond that again, by the last bytes read, which must still stand where they stood.
//!
//! What was cut off before it was read is lost, and so are whole files where there are two rotations between two
//! looks. Never waits and never sleeps: whoever follows decides when to look.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Blocks, Input, InputError, Piece, Source, sniff};

/// Last bytes kept to recognise a file that was cut back and has grown again: more than a timestamp and a flow id.
const REMEMBERED: usize = 256;

/// Bytes taken at one look, about: some ten milliseconds' work, so that whoever follows hears of other things between,
/// however much is there.
const LOOK: usize = 8 << 20;

/// How much of a file's beginning is looked at to tell what it is.
const BEGINNING: u64 = 64 * 1024;

/// A file that is followed.
pub(crate) struct Follow {
    path: PathBuf,
    max_line: usize,
    current: Option<Tail>,
    previous: Option<Tail>,
    /// How often bytes may have been lost because the file was cut back.
    pub(crate) cuts: u64,
}

/// One file, under whatever name, and how far it was read.
struct Tail {
    file: Arc<File>,
    id: (u64, u64),
    place: Arc<Mutex<Place>>,
    blocks: Blocks,
}

#[derive(Debug, Default)]
struct Place {
    position: u64,
    last: Vec<u8>,
}

/// Reads on from where it stands; an end is only an end for now.
struct Growing {
    file: Arc<File>,
    place: Arc<Mutex<Place>>,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Only one thread ever holds it; nothing is left half done if that panics.
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.file.read_at(buffer, place.position)?;
        place.position += count as u64;
        let bytes = buffer.get(..count).unwrap_or_default();
        place.last.extend_from_slice(bytes.get(count.saturating_sub(REMEMBERED)..).unwrap_or_default());
        let over = place.last.len().saturating_sub(REMEMBERED);
        place.last.drain(..over);
        Ok(count)
    }
}

impl Tail {
    fn new(file: File, input: &Input, max_line: usize) -> io::Result<Self> {
        let data = file.metadata()?;
        let (file, place) = (Arc::new(file), Arc::new(Mutex::new(Place::default())));
        let reader = Growing { file: Arc::clone(&file), place: Arc::clone(&place) };
        let mut blocks = Blocks::bare(Source::bare(input, Box::new(reader)), max_line);
        blocks.wait_for_more(true);
        Ok(Self { file, id: (data.dev(), data.ino()), place, blocks })
    }

    /// Whether what was read is no longer there.
    fn is_cut(&self) -> io::Result<bool> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if self.file.metadata()?.len() < place.position {
            return Ok(true);
        }
        let mut now = vec![0; place.last.len()];
        let start = place.position - now.len() as u64;
        Ok(self.file.read_exact_at(&mut now, start).is_err() || now != place.last)
    }

    fn is_unread(&self) -> io::Result<bool> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.file.metadata()?.len() > place.position)
    }
}

impl Follow {
    /// The file need not be there yet.
    pub(crate) fn new(path: &Path, max_line: usize) -> Self {
        Self { path: path.to_owned(), max_line, current: None, previous: None, cuts: 0 }
    }

    /// The whole lines at the beginning of the file, 64 KiB at the most; none while there are none, or no file.
    pub(crate) fn beginning(&self) -> Result<Option<Vec<u8>>, InputError> {
        let input = Input::File(self.path.clone());
        let refuse = |what| Err(InputError::NotFollowed { input: input.clone(), what });
        // A named pipe would not even open.
        match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(InputError::open(&input, error)),
            Ok(data) if data.is_dir() => return Err(InputError::Directory { input }),
            Ok(data) if !data.is_file() => return refuse("no regular file"),
            Ok(_) => {}
        }
        let source = match Source::open(&input) {
            Err(InputError::NotFound { .. }) => return Ok(None),
            source => source?,
        };
        if source.plain.is_none() {
            return refuse("compressed, or in UTF-16");
        }
        let mut prefix = Vec::new();
        source.take(BEGINNING).read_to_end(&mut prefix).map_err(|error| InputError::read(&input, error))?;
        if let Some(what) = sniff::binary(&prefix) {
            return Err(InputError::NotText { input, what });
        }
        let whole = memchr::memrchr(b'\n', &prefix).map_or(0, |at| at + 1);
        // A first line longer than that is one all the same.
        if (prefix.len() as u64) < BEGINNING || whole > 0 {
            prefix.truncate(whole);
        }
        Ok((!prefix.is_empty()).then_some(prefix))
    }

    /// Gives the whole lines there are by now, as [`Piece`]s. False where there is so much that some was left for the
    /// next look.
    pub(crate) fn poll(&mut self, mut take: impl FnMut(&Piece<'_>)) -> Result<bool, InputError> {
        let (input, mut room) = (Input::File(self.path.clone()), LOOK);
        let fail = |source| InputError::read(&input, source);
        // A rotation may be under way while we look: after a change, look again.
        loop {
            for tail in [&mut self.previous, &mut self.current].into_iter().flatten() {
                if tail.is_cut().map_err(fail)? {
                    self.cuts += 1;
                    // Nothing can be read there any more but what stands in memory.
                    tail.drain_rest(&mut take)?;
                    let again = tail.file.try_clone().map_err(fail)?;
                    *tail = Tail::new(again, &input, self.max_line).map_err(fail)?;
                }
                if !tail.drain(&mut take, &mut room)? {
                    return Ok(false);
                }
            }
            if !self.move_over(&input, &mut take)? {
                return Ok(true);
            }
        }
    }

    /// Takes up a new file under the path, if there is one with something in it.
    fn move_over(&mut self, input: &Input, take: &mut impl FnMut(&Piece<'_>)) -> Result<bool, InputError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            // Between two names. At the very start it is awaited, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(InputError::open(input, error)),
        };
        let fail = |source| InputError::read(input, source);
        let data = file.metadata().map_err(fail)?;
        if data.is_dir() {
            return Err(InputError::Directory { input: input.clone() });
        }
        let is_same = self.current.as_ref().is_some_and(|tail| tail.id == (data.dev(), data.ino()));
        if is_same || (self.current.is_some() && data.len() == 0) {
            return Ok(false);
        }
        // The writer has moved over; what it wrote to the old file before is all there now.
        if let Some(old) = &mut self.current {
            old.drain_all(&mut *take)?;
        }
        if let Some(mut older) = self.previous.take() {
            older.drain_all(&mut *take)?;
            older.drain_rest(&mut *take)?;
        }
        self.previous = self.current.replace(Tail::new(file, input, self.max_line).map_err(fail)?);
        Ok(true)
    }

    /// What stands unfinished at the end, once nobody waits any longer.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&Piece<'_>)) -> Result<(), InputError> {
        for mut tail in [self.previous.take(), self.current.take()].into_iter().flatten() {
            tail.drain_all(&mut take)?;
            tail.drain_rest(&mut take)?;
        }
        Ok(())
    }

    /// Whether there is more to read than was read, in the file that is read now.
    pub(crate) fn is_behind(&self) -> bool {
        self.current.as_ref().is_some_and(|tail| tail.is_unread().unwrap_or(false))
    }
}

impl Tail {
    /// What is there, as far as there is room for it. False where there was not.
    fn drain(&mut self, take: &mut impl FnMut(&Piece<'_>), room: &mut usize) -> Result<bool, InputError> {
        while *room > 0 {
            let Some(piece) = self.blocks.next()? else { return Ok(true) };
            if let Piece::Lines(_, length) = piece {
                *room = room.saturating_sub(length);
            }
            take(&piece);
        }
        Ok(false)
    }

    fn drain_all(&mut self, take: &mut impl FnMut(&Piece<'_>)) -> Result<(), InputError> {
        let mut room = usize::MAX;
        self.drain(take, &mut room).map(drop)
    }

    /// The half line that waits, as it is.
    fn drain_rest(&mut self, take: &mut impl FnMut(&Piece<'_>)) -> Result<(), InputError> {
        self.blocks.end_here();
        self.drain_all(take)
    }
}

#[cfg(test)]
mod tests;
