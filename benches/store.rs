//! The store's engine: tasks in and out, admission and settlement, answers from the cache.
//!
//! `cargo bench --bench store`. On a disk that syncs; what is answered is durable.

#![expect(clippy::expect_used, reason = "a bench fails by panicking")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use sift::store::{
    Account, Ask, Cache as _, Completed, End, Ledger as _, Look, Place, Queue as _, Settled, SqliteStore,
    Stored, Task, Who,
};
use tokio::runtime::Runtime;

fn ip(n: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0808_0000 + n).into()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

fn store() -> (tempfile::TempDir, SqliteStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&Place::new(folder.path().join("state"))).expect("a store");
    (folder, store)
}

fn account() -> Account {
    Account::new("abuseipdb", "api.abuseipdb.com", Some("bench"))
}

fn stored(n: u32) -> Stored {
    Stored {
        ip: ip(n),
        found: true,
        answer: vec![b'a'; 300],
        version: 1,
        status: 200,
        body: Some(vec![b'b'; 600]),
        fetched_at: Timestamp::UNIX_EPOCH,
        keep_until: Timestamp::MAX,
    }
}

fn task(n: u32) -> Task {
    Task {
        provider: "abuseipdb".into(),
        ip: ip(n),
        priority: 1,
        rank: u64::from(n),
        context: vec![b'c'; 200].into(),
        not_before: None,
        expires_at: None,
        job: None,
    }
}

/// `n` tasks, 5,000 at a time.
async fn enqueue(store: &SqliteStore, n: u32) {
    for first in (0..n).step_by(5_000) {
        let tasks = (first..(first + 5_000).min(n)).map(task).collect();
        store.enqueue(tasks, Timestamp::UNIX_EPOCH).await.expect("added");
    }
}

/// Takes `at_once` and completes them, each with an answer to be kept, until there is none left.
async fn work_off(store: &SqliteStore, at_once: u32) {
    let now = Timestamp::UNIX_EPOCH;
    loop {
        let lease = Duration::from_secs(60);
        let leases = store.take("abuseipdb", at_once, lease, "me".into(), now).await.expect("taken");
        if leases.is_empty() {
            return;
        }
        let completed = leases.iter().enumerate().map(|(n, lease)| Completed {
            id: lease.id,
            outcome: vec![b'o'; 300],
            settled: Some((
                account(),
                Settled {
                    ip: lease.task.ip,
                    end: End::Answered(Stored { ip: lease.task.ip, ..stored(u32::try_from(n).unwrap_or(0)) }),
                },
            )),
        });
        store.complete(completed.collect(), now, None).await.expect("completed");
    }
}

/// `n` look-ups, each admitted and settled for itself, 32 at a time.
async fn look_up(store: &Arc<SqliteStore>, first: u32, n: u32) {
    let ask = Arc::new(Ask {
        account: account(),
        quotas: vec!["1000000000/day".parse().expect("a quota")],
        burst: 1,
        rolling_day: false,
        reserve: 0.2,
        who: Who::Person,
        user: "bench".into(),
        keep_claim: Duration::from_secs(60),
    });
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..32 {
        let (store, ask) = (Arc::clone(store), Arc::clone(&ask));
        lanes.spawn(async move {
            for n in (first + lane..first + n).step_by(32) {
                let looks = vec![Look::from(ip(n))];
                store.admit(Arc::clone(&ask), looks, true, Timestamp::UNIX_EPOCH).await.expect("admitted");
                let settled = vec![Settled { ip: ip(n), end: End::Answered(stored(n)) }];
                store.settle(&ask.account, settled, None).await.expect("settled");
            }
        });
    }
    lanes.join_all().await;
}

fn benches(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10);

    group.throughput(Throughput::Elements(100_000));
    group.bench_function("enqueue 100,000", |bencher| {
        bencher.iter_batched(
            store,
            |(folder, store)| {
                runtime.block_on(enqueue(&store, 100_000));
                (folder, store)
            },
            BatchSize::PerIteration,
        );
    });

    group.throughput(Throughput::Elements(20_000));
    group.bench_function("take and complete 20,000, 32 at a time", |bencher| {
        bencher.iter_batched(
            || {
                let (folder, store) = store();
                runtime.block_on(enqueue(&store, 20_000));
                (folder, store)
            },
            |(folder, store)| {
                runtime.block_on(work_off(&store, 32));
                (folder, store)
            },
            BatchSize::PerIteration,
        );
    });

    group.throughput(Throughput::Elements(20_000));
    group.bench_function("admit and settle 20,000, 32 in flight", |bencher| {
        bencher.iter_batched(
            || {
                let (folder, store) = store();
                (folder, Arc::new(store))
            },
            |(folder, store)| {
                runtime.block_on(look_up(&store, 0, 20_000));
                (folder, store)
            },
            BatchSize::PerIteration,
        );
    });

    let (_folder, store) = store();
    for first in (0..100_000).step_by(5_000) {
        let answers = (first..first + 5_000).map(stored).collect();
        runtime.block_on(store.keep(&account(), answers)).expect("kept");
    }
    group.throughput(Throughput::Elements(100_000));
    for at_once in [1, 256] {
        group.bench_function(format!("answers 100,000, {at_once} at a time"), |bencher| {
            bencher.iter(|| {
                for first in (0..100_000).step_by(at_once) {
                    let upto = (first + u32::try_from(at_once).unwrap_or(1)).min(100_000);
                    let ips = (first..upto).map(ip).collect();
                    black_box(runtime.block_on(store.answers(&account(), ips, false)).expect("read"));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
