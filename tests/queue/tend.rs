//! What is added, seen, and removed.

use super::harness::{list, stderr};
use super::{Desk, FAST};
use serde_json::json;

#[test]
fn what_enrich_would_ask_is_added_once() {
    let desk = Desk::new(FAST);
    let file = desk.put("ips", &(list(30) + "10.0.0.1\n"));
    let added = |words: &[&str]| desk.rows(&[&["enqueue", &file, "-f", "ndjson"], words].concat()).remove(0);
    assert_eq!(
        added(&["--job", "night"]),
        json!({"added": 30, "already": 0, "addresses": 30, "over_limit": 0, "local": 0, "withheld": {"private": 1}})
    );
    assert_eq!((&added(&[])["added"], &added(&[])["already"]), (&json!(0), &json!(30)));
    assert_eq!(desk.status("abuseipdb"), [30, 0, 0, 0]);
    let output = desk.sift(&["enqueue", &desk.put("more", &list(40)), "--limit", "35", "--not-before", "2h"]);
    assert_eq!(output.status.code(), Some(3));
    insta::assert_snapshot!(stderr(&output), @"
    added 5 tasks; 30 were in the queue already
    warning: 5 addresses are beyond the limit of 35 (--limit) and left out
    ");
    assert_eq!(desk.status("abuseipdb"), [30, 5, 0, 0]);
    assert_eq!(desk.simulator.ledger()["total"]["requests"], 0);
}

#[test]
fn the_queue_is_emptied_where_that_was_meant() {
    let desk = Desk::new(FAST);
    for words in [&["status"][..], &["results"], &["failed"], &["retry"], &["purge", "all", "--yes"]] {
        let output = desk.sift(&[&["queue"], words].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{words:?}");
        assert!(!desk.home.path().join("state").exists(), "{words:?}: nothing is made");
    }
    let file = desk.put("ips", &list(30));
    desk.rows(&["enqueue", &file]);
    let output = desk.sift(&["queue", "purge", "open"]);
    assert_eq!((output.status.code(), desk.status("abuseipdb")), (Some(2), [30, 0, 0, 0]));
    let output = desk.sift(&["queue", "purge", "open", "--yes"]);
    assert_eq!(stderr(&output), "removed 30 tasks\n");
    assert_eq!(desk.status("abuseipdb"), [0; 4]);
    let output = desk.sift(&["queue", "retry", "-p", "abuseipd"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).ends_with("tip: did you mean 'abuseipdb'?\n"), "{}", stderr(&output));
}

#[test]
fn moments_are_checked_before_anything_is_read() {
    let desk = Desk::new(FAST);
    let said = |words: &[&str]| {
        let output = desk.sift(&[&["enqueue", "nowhere.json"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        stderr(&output).lines().next().unwrap_or_default().to_owned()
    };
    let all = [&["--not-before", "soon"][..], &["--expires", "7"], &["--priority", "256"], &["--follow"]];
    insta::assert_snapshot!(all.map(said).join("\n"), @"
    error: --not-before soon: neither a span of time nor a time
    error: --expires 7: neither a span of time nor a time
    error: invalid value '256' for '--priority <0..255>': 256 is not in 0..=255
    error: --follow has no end, and a task is added when all was read
    ");
}
