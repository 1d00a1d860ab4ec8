//! A process that dies at a named point. The test runs itself again as that process.

use std::process::Command;

use super::*;
use crate::store::conformance::{account, admit, ask, get, going, ip, settle, stored};
use crate::store::{Admission, AuditFilter, End};

/// Names the folder to the process that is to die in it.
const FOLDER: &str = "SIFT_TEST_STORE";

/// Runs the test `name` again, to die at `point`.
fn die(folder: &Folder, name: &str, point: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("store::sqlite::tests::crash::{name}"), "--nocapture"])
        .env(FOLDER, folder.0.path())
        .env("SIFT_CRASH_AT", point)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success() && status.code().is_none(), "{point}: ended with {status}");
}

/// The store of the process that is to die, if this is it.
fn to_die() -> Option<Arc<dyn Store>> {
    let folder = std::env::var_os(FOLDER)?;
    Some(Arc::new(SqliteStore::open(&Place::new(std::path::Path::new(&folder).join("state"))).unwrap()))
}

#[test]
fn an_admission_and_its_settlement_are_whole_or_not_at_all() {
    if let Some(store) = to_die() {
        assert_eq!(going(&admit(&store, &ask(&["10/day"]), [1, 2], 0.0)), 2);
        settle(&store, 1, End::Answered(stored(ip(1), 1.0)));
        panic!("passed the point");
    }
    // The point, what was spent, what was answered.
    for (point, used, answered) in [
        ("writer.before-begin:1", 0, false),
        ("writer.before-commit:1", 0, false),
        ("writer.after-commit:1", 2, false),
        ("writer.before-reply:1", 2, false),
        ("writer.before-begin:2", 2, false),
        ("writer.before-commit:2", 2, false),
        ("writer.after-commit:2", 2, true),
        ("writer.before-reply:2", 2, true),
    ] {
        let folder = Folder::new();
        die(&folder, "an_admission_and_its_settlement_are_whole_or_not_at_all", point);
        let store: Arc<dyn Store> = Arc::new(folder.open());
        let spent = get(store.quota(crate::store::conformance::at(2.0))).first().map_or(0, |row| row.used);
        assert_eq!(spent, used, "{point}");
        assert_eq!(get(store.answers(&account(), vec![ip(1)], false))[0].is_some(), answered, "{point}");
        assert_eq!(get(store.audit(AuditFilter::default(), 0)).rows.len() as u64, used, "{point}");
        // The dead process's claims hold nobody up.
        let first = if answered { Admission::Answered } else { Admission::Go };
        assert_eq!(admit(&store, &ask(&["10/day"]), [1, 2], 3.0).verdicts, [first, Admission::Go], "{point}");
    }
}
