//! That nothing grows with what is finished, and that very much fits. Bounds are far above what was measured: a test
//! machine may be busy.

use std::time::{Duration, Instant};

use super::*;
use crate::store::conformance::{account, at, get, ip, stored};
use crate::store::{Cache as _, Completed, Queue as _, Task};

fn task(n: u32) -> Task {
    Task {
        provider: "abuseipdb".into(),
        ip: ip(n),
        priority: 1,
        rank: u64::from(n),
        context: br#"{"count":41,"severity":2,"fields":["src_ip"],"ports":[22],"protos":["TCP"]}"#.as_slice().into(),
        not_before: None,
        expires_at: None,
        job: None,
    }
}

/// Takes and completes `n` tasks, 256 at a time.
fn work_off(store: &SqliteStore, n: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..n / 256 {
        let lease = Duration::from_secs(60);
        let leases = get(store.take("abuseipdb", 256, lease, "me".into(), at(0.0)));
        assert_eq!(leases.len(), 256);
        let completed = leases.into_iter().map(|lease| Completed {
            id: lease.id,
            outcome: br#"{"status":"ok","verdict":"malicious","score":90,"found":true}"#.to_vec(),
            settled: None,
        });
        assert!(get(store.complete(completed.collect(), at(1.0), None)).into_iter().all(|held| held));
    }
    start.elapsed()
}

#[test]
fn a_hundred_thousand_tasks_go_in_fast_and_what_is_done_slows_nothing_down() {
    let folder = Folder::new();
    let store = folder.open();
    let start = Instant::now();
    for first in (0..100_000).step_by(10_000) {
        get(store.enqueue((first..first + 10_000).map(task).collect(), at(0.0)));
    }
    let enqueued = start.elapsed();
    println!("100,000 tasks enqueued in {enqueued:?}");
    assert!(enqueued < Duration::from_secs(30), "{enqueued:?}");
    let first = work_off(&store, 5_120);
    // What working off 100,000 more leaves behind.
    get(store.write(|db| {
        db.conn.execute_batch(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
             INSERT INTO done(address, ip, context, at) SELECT 1000000 + n, x'08080808', x'7b7d', 0 FROM n;
             INSERT INTO outcome(address, lane, kind, outcome) SELECT address, 1, 0, x'7b7d' FROM done
             WHERE address > 1000000;",
        )
    }));
    let last = work_off(&store, 5_120);
    println!("5,120 in {first:?}, and in {last:?} after 100,000");
    assert!(last < first * 4, "{first:?}, {last:?} after 100,000");
    assert_eq!(get(store.status(at(2.0)))[0].ready, 100_000 - 2 * 5_120);
}

#[test]
fn answers_are_read_fast_in_bulk() {
    const N: u32 = 100_000;
    let folder = Folder::new();
    let store = folder.open();
    let body = Some(vec![b'x'; 600]);
    for first in (0..N).step_by(10_000) {
        let answers = (first..first + 10_000).map(|n| crate::store::Stored {
            body: body.clone(),
            ..stored(ip(n.wrapping_mul(7_919) % N), 0.0)
        });
        get(store.keep(&account(), answers.collect()));
    }
    let start = Instant::now();
    for first in (0..N).step_by(256) {
        let ips = (first..(first + 256).min(N)).map(ip).collect();
        assert!(get(store.answers(&account(), ips, false)).iter().all(Option::is_some));
    }
    let read = start.elapsed();
    let start = Instant::now();
    let ages = get(store.ages(&account(), (0..N).map(ip).collect()));
    println!("answers: {read:?}, ages: {:?}", start.elapsed());
    assert!(ages.iter().all(Option::is_some));
    assert!(read < Duration::from_micros(20) * N * 4, "{read:?}");
    // An account without answers costs nothing, however many are asked for.
    let start = Instant::now();
    let other = crate::store::Account::new("other", "example.org", None);
    assert!(get(store.ages(&other, (0..N).map(ip).collect())).iter().all(Option::is_none));
    assert!(start.elapsed() < read);
}
