//! Whether a file may be used as the store, and how it is made.
//!
//! A new store is made whole under another name and then linked into place, so `sift.db` is never empty or half made: one
//! that is, is damaged. Nothing here changes a file that is not a sound store of a version we know: the connection that
//! looks at it never folds its log.
//!
//! We never open the file ourselves beside SQLite: closing a descriptor of ours would drop the locks that another
//! connection of this process holds on it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::Place;
use super::db::Db;
use super::fault::fault;
use super::schema;
use super::writer::wait_for_lock;
use crate::store::StoreError;

/// SQLite 3.7.0 to 3.51.2 can damage a log that two connections write or fold at once, which is what we do.
const OLDEST_SQLITE: i32 = 3_051_003;

/// Statements kept ready; the store has fewer.
const STATEMENTS: usize = 160;

/// Pages in the log (of 4 KiB) from which on it is folded into the file: the writer waits for the disk twice then, and a
/// page that changed often is written once.
const FOLD_PAGES: i64 = 8_000;

/// A log is cut back to this after it was folded: a burst must not keep its disk space for ever.
const LOG_BYTES: i64 = 64 << 20;

/// A store's two connections.
pub(super) struct Opened {
    pub(super) writer: Db,
    pub(super) reader: Db,
}

/// Opens the store in `folder`, or makes it.
pub(super) fn open(folder: &Path) -> Result<Opened, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::Library { found: rusqlite::version() });
    }
    let (folder, shared) = usable_folder(folder)?;
    let file = folder.join(Place::FILE);
    let mode = if shared { 0o660 } else { 0o600 };
    match fs::symlink_metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&folder, &file, mode)?,
        Err(error) => return Err(unreachable("open", &file, error)),
        Ok(_) => {}
    }
    usable_file(&file, shared, mode)?;
    let path: Arc<Path> = file.into();
    let writer = connect(&path).and_then(|conn| examine(&path, conn))?;
    // `sync` waits for the disk, beside the next transaction.
    writer.pragma_update(None, "synchronous", "NORMAL").map_err(|error| fault(&path, &error))?;
    writer.pragma_update(None, "wal_autocheckpoint", FOLD_PAGES).map_err(|error| fault(&path, &error))?;
    let reader = connect(&path)?;
    reader.pragma_update(None, "query_only", true).map_err(|error| fault(&path, &error))?;
    let db = |conn| Db::new(conn, Arc::clone(&path)).map_err(|error| unreachable("open", &path, error));
    Ok(Opened { writer: db(writer)?, reader: db(reader)? })
}

fn unreachable(what: &'static str, path: &Path, source: io::Error) -> StoreError {
    if source.kind() == io::ErrorKind::StorageFull {
        return StoreError::Full { path: path.to_path_buf() };
    }
    if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
        return StoreError::ReadOnly { path: path.to_path_buf() };
    }
    StoreError::Unreachable { what, path: path.to_path_buf(), source: Arc::new(source) }
}

fn refuse<T>(path: &Path, why: &'static str) -> Result<T, StoreError> {
    Err(StoreError::Refused { path: path.to_path_buf(), why })
}

/// The folder, made if need be, without symbolic links in its path, and whether a group shares it.
fn usable_folder(folder: &Path) -> Result<(PathBuf, bool), StoreError> {
    if !folder.exists() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| unreachable("make", folder, error))?;
    }
    let folder = folder.canonicalize().map_err(|error| unreachable("open", folder, error))?;
    let about = fs::metadata(&folder).map_err(|error| unreachable("open", &folder, error))?;
    if !about.is_dir() {
        return refuse(&folder, "it is not a folder");
    }
    if on_network(&folder)? {
        return refuse(&folder, "it is on a network file system, where several machines can damage it");
    }
    let mode = about.mode();
    if mode & 0o002 != 0 {
        return refuse(&folder, "everybody can write it");
    }
    let shared = mode & 0o2020 == 0o2020;
    if !shared && mode & 0o020 != 0 {
        return refuse(&folder, "its group can write it, and it is not set up to be shared (mode 2770)");
    }
    if !shared && about.uid() != rustix::process::geteuid().as_raw() {
        return refuse(&folder, "it belongs to somebody else");
    }
    Ok((folder, shared))
}

/// Looks at the folder alone.
pub(super) fn may_lie_in(folder: &Path) -> Result<(), StoreError> {
    if folder.exists() { usable_folder(folder).map(|_found| ()) } else { Ok(()) }
}

