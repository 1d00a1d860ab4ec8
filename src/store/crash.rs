//! Named points at which a test has the process end on the spot, as `kill -9` would.
//!
//! Only in builds with debug assertions: `SIFT_CRASH_AT=NAME` ends it the first time that it passes the point,
//! `SIFT_CRASH_AT=NAME:N` the Nth time. The points are listed with what they prove in `sqlite::schema`; those of the
//! worker's own code are `worker.taken` (leases are held, nothing is asked), `lane.answered` (a reply is here, nothing is kept
//! of it) and `worker.finished` (it is kept).

/// Passes the point, or does not.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("SIFT_CRASH_AT").ok()?;
        let (name, nth) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), nth.parse().ok()?))
    });
    if let Some((wanted, nth)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *nth
    {
        std::process::abort();
    }
}

/// Nothing, in a build for users.
#[cfg(not(debug_assertions))]
pub(crate) const fn point(_name: &str) {}
