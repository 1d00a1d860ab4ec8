//! Which files and folders are used as a store, and what happens to those that are not.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::*;
use crate::store::conformance::{account, at, get, ip, stored};
use crate::store::{Audit as _, AuditFilter, Cache as _};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A store with something in it, and its bytes once it is closed.
fn filled() -> (Folder, Vec<u8>) {
    let folder = Folder::new();
    let store = folder.open();
    get(store.keep(&account(), (0..500).map(|n| stored(ip(n), 0.0)).collect()));
    drop(store);
    let bytes = fs::read(folder.file()).unwrap();
    (folder, bytes)
}

#[test]
fn a_closed_store_is_one_file_with_everything_in_it() {
    let (folder, bytes) = filled();
    let names: Vec<_> =
        fs::read_dir(folder.place().folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["sift.db"]);
    assert!(bytes.len() > 50_000);
    assert!(get(folder.open().answers(&account(), vec![ip(499)], false))[0].is_some());
}

#[test]
fn a_folder_of_ones_own_is_0700_and_its_files_0600() {
    let folder = Folder::new();
    let store = folder.open();
    assert_eq!(mode(&folder.place().folder), 0o700);
    get(store.keep(&account(), vec![stored(ip(1), 0.0)]));
    for suffix in ["", "-wal", "-shm"] {
        let mut name = folder.file().into_os_string();
        name.push(suffix);
        assert_eq!(mode(name.as_ref()), 0o600, "{suffix}");
    }
    drop(store);
    chmod(&folder.file(), 0o644);
    drop(folder.open());
    assert_eq!(mode(&folder.file()), 0o600);
    // What its owner made read-only stays so, whether it can be opened (by root) or not.
    chmod(&folder.file(), 0o444);
    drop(SqliteStore::open(&folder.place()));
    assert_eq!(mode(&folder.file()), 0o444);
}

#[test]
fn a_shared_folders_files_are_0660_whatever_the_umask() {
    let folder = Folder::new();
    fs::create_dir(folder.place().folder).unwrap();
    chmod(&folder.place().folder, 0o2770);
    let store = folder.open();
    get(store.keep(&account(), vec![stored(ip(1), 0.0)]));
    assert_eq!(mode(&folder.place().folder), 0o2770);
    for suffix in ["", "-wal", "-shm"] {
        let mut name = folder.file().into_os_string();
        name.push(suffix);
        assert_eq!(mode(name.as_ref()), 0o660, "{suffix}");
    }
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    for mode in [0o777, 0o1777, 0o2777, 0o770] {
        let folder = Folder::new();
        fs::create_dir(folder.place().folder).unwrap();
        chmod(&folder.place().folder, mode);
        assert!(matches!(folder.refused(), StoreError::Refused { .. }), "{mode:o}");
        assert!(!folder.file().exists());
    }
}

#[test]
fn a_symbolic_link_is_refused() {
    let (folder, bytes) = filled();
    let elsewhere = folder.0.path().join("elsewhere");
    fs::rename(folder.file(), &elsewhere).unwrap();
    symlink(&elsewhere, folder.file()).unwrap();
    assert!(matches!(folder.refused(), StoreError::Refused { .. }));
    assert_eq!(fs::read(&elsewhere).unwrap(), bytes);
    fs::remove_file(folder.file()).unwrap();
    // One that leads nowhere is not followed either.
    symlink(folder.0.path().join("nowhere"), folder.file()).unwrap();
    assert!(matches!(folder.refused(), StoreError::Refused { .. }));
    assert!(!folder.0.path().join("nowhere").exists());
    fs::remove_file(folder.file()).unwrap();
    fs::rename(&elsewhere, folder.file()).unwrap();
    symlink("/dev/null", folder.place().folder.join("sift.db-wal")).unwrap();
    assert!(matches!(folder.refused(), StoreError::Refused { .. }));
}

#[test]
fn a_linked_folder_is_followed() {
    let folder = Folder::new();
    fs::create_dir(folder.0.path().join("real")).unwrap();
    symlink(folder.0.path().join("real"), folder.place().folder).unwrap();
    drop(folder.open());
    assert!(folder.0.path().join("real/sift.db").is_file());
}

#[test]
fn what_is_not_a_file_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file()).unwrap();
    assert!(matches!(folder.refused(), StoreError::Refused { .. }));
    let folder = Folder::new();
    fs::write(folder.place().folder, "a file").unwrap();
    assert!(matches!(folder.refused(), StoreError::Refused { .. }));
}

