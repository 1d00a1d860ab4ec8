//! What is answered when the disk does not take what was committed.

use super::*;
use crate::store::conformance::{account, get, ip, stored};
use crate::store::{Cache as _, End, Ledger as _, Settled};

#[test]
fn what_cannot_be_made_durable_is_never_said_to_be() {
    let folder = Folder::new();
    let store = folder.open();
    // SQLite goes on with the log that it holds open; nothing by its name can be synced any more.
    std::fs::remove_file(folder.file().with_extension("db-wal")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for n in 1..3 {
        let (early, safe) = tokio::sync::oneshot::channel();
        let settled = vec![Settled { ip: ip(n), end: End::Answered(stored(ip(n), 0.0)) }];
        let settling = store.settle(&account(), settled, Some(early));
        let (durable, safe) = runtime.block_on(async { tokio::join!(settling, safe) });
        assert!(
            matches!(durable, Err(StoreError::Unreachable { what: "sync the log of", .. })),
            "{durable:?}"
        );
        // It is committed all the same.
        assert_eq!(safe, Ok(()));
        assert!(get(store.answers(&account(), vec![ip(n)], false))[0].is_some());
    }
}
