//! The folder in which lists lie: each as it was downloaded, and beside it what is known of the download.
//!
//! ```text
//! NAME.list   the bytes, as they came
//! NAME.json   {"v":1,"url":…,"etag":…,"last_modified":…,"fetched":…,"confirmed":…,"asked":…,"entries":…}
//! ```
//!
//! Files are replaced whole. The list goes before its card, so that a crash between the two costs one download more and
//! never a list that is taken for another.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Entries, ListDefinition, Refused, accept};

/// Version of a card's format.
const CARD_VERSION: u32 = 1;
/// Longest card that is read; one has some 400 bytes.
const MAX_CARD_BYTES: u64 = 16 << 10;
/// Longest list that is read from the folder: downloads are bounded more narrowly.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// How the names of files begin that are not whole yet.
const UNFINISHED: &str = ".new-";

/// What is known of a list's download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Version of this format.
    pub v: u32,
    /// Where it was downloaded; none for a file of the user.
    #[serde(default)]
    pub url: Option<String>,
    /// The server's tag of what was downloaded.
    #[serde(default)]
    pub etag: Option<String>,
    /// The server's time of what was downloaded, as it was sent.
    #[serde(default)]
    pub last_modified: Option<String>,
    /// When the bytes were downloaded; none while none were.
    #[serde(default)]
    pub fetched: Option<Timestamp>,
    /// When the source last said that they are what there is.
    #[serde(default)]
    pub confirmed: Option<Timestamp>,
    /// When the source was last asked and answered, whatever it said.
    #[serde(default)]
    pub asked: Option<Timestamp>,
    /// Not to be asked before this, by the source's own word.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// How many entries the list in force has.
    #[serde(default)]
    pub entries: usize,
}

impl Card {
    /// The card of a list that was never downloaded.
    #[must_use]
    pub fn blank(list: &ListDefinition) -> Self {
        Self {
            v: CARD_VERSION,
            url: list.url.as_ref().map(ToString::to_string),
            etag: None,
            last_modified: None,
            fetched: None,
            confirmed: None,
            asked: None,
            not_before: None,
            entries: 0,
        }
    }

    /// When the list's source may be asked again; none if it may now.
    #[must_use]
    pub fn asked_too_soon(&self, list: &ListDefinition, now: Timestamp) -> Option<Timestamp> {
        let every = SignedDuration::try_from(list.every).unwrap_or(SignedDuration::MAX);
        let next = self.asked.and_then(|asked| asked.checked_add(every).ok());
        next.max(self.not_before).filter(|next| *next > now)
    }

    /// Since when the list says nothing any more; none while it does. A file of the user does not grow old: nobody
    /// renews it.
    #[must_use]
    pub fn expired(&self, list: &ListDefinition, now: Timestamp) -> Option<Timestamp> {
        list.url.as_ref()?;
        let age = SignedDuration::try_from(list.max_age).unwrap_or(SignedDuration::MAX);
        self.confirmed.and_then(|confirmed| confirmed.checked_add(age).ok()).filter(|end| *end <= now)
    }
}

/// Why a list of the folder says nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShelfError {
    /// A file or the folder cannot be read or written.
    #[error("cannot {what} {path}", path = path.display())]
    Io {
        /// `read`, `write`, `lock` or `remove`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process updates the lists.
    #[error("the lists in {folder} are being updated by another process", folder = folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The file that lies there is not the list.
    #[error(transparent)]
    Broken(#[from] Refused),
}

/// The folder.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: PathBuf,
}

/// Held while lists are replaced; other processes that only read are not held up.
#[derive(Debug)]
pub struct ShelfLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl Shelf {
    /// The lists below a data folder; neither need exist.
    #[must_use]
    pub fn below(data: &Path) -> Self {
        Self { folder: data.join("lists") }
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder where it is not there, and keeps other processes from replacing lists.
    ///
    /// # Errors
    /// When another process does so now, or the folder cannot be written.
    pub fn lock(&self) -> Result<ShelfLock, ShelfError> {
        let path = self.folder.join(".lock");
        let io = |source| ShelfError::Io { what: "lock", path: path.clone(), source };
        fs::create_dir_all(&self.folder).map_err(io)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {
                self.tidy();
                Ok(ShelfLock(file))
            }
            Err(fs::TryLockError::WouldBlock) => Err(ShelfError::Busy { folder: self.folder.clone() }),
            Err(fs::TryLockError::Error(source)) => Err(io(source)),
        }
    }

    /// Removes what a process that was ended left unfinished. Under the lock: nobody else writes now.
    fn tidy(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // It is in nobody's way; the next update tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// What is known of a list's download. A card that cannot be read, or is of another place, is a blank one: that costs
    /// a download at the most.
    #[must_use]
    pub fn card(&self, list: &ListDefinition) -> Card {
        let read = read_bounded(&self.path(&list.name, "json"), MAX_CARD_BYTES);
        let blank = Card::blank(list);
        read.ok()
            .and_then(|bytes| serde_json::from_slice::<Card>(&bytes).ok())
            .filter(|card| card.v == CARD_VERSION && card.url == blank.url)
            .unwrap_or(blank)
    }

    /// The list in force; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is not the list.
    pub fn load(&self, list: &ListDefinition) -> Result<Option<Entries>, ShelfError> {
        let path = self.path(&list.name, "list");
        let bytes = match read_bounded(&path, MAX_LIST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ShelfError::Io { what: "read", path, source }),
        };
        let entries = Entries::read(&list.format, &bytes);
        accept(list, &entries, None)?;
        Ok(Some(entries))
    }

