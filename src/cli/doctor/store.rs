//! Whether the store can be used, and whether the people of this box share one.

use super::{Grade, Report};
use crate::cli::report::{chain, store_tip};
use crate::cli::settings::Settings;
use crate::cli::store::{place, size};
use crate::store::{Place, SqliteStore, StoreError};
use rustix::fs::{Access, access, statvfs};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// With less room than this, a busy day may not fit.
const LITTLE_ROOM: u64 = 64 << 20;

/// Where a service without a home keeps its store, as [`Folders`](crate::config::Folders) has it.
const OF_SERVICES: &str = "/var/lib/sift";

/// Its file, its room, and others.
pub(super) fn check(report: &mut Report, settings: &Settings) {
    let place = place(&settings.loaded.config, &settings.folders);
    let file = place.folder.join(Place::FILE);
    match std::fs::symlink_metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => to_be_made(report, &place.folder, &file),
        Ok(_) | Err(_) => there(report, &place),
    }
    room(report, &place.folder);
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut others = homes_of_others(&passwd, rustix::process::getuid().as_raw());
    others.push(("a service".to_owned(), PathBuf::from(OF_SERVICES)));
    apart(report, &place.folder, &others);
}

/// There is none yet: whether it can be made.
fn to_be_made(report: &mut Report, folder: &Path, file: &Path) {
    if let Err(error) = SqliteStore::may_lie_in(folder) {
        return unusable(report, &error);
    }
    let nearest = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match access(nearest, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => report.good("store", &format!("{} (made by the first look-up)", file.display())),
        Err(error) => {
            let found = format!("{}: {} cannot be written to: {error}", file.display(), nearest.display());
            let tip = "choose another folder with state_dir, or go on without: --no-store";
            report.put(Grade::Bad, "store", &found, Some(tip));
        }
    }
}

/// It is there: opening it changes nothing, but that an older one is brought up to date.
fn there(report: &mut Report, place: &Place) {
    let store = match SqliteStore::open(place) {
        Ok(store) => store,
        Err(error) => return unusable(report, &error),
    };
    let path = store.path();
    let Ok(about) = std::fs::metadata(path) else { return };
    let log = std::fs::metadata(with_suffix(path, "-wal")).map_or(0, |about| about.len());
    let mode = about.mode() & 0o777;
    let who = if mode & 0o060 == 0 {
        "yours alone".to_owned()
    } else {
        format!("shared by the group {}", group(about.gid()))
    };
    let found = format!(
        "{}: {}, version {}, mode {mode:04o}, {who}",
        path.display(),
        size(about.len() + log),
        SqliteStore::version()
    );
    report.good("store", &found);
}

fn unusable(report: &mut Report, error: &StoreError) {
    report.put(Grade::Bad, "store", &chain(error), store_tip(error, true).as_deref());
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The group's name, or its number.
fn group(gid: u32) -> String {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = gid.to_string();
    let name = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or(number)
}

fn room(report: &mut Report, folder: &Path) {
    let nearest = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let Ok(about) = statvfs(nearest) else { return };
    if about.f_blocks == 0 {
        // A file system of the kernel's own, which has no room to speak of.
        return;
    }
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let found = format!("{} free", size(free));
    if free < LITTLE_ROOM {
        let tip = "make room, lower [cache] max_size, or choose another folder with state_dir";
        report.put(Grade::Odd, "room", &found, Some(tip));
    } else {
        report.good("room", &found);
    }
}

/// The state folders that other people of this box have if they have set nothing, by `/etc/passwd`.
fn homes_of_others(passwd: &str, me: u32) -> Vec<(String, PathBuf)> {
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let (name, uid, home) = (fields.first()?, fields.get(2)?.parse::<u32>().ok()?, fields.get(5)?);
        let state = Path::new(home).join(".local/state/sift");
        (uid != me && home.len() > 1 && home.starts_with('/')).then(|| ((*name).to_owned(), state))
    };
    passwd.lines().filter_map(entry).collect()
}

/// Others whose stores are elsewhere: each store counts its own quota, and several together exceed the key's. What cannot
/// be seen, as in a home that is closed, is not known.
fn apart(report: &mut Report, ours: &Path, others: &[(String, PathBuf)]) {
    let ours = ours.canonicalize().unwrap_or_else(|_| ours.to_owned());
    let mut names: Vec<&str> = others
        .iter()
        .filter(|(_, folder)| folder.join(Place::FILE).exists())
        .filter(|(_, folder)| folder.canonicalize().map_or(true, |folder| folder != ours))
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        let found =
            format!("not shared: {} on this machine count quotas in a store of their own", names.join(", "));
        let tip = "share one: a folder of mode 2770 of your group, as state_dir in /etc/sift/config.toml";
        report.put(Grade::Odd, "store", &found, Some(tip));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_with_a_store_of_their_own_are_told() {
        let box_ = tempfile::tempdir().unwrap();
        let home = |name: &str| box_.path().join(name);
        let store = |name: &str| home(name).join(".local/state/sift");
        for name in ["ana", "bo"] {
            std::fs::create_dir_all(store(name)).unwrap();
            crate::output::write_whole(&store(name).join(Place::FILE), b"x", 0o600).unwrap();
        }
        let line =
            |name: &str, uid: u32| format!("{name}:x:{uid}:100:{name}:{}:/bin/sh\n", home(name).display());
        let passwd = line("ana", 1_001)
            + &line("bo", 1_002)
            + &line("cy", 1_003)
            + "nobody:x:9:9::/:/bin/false\nodd\n";
        let others = homes_of_others(&passwd, 1_001);
        assert_eq!(others.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["bo", "cy"]);
        let told = |ours: &Path| {
            let mut report = Report::default();
            apart(&mut report, ours, &others);
            report.text
        };
        assert!(told(&store("ana")).starts_with("odd    store          not shared: bo on this machine"));
        // The same folder by another name is the same store.
        std::os::unix::fs::symlink(store("bo"), home("shared")).unwrap();
        assert_eq!(told(&home("shared")), "");
    }

    #[test]
    fn a_store_that_must_not_be_is_wrong() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let mut report = Report::default();
        to_be_made(&mut report, folder.path(), &folder.path().join(Place::FILE));
        assert!(report.text.contains("as a store: everybody can write it"), "{}", report.text);
        assert!(report.text.contains("tip: choose another folder with state_dir"), "{}", report.text);
        assert_eq!(report.bad, 1);
    }
}