/// File systems that reach other machines: the shared index beside SQLite's log works on one machine only.
#[cfg(target_os = "linux")]
fn on_network(folder: &Path) -> Result<bool, StoreError> {
    /// NFS, SMB, CIFS, SMB2, AFS, Coda, Ceph, 9P, NCP, OCFS2, GFS2, Lustre, GPFS, BeeGFS: statfs(2) and the kernel's magic.h.
    const MAGICS: [u32; 14] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x7375_7245,
        0x00c3_6400,
        0x0102_1997,
        0x564c,
        0x7461_636f,
        0x0116_1970,
        0x0bd0_0bd0,
        0x4750_4653,
        0x1983_0326,
    ];
    let about = rustix::fs::statfs(folder).map_err(|error| unreachable("open", folder, error.into()))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a magic number has 32 bits")]
    let magic = about.f_type as u32;
    Ok(MAGICS.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
fn on_network(_folder: &Path) -> Result<bool, StoreError> {
    Ok(false)
}

/// Whether the file is one that we may use; its mode is put right if it is ours.
fn usable_file(file: &Path, shared: bool, mode: u32) -> Result<(), StoreError> {
    let about = fs::symlink_metadata(file).map_err(|error| unreachable("open", file, error))?;
    if about.file_type().is_symlink() {
        return refuse(file, "it is a symbolic link");
    }
    if !about.is_file() {
        return refuse(file, "it is not a regular file");
    }
    let ours = about.uid() == rustix::process::geteuid().as_raw();
    if !shared && !ours {
        return refuse(file, "it belongs to somebody else");
    }
    // Private files lose what others may do; shared ones of ours get what the group must. One that its owner made
    // read-only stays so.
    let right = if shared { mode } else { about.mode() & mode };
    if ours && about.mode() & 0o200 != 0 && about.mode() & 0o777 != right {
        // Not through a link: SQLite refuses one as well, should it take the file's place between here and there.
        fs::set_permissions(file, fs::Permissions::from_mode(right))
            .map_err(|error| unreachable("set the mode of", file, error))?;
    }
    if about.len() == 0 {
        return Err(StoreError::Damaged { path: file.to_path_buf(), detail: "it is empty".to_owned() });
    }
    for name in ["-wal", "-shm", "-journal"] {
        let beside = beside(file, name);
        if fs::symlink_metadata(&beside).is_ok_and(|about| !about.is_file()) {
            return refuse(&beside, "it is not a regular file");
        }
    }
    Ok(())
}

pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes a whole new store and links it into place; if another process was faster, theirs is used.
fn make(folder: &Path, file: &Path, mode: u32) -> Result<(), StoreError> {
    let new = tempfile::Builder::new()
        .prefix(".sift.db.new-")
        .tempfile_in(folder)
        .map_err(|error| unreachable("make a store in", folder, error))?
        // Closed before SQLite opens it: see above.
        .into_temp_path();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode))
        .map_err(|error| unreachable("set the mode of", &new, error))?;
    let path: Arc<Path> = Arc::from(&*new);
    let conn = connect(&path)?;
    schema::make(&conn).map_err(|error| fault(file, &error))?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(|error| fault(file, &error))?;
    conn.close().map_err(|(_conn, error)| fault(file, &error))?;
    match new.persist_noclobber(file) {
        Ok(()) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unreachable("make", file, error.error)),
    }
    // The name must outlast a power cut as well as what it names.
    fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| unreachable("make", file, error))
}

/// A connection that is set up, has changed nothing yet, and will not fold the log when it is closed.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    set_up(path, flags).map_err(|error| {
        if error.sqlite_extended_error_code() == Some(ffi::SQLITE_CANTOPEN_SYMLINK) {
            return StoreError::Refused { path: path.to_path_buf(), why: "it is a symbolic link" };
        }
        if matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied))
            && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err()
        {
            return StoreError::ReadOnly { path: path.to_path_buf() };
        }
        fault(path, &error)
    })
}

fn set_up(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Others of the group can write the file: what is in it must not run as code, nor reach the schema by way of data.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.busy_handler(Some(wait_for_lock))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.query_row("PRAGMA journal_size_limit = 67108864", [], |row| row.get::<_, i64>(0))
        .map(|set| debug_assert_eq!(set, LOG_BYTES))?;
    Ok(conn)
}

/// Looks at the store without changing it, brings it up to date if it is older, and from then on lets its log be folded.
fn examine(path: &Path, conn: Connection) -> Result<Connection, StoreError> {
    let sql = |error: rusqlite::Error| fault(path, &error);
    let damaged = |detail: &str| StoreError::Damaged { path: path.to_path_buf(), detail: detail.to_owned() };
    let number = |pragma: &str| conn.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i64>(0));
    if number("application_id").map_err(sql)? != schema::APPLICATION_ID {
        return Err(damaged("it is another program's file"));
    }
    let found = number("user_version").map_err(sql)?;
    let known = schema::version();
    if found > known {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known });
    }
    if found < 1 {
        return Err(damaged("it has no version"));
    }
    if conn.is_readonly("main").map_err(sql)? {
        return Err(StoreError::ReadOnly { path: path.to_path_buf() });
    }
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(sql)?;
    if mode != "wal" {
        return Err(damaged("it is not in the mode that it was made in"));
    }
    if !pages_can_be_there(path, number("page_count").map_err(sql)?, number("page_size").map_err(sql)?) {
        return Err(damaged("pages are missing at its end"));
    }
    if found < known {
        schema::migrate(&conn, found).map_err(sql)?;
    }
    for table in schema::TABLES {
        conn.query_row(&format!("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT 1)"), [], |_row| Ok(()))
            .map_err(|error| match fault(path, &error) {
            // Without a code of its own: a table is missing.
            StoreError::Failed { .. } => damaged(&error.to_string()),
            fault => fault,
        })?;
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sql)?;
    Ok(conn)
}

/// Whether the pages that the store says it has can all be there, in the file or in its log.
fn pages_can_be_there(path: &Path, pages: i64, page_bytes: i64) -> bool {
    let length = |path: &Path| fs::symlink_metadata(path).map_or(0, |about| about.len());
    let (Ok(pages), Ok(page_bytes)) = (u64::try_from(pages), u64::try_from(page_bytes)) else { return false };
    if page_bytes == 0 {
        return false;
    }
    // A page of the log has a head of 24 bytes (SQLite's file format, "the write-ahead log").
    let logged = length(&beside(path, "-wal")) / (page_bytes + 24);
    length(path) / page_bytes + logged >= pages
}
