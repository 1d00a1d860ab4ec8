//! A process that dies at a named point. The test runs itself again as that process.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::store::conformance::{account, admit, ask, at, get, going, ip, settle, stored};
use crate::store::{Admission, AuditFilter, Completed, End, Settled, Task};

/// Names the folder to the process that is to die in it.
const FOLDER: &str = "SIFT_TEST_STORE";

/// Runs the test `name` again, as another process on this folder.
fn again(folder: &Folder, name: &str, point: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("store::sqlite::tests::crash::{name}"), "--nocapture"])
        .env(FOLDER, folder.0.path())
        .env("SIFT_CRASH_AT", point)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs the test `name` again, to die at `point`.
fn die(folder: &Folder, name: &str, point: &str) {
    let status = again(folder, name, point).wait().unwrap();
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
        let spent = get(store.quota(at(2.0))).first().map_or(0, |row| row.used);
        assert_eq!(spent, used, "{point}");
        assert_eq!(get(store.answers(&account(), vec![ip(1)], false))[0].is_some(), answered, "{point}");
        assert_eq!(get(store.audit(AuditFilter::default(), 0)).rows.len() as u64, used, "{point}");
        // The dead process's claims hold nobody up.
        let first = if answered { Admission::Answered } else { Admission::Go };
        assert_eq!(admit(&store, &ask(&["10/day"]), [1, 2], 3.0).verdicts, [first, Admission::Go], "{point}");
    }
}

fn task(n: u32) -> Task {
    Task {
        provider: "abuseipdb".into(),
        ip: ip(n),
        priority: 0,
        rank: u64::from(n),
        context: b"{}".as_slice().into(),
        not_before: None,
        expires_at: None,
        job: None,
    }
}

const LEASE: Duration = Duration::from_secs(60);

#[test]
fn a_task_is_taken_and_completed_whole_or_not_at_all() {
    if let Some(store) = to_die() {
        get(store.enqueue(vec![task(1), task(2)], at(0.0)));
        let lease = get(store.take("abuseipdb", 1, LEASE, "one".into(), at(0.0))).remove(0);
        assert_eq!(going(&admit(&store, &ask(&[]), [1], 0.0)), 1);
        let settled = Settled { ip: ip(1), end: End::Answered(stored(ip(1), 1.0)) };
        let completed = Completed { id: lease.id, outcome: vec![1], settled: Some((account(), settled)) };
        get(store.complete(vec![completed], at(1.0), None));
        panic!("passed the point");
    }
    // The point, tasks that are ready and leased afterwards, and whether the first is answered.
    for (point, ready, leased, answered) in [
        ("writer.before-commit:1", 0, 0, false),
        ("writer.before-reply:1", 2, 0, false),
        ("queue.taking", 2, 0, false),
        ("writer.before-commit:2", 2, 0, false),
        ("writer.after-commit:2", 1, 1, false),
        ("writer.before-reply:3", 1, 1, false),
        ("queue.completing", 1, 1, false),
        ("writer.before-commit:4", 1, 1, false),
        ("writer.after-commit:4", 1, 0, true),
        ("writer.before-reply:4", 1, 0, true),
    ] {
        let folder = Folder::new();
        die(&folder, "a_task_is_taken_and_completed_whole_or_not_at_all", point);
        let store: Arc<dyn Store> = Arc::new(folder.open());
        let status = get(store.status(at(2.0)));
        let found = status.first().map_or((0, 0), |status| (status.ready, status.leased));
        assert_eq!(found, (ready, leased), "{point}");
        assert_eq!(get(store.answers(&account(), vec![ip(1)], false))[0].is_some(), answered, "{point}");
        assert_eq!(get(store.results(None, 9)).len(), usize::from(answered), "{point}");
        // Whatever happened, all that is left can be taken once the dead worker's lease is over.
        let left = get(store.take("abuseipdb", 9, LEASE, "two".into(), at(60.0)));
        assert_eq!(left.len() as u64, ready + leased, "{point}");
    }
}

/// Takes tasks and completes them, with a lease of a second, until none is left.
fn work(store: &Arc<dyn Store>) {
    loop {
        let lease = Duration::from_secs(1);
        let leases = get(store.take("abuseipdb", 16, lease, "worker".into(), Timestamp::now()));
        if leases.is_empty() && get(store.status(Timestamp::now())).is_empty() {
            return;
        }
        if leases.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        for lease in leases {
            let settled = Settled { ip: lease.task.ip, end: End::Answered(stored(lease.task.ip, 1.0)) };
            let completed = Completed { id: lease.id, outcome: vec![1], settled: Some((account(), settled)) };
            get(store.complete(vec![completed], Timestamp::now(), None));
        }
    }
}

#[test]
fn workers_that_are_killed_lose_nothing_and_do_nothing_twice() {
    const NAME: &str = "workers_that_are_killed_lose_nothing_and_do_nothing_twice";
    const TASKS: u32 = 1_500;
    if let Some(store) = to_die() {
        return work(&store);
    }
    let folder = Folder::new();
    let store: Arc<dyn Store> = Arc::new(folder.open());
    get(store.enqueue((0..TASKS).map(task).collect(), Timestamp::now()));
    let mut workers = [again(&folder, NAME, ""), again(&folder, NAME, "")];
    let mut killed_at_work = 0;
    for n in 0..8 {
        std::thread::sleep(Duration::from_millis(40 + 13 * n));
        let worker = &mut workers[usize::try_from(n % 2).unwrap()];
        worker.kill().unwrap();
        killed_at_work += u32::from(!worker.wait().unwrap().success());
        *worker = again(&folder, NAME, "");
    }
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    assert!(killed_at_work > 0);
    let results = get(store.results(None, 2 * TASKS));
    let mut done: Vec<_> = results.iter().map(|done| done.ip).collect();
    done.sort_unstable();
    assert_eq!(done, (0..TASKS).map(ip).collect::<Vec<_>>());
    let kept = get(store.ages(&account(), done));
    assert!(kept.iter().all(Option::is_some));
    let check: String =
        get(store_read(&folder, |db| db.conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))));
    assert_eq!(check, "ok");
}

fn store_read<T: Send + 'static>(
    folder: &Folder,
    read: fn(&super::super::db::Db) -> rusqlite::Result<T>,
) -> crate::store::Reply<T> {
    let store = folder.open();
    Box::pin(async move { store.read(read).await })
}
