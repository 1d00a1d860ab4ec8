//! No room left.

use super::*;
use crate::store::conformance::{account, admit, ask, at, get, going, ip, stored};
use crate::store::{Cache as _, Stored};

#[test]
fn a_full_disk_is_told_loses_nothing_and_passes() {
    let folder = Folder::new();
    let store = folder.open();
    get(store.keep(&account(), vec![stored(ip(0), 0.0)]));
    let pages = get(store.write(|db| {
        let pages: i64 = db.conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        db.conn.query_row(&format!("PRAGMA max_page_count = {}", pages + 40), [], |row| row.get::<_, i64>(0))
    }));
    // Bodies that zstd cannot make smaller, so that pages fill.
    let big = |n: u32| {
        let body = (0..8_000_u32)
            .flat_map(|i| (i.wrapping_mul(2_654_435_761) ^ n.wrapping_mul(40_503)).to_le_bytes());
        Stored { body: Some(body.collect()), ..stored(ip(n), 0.0) }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut kept = vec![0];
    let mut full = None;
    for n in 1..100 {
        match runtime.block_on(store.keep(&account(), vec![big(n)])) {
            Ok(()) => kept.push(n),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    assert!(matches!(full, Some(StoreError::Full { .. })), "{full:?} after {kept:?}");
    let there = |store: &SqliteStore| -> Vec<u32> {
        let ages = get(store.ages(&account(), (0..100).map(ip).collect()));
        (0..100).zip(ages).filter_map(|(n, age)| age.map(|_| n)).collect()
    };
    assert_eq!(there(&store), kept);
    // Room again: the same store goes on.
    get(store.write(move |db| {
        db.conn
            .query_row(&format!("PRAGMA max_page_count = {}", pages + 10_000), [], |row| row.get::<_, i64>(0))
    }));
    get(store.keep(&account(), vec![big(99)]));
    kept.push(99);
    drop(store);
    let store: Arc<dyn Store> = Arc::new(folder.open());
    assert_eq!(going(&admit(&store, &ask(&["5/day"]), [1_000], 0.0)), 1);
    drop(store);
    assert_eq!(there(&folder.open()), kept);
    assert_eq!(get(folder.open().stats())[0].fetched, Some((at(0.0), at(0.0))));
}

#[test]
fn one_call_that_cannot_be_done_does_not_spoil_the_others() {
    let folder = Folder::new();
    let store = folder.open();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let results = runtime.block_on(async {
        let bad = || store.write(|db| db.conn.execute("INSERT INTO nowhere VALUES(1)", []));
        // Started together, so that the writer finds them all waiting.
        tokio::join!(
            store.keep(&account(), vec![stored(ip(1), 0.0)]),
            bad(),
            store.keep(&account(), vec![stored(ip(2), 0.0)]),
            bad(),
            store.keep(&account(), vec![stored(ip(3), 0.0)]),
        )
    });
    assert!(results.0.is_ok() && results.2.is_ok() && results.4.is_ok());
    assert!(matches!(results.1, Err(StoreError::Failed { .. })));
    assert!(matches!(results.3, Err(StoreError::Failed { .. })));
    let ages = get(store.ages(&account(), vec![ip(1), ip(2), ip(3)]));
    assert!(ages.iter().all(Option::is_some));
}

#[test]
fn what_a_failed_transaction_made_is_made_again() {
    let folder = Folder::new();
    let store = folder.open();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let failed = runtime.block_on(store.write(|db| {
        db.account(&account())?;
        db.conn.execute("INSERT INTO nowhere VALUES(1)", [])
    }));
    assert!(failed.is_err());
    // Another account takes the numbers that the first one never had.
    let other = crate::store::Account::new("other", "example.org", None);
    get(store.keep(&other, vec![stored(ip(1), 0.0)]));
    get(store.keep(&account(), vec![stored(ip(2), 0.0)]));
    assert_eq!(get(store.ages(&other, vec![ip(1), ip(2)])).iter().flatten().count(), 1);
    assert_eq!(get(store.stats()).len(), 2);
    let store: Arc<dyn Store> = Arc::new(store);
    assert_eq!(going(&admit(&store, &ask(&["5/day"]), [1_000], 0.0)), 1);
    let quota = get(store.quota(at(0.0)));
    assert_eq!(quota.iter().map(|row| &*row.provider).collect::<Vec<_>>(), ["abuseipdb"]);
}