    /// Whether there is a list in force, of whatever worth.
    #[must_use]
    pub fn holds(&self, list: &ListDefinition) -> bool {
        self.path(&list.name, "list").is_file()
    }

    /// Puts a list in force, with its card. The old one stays until the new one is whole on the disk.
    ///
    /// # Errors
    /// When the folder cannot be written; the old list then stays.
    pub fn put(&self, list: &ListDefinition, bytes: &[u8], card: &Card) -> Result<(), ShelfError> {
        self.replace(&self.path(&list.name, "list"), bytes)?;
        self.note(list, card)
    }

    /// Writes a list's card alone.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn note(&self, list: &ListDefinition, card: &Card) -> Result<(), ShelfError> {
        // A card is made of texts and numbers, which serde_json always writes.
        let bytes = serde_json::to_vec(card).unwrap_or_default();
        self.replace(&self.path(&list.name, "json"), &bytes)
    }

    /// Takes a list out of force. One that is not there is gone already.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), ShelfError> {
        for ending in ["list", "json"] {
            let path = self.path(name, ending);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(ShelfError::Io { what: "remove", path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), ShelfError> {
        let write = || {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
            file.write_all(bytes)?;
            open_to_readers(file.as_file())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|source| ShelfError::Io { what: "write", path: path.to_owned(), source })
    }
}

/// Lists are public: whoever may enter the folder may read them. A temporary file is its owner's alone.
fn open_to_readers(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

/// A file's bytes; one that is longer is an error.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too long"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Table;
    use std::sync::Arc;

    fn list(name: &str) -> Arc<ListDefinition> {
        Arc::clone(Table::builtin().unwrap().list(name).unwrap())
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_put_is_in_force_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(folder.path());
        let cins = list("cins");
        assert_eq!(shelf.card(&cins), Card::blank(&cins));
        assert!(shelf.load(&cins).unwrap().is_none());
        fs::create_dir_all(shelf.folder()).unwrap();
        let torn = shelf.folder().join(".new-torn");
        File::create_new(&torn).unwrap();
        let lock = shelf.lock().unwrap();
        assert!(!torn.exists());
        assert!(matches!(shelf.lock(), Err(ShelfError::Busy { .. })));
        let card = Card { etag: Some("\"x\"".into()), entries: 2, ..Card::blank(&cins) };
        shelf.put(&cins, b"198.51.100.7\n203.0.113.0/24\n", &card).unwrap();
        drop(lock);
        assert_eq!(shelf.card(&cins), card);
        assert_eq!(shelf.load(&cins).unwrap().unwrap().len(), 2);
        shelf.put(&cins, b"<html>", &card).unwrap();
        assert!(matches!(shelf.load(&cins), Err(ShelfError::Broken(Refused::Other { .. }))));
        shelf.remove("cins").unwrap();
        shelf.remove("cins").unwrap();
        assert!(!shelf.holds(&cins));
    }

    #[test]
    fn a_card_of_another_place_or_form_is_blank() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(folder.path());
        let cins = list("cins");
        drop(shelf.lock().unwrap());
        for card in [
            Card { url: Some("https://elsewhere.example/".into()), ..Card::blank(&cins) },
            Card { v: 2, ..Card::blank(&cins) },
        ] {
            shelf.note(&cins, &card).unwrap();
            assert_eq!(shelf.card(&cins), Card::blank(&cins));
        }
        shelf.replace(&shelf.path("cins", "json"), b"{\"v\":").unwrap();
        assert_eq!(shelf.card(&cins), Card::blank(&cins));
    }

    #[test]
    fn a_source_is_asked_as_often_as_it_allows_and_its_list_grows_old() {
        let drop_v4 = list("spamhaus-drop-v4");
        let now = at("2026-01-15T10:00:00Z");
        let card = |asked: &str, not_before: Option<&str>, confirmed: &str| Card {
            asked: Some(at(asked)),
            not_before: not_before.map(at),
            confirmed: Some(at(confirmed)),
            ..Card::blank(&drop_v4)
        };
        let asked_at_nine = card("2026-01-15T09:00:01Z", None, "2026-01-15T09:00:01Z");
        assert_eq!(asked_at_nine.asked_too_soon(&drop_v4, now), Some(at("2026-01-15T10:00:01Z")));
        assert_eq!(asked_at_nine.asked_too_soon(&drop_v4, at("2026-01-15T10:00:01Z")), None);
        let told_off = card("2026-01-15T08:00:00Z", Some("2026-01-15T12:00:00Z"), "2026-01-08T09:59:59Z");
        assert_eq!(told_off.asked_too_soon(&drop_v4, now), Some(at("2026-01-15T12:00:00Z")));
        assert_eq!(told_off.expired(&drop_v4, now), Some(at("2026-01-15T09:59:59Z")));
        assert_eq!(asked_at_nine.expired(&drop_v4, now), None);
        let own = ListDefinition { url: None, ..(*drop_v4).clone() };
        assert_eq!(told_off.expired(&own, now), None);
    }
}