#[test]
fn a_store_cut_anywhere_is_damaged_and_left_as_it_is() {
    let (folder, whole) = filled();
    let cuts = (0..whole.len()).step_by(1_371).chain((0..whole.len()).step_by(4_096)).chain([
        1,
        15,
        16,
        99,
        100,
        101,
        whole.len() - 1,
    ]);
    for cut in cuts {
        fs::write(folder.file(), &whole[..cut]).unwrap();
        let error = folder.refused();
        assert!(matches!(error, StoreError::Damaged { .. }), "cut at {cut}: {error}");
        assert!(error.tip().is_some_and(|tip| tip.contains("--no-store")));
        assert!(fs::read(folder.file()).unwrap() == whole[..cut], "changed when cut at {cut}");
    }
    fs::write(folder.file(), &whole).unwrap();
    drop(folder.open());
}

#[test]
fn an_emptied_store_keeps_its_log() {
    let (folder, _) = filled();
    let log = folder.place().folder.join("sift.db-wal");
    fs::write(folder.file(), "").unwrap();
    // SQLite would delete it: to it, an empty file is a new database.
    fs::write(&log, "what was not folded in yet").unwrap();
    assert!(matches!(folder.refused(), StoreError::Damaged { .. }));
    assert_eq!(fs::read(&log).unwrap(), b"what was not folded in yet");
}

#[test]
fn a_damaged_head_is_seen_and_left_as_it_is() {
    let (folder, whole) = filled();
    let zeroed = |range: std::ops::Range<usize>| {
        let mut bytes = whole.clone();
        bytes[range].fill(0);
        bytes
    };
    for (what, bytes) in [
        ("a head of zeros", zeroed(0..100)),
        ("a first page of zeros", zeroed(0..4_096)),
        ("no schema", zeroed(100..4_096)),
        ("text", b"these are my notes, and no store\n".repeat(400)),
        ("no application id", zeroed(68..72)),
        ("no version", zeroed(60..64)),
    ] {
        fs::write(folder.file(), &bytes).unwrap();
        let error = folder.refused();
        assert!(matches!(error, StoreError::Damaged { .. }), "{what}: {error}");
        assert!(fs::read(folder.file()).unwrap() == bytes, "changed: {what}");
    }
}

#[test]
fn another_programs_database_is_left_as_it_is() {
    let folder = Folder::new();
    fs::create_dir(folder.place().folder).unwrap();
    chmod(&folder.place().folder, 0o700);
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    conn.execute_batch("CREATE TABLE bookmark(url TEXT); PRAGMA user_version = 1;").unwrap();
    drop(conn);
    let bytes = fs::read(folder.file()).unwrap();
    assert!(matches!(folder.refused(), StoreError::Damaged { .. }));
    assert!(fs::read(folder.file()).unwrap() == bytes);
}

#[test]
fn a_newer_store_is_left_as_it_is_with_its_log() {
    let (folder, _) = filled();
    // With a log that was not folded in, as after a crash: it must not be folded by a program that does not know it.
    let conn = rusqlite::Connection::open(folder.file()).unwrap();
    conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    let log = folder.place().folder.join("sift.db-wal");
    let (bytes, logged) = (fs::read(folder.file()).unwrap(), fs::read(&log).unwrap());
    assert!(!logged.is_empty());
    let error = folder.refused();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error}");
    assert!(fs::read(folder.file()).unwrap() == bytes);
    assert!(fs::read(&log).unwrap() == logged);
}

#[test]
fn damage_in_the_middle_is_told_when_it_is_met() {
    let (folder, mut bytes) = filled();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x5a);
    fs::write(folder.file(), &bytes).unwrap();
    // Either it is seen at once, or when what lies there is read.
    let error = match SqliteStore::open(&folder.place()) {
        Err(error) => error,
        Ok(store) => tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(store.answers(&account(), (0..500).map(ip).collect(), false))
            .unwrap_err(),
    };
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn many_may_make_it_at_once() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let folder = &folder;
            scope.spawn(move || get(folder.open().keep(&account(), vec![stored(ip(n), 0.0)])));
        }
    });
    let ages = get(folder.open().ages(&account(), (0..8).map(ip).collect()));
    assert!(ages.iter().all(Option::is_some));
    let names = fs::read_dir(folder.place().folder).unwrap().count();
    assert_eq!(names, 1, "unfinished ones were left");
}

#[test]
fn a_call_after_the_end_is_told_so() {
    let folder = Folder::new();
    let store = folder.open();
    let late = store.audit(AuditFilter::default(), 0);
    let later = store.keep(&account(), vec![stored(ip(1), 0.0)]);
    drop(store);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(matches!(runtime.block_on(late), Err(StoreError::Closed)));
    assert!(matches!(runtime.block_on(later), Err(StoreError::Closed)));
    assert_eq!(get(folder.open().prune(at(0.0), 0)).expired, 0);
}
