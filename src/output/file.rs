//! Files that are results: whole or not at all, or added to by whole lines.
//!
//! [`WholeFile`] writes beside its target, in a file of its own that is created and never opened through a link, and
//! moves it into place at the end: write, fsync, rename, fsync of the directory. Until then the old file stays as it is.
//! What an interrupted run has paid for stays in `FILE.partial` (or `FILE.partial-2` and so on, where an earlier run left
//! one: nothing that was paid for is ever overwritten).
//!
//! [`AppendFile`] adds to the file: one write(2) a record, under flock(2), so that several processes may share it. A
//! line torn by an earlier crash is ended first; one torn by a full disk is taken back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::OutputError;

/// So many unfinished files may lie beside one target before a run refuses to add another.
const MAX_PARTIALS: u32 = 99;

/// A file that appears whole or not at all.
#[derive(Debug)]
pub(super) struct WholeFile {
    file: File,
    partial: PathBuf,
    target: PathBuf,
    written: u64,
}

impl WholeFile {
    /// Creates the unfinished file beside `target`; a target that is a link is written where it points to.
    pub(super) fn create(target: &Path) -> io::Result<Self> {
        let target = if target.is_symlink() { fs::canonicalize(target)? } else { target.to_owned() };
        let old = fs::metadata(&target).ok();
        if let Some(old) = &old
            && old.permissions().readonly()
        {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let (file, partial) = create_beside(&target)?;
        if let Some(old) = old {
            keep_owner_and_mode(&file, &old)?;
        }
        Ok(Self { file, partial, target, written: 0 })
    }

    pub(super) fn partial(&self) -> &Path {
        &self.partial
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        if written.is_err() {
            // Whole lines only, also on a full disk; if even this fails the error below says enough.
            let _ = self.file.set_len(self.written).and_then(|()| self.file.seek(SeekFrom::End(0)));
        } else {
            self.written += bytes.len() as u64;
        }
        written
    }

    /// Makes the file durable and moves it into place.
    pub(super) fn publish(&mut self) -> Result<(), OutputError> {
        self.file
            .sync_all()
            .map_err(|source| OutputError::writing(&self.partial.display().to_string(), source))?;
        fs::rename(&self.partial, &self.target).and_then(|()| sync_folder(&self.target)).map_err(|source| {
            OutputError::Publish {
                partial: self.partial.display().to_string(),
                target: self.target.display().to_string(),
                source,
            }
        })
    }

    /// Leaves the unfinished file where it is and says where; one that holds nothing of worth is removed.
    pub(super) fn keep(&self, is_of_worth: bool) -> Option<PathBuf> {
        if !is_of_worth {
            let _ = fs::remove_file(&self.partial);
            return None;
        }
        let _ = self.file.sync_all();
        Some(self.partial.clone())
    }
}

fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1..=MAX_PARTIALS {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        let partial = PathBuf::from(name);
        // O_CREAT with O_EXCL, which never follows a link at the end of the path.
        match OpenOptions::new().write(true).create_new(true).open(&partial) {
            Ok(file) => return Ok((file, partial)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("{MAX_PARTIALS} unfinished files lie beside it"),
    ))
}

/// The group may not be ours to give; the mode then loses the group's share, so that no other group gets it.
fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let ours = file.metadata()?;
    let mut mode = old.permissions().mode() & 0o777;
    if ours.gid() != old.gid() {
        let group = rustix::fs::Gid::from_raw(old.gid());
        if rustix::fs::fchown(file, None, Some(group)).is_err() {
            mode &= !0o070;
        }
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// A rename is durable once its directory is.
fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Writes a file of ours whole or not at all, for results that are small: a summary, a configuration. `mode` counts
/// where no file was there; the process's umask applies.
///
/// # Errors
///
/// What the system says; the old file is then still there.
pub fn write_whole(target: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_whole_with(target, mode, |file| file.write_all(bytes))
}

/// The same for what is too much to hold: `fill` writes it. A target that is there and no regular file (`/dev/null`, a
/// named pipe) is written to directly, and stays what it is.
///
/// # Errors
///
/// As [`write_whole`], and those of `fill`; the target is then as it was.
pub fn write_whole_with(
    target: &Path,
    mode: u32,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(target).is_ok_and(|metadata| !metadata.is_file()) {
        return fill(&mut fs::OpenOptions::new().write(true).open(target)?);
    }
    let target = if target.is_symlink() { fs::canonicalize(target)? } else { target.to_owned() };
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut unfinished = tempfile::Builder::new()
        .prefix(".sift-")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    if let Ok(old) = fs::metadata(&target) {
        keep_owner_and_mode(unfinished.as_file(), &old)?;
    }
    fill(&mut unfinished)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(&target).map_err(|error| error.error)?;
    sync_folder(&target)
}

/// A file that is added to.
#[derive(Debug)]
pub(super) struct AppendFile {
    file: File,
}

impl AppendFile {
    /// Opens or creates the file; ends its last line if a crash has left it torn.
    pub(super) fn open(target: &Path) -> io::Result<Self> {
        let mut wanted = OpenOptions::new();
        wanted.append(true).create(true).mode(0o666);
        let file = match wanted.clone().read(true).open(target) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => wanted.open(target)?,
            opened => opened?,
        };
        let mut this = Self { file };
        this.end_torn_line()?;
        Ok(this)
    }

    fn end_torn_line(&mut self) -> io::Result<()> {
        self.file.lock()?;
        let torn = self.ends_torn().unwrap_or(false);
        let ended = if torn { self.file.write_all(b"\n") } else { Ok(()) };
        self.file.unlock()?;
        ended
    }

    /// Not known, and so false, where the file may be written but not read.
    fn ends_torn(&mut self) -> io::Result<bool> {
        if self.file.metadata()?.len() == 0 {
            return Ok(false);
        }
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }

    /// Whether nothing is in the file yet, so that a heading is due.
    pub(super) fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.lock()?;
        let before = self.file.metadata().map(|metadata| metadata.len());
        let written = self.file.write_all(bytes);
        if let (Err(_), Ok(before)) = (&written, before) {
            // Nobody else writes while we hold the lock, so what is beyond `before` is our torn line.
            let _ = self.file.set_len(before);
        }
        let unlocked = self.file.unlock();
        written.and(unlocked)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests;
