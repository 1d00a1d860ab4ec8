//! Runs that keep what they are told, and the commands that show it afterwards.

use super::harness::{Home, Simulator, count, list, records, stderr};
use super::stdout;
use serde_json::{Value, json};

/// Runs it against the simulator; gives standard output.
fn ask(home: &Home, simulator: &Simulator, words: &[&str]) -> String {
    let output = home.ask(simulator, words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    stdout(&output)
}

fn rows(home: &Home, simulator: &Simulator, words: &[&str]) -> Vec<Value> {
    let text = ask(home, simulator, &[words, &["-f", "ndjson"]].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn requests(simulator: &Simulator) -> Value {
    simulator.ledger()["total"]["requests"].clone()
}

#[test]
fn what_was_asked_once_is_kept_counted_and_told() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[answers]\n'2001:db8::1' = 'malicious'\n");
    let file = home.put("list", &list(20));
    let file = file.to_str().unwrap();
    let enrich =
        || records(ask(&home, &simulator, &["enrich", file, "-f", "ndjson", "--sort", "input"]).as_bytes());
    let first = enrich();
    assert_eq!((count(&first, "providers.abuseipdb.cache", "miss"), requests(&simulator)), (20, json!(20)));
    let again = enrich();
    assert_eq!((count(&again, "providers.abuseipdb.cache", "hit"), requests(&simulator)), (20, json!(20)));
    let verdicts =
        |records: &[Value]| records.iter().map(|record| record["verdict"].clone()).collect::<Vec<_>>();
    assert_eq!(verdicts(&first), verdicts(&again));

    let stats = rows(&home, &simulator, &["cache", "stats"]);
    assert_eq!((stats.len(), &stats[0]["answers"], &stats[0]["host"]), (1, &json!(20), &json!("loopback")));
    let quota = rows(&home, &simulator, &["quota"]);
    let [day] = &quota[..] else { panic!("{quota:?}") };
    assert_eq!((&day["used"], &day["window"], &day["in_use"]), (&json!(20), &json!("day"), &json!(true)));
    let trail = rows(&home, &simulator, &["audit"]);
    assert_eq!(
        (trail.len(), count(&trail, "outcome", "found") + count(&trail, "outcome", "not_found")),
        (20, 20)
    );
    assert_eq!(trail[0]["key_id"], day["key_id"]);
    let asked_about = rows(&home, &simulator, &["audit", "--ip", "2001:db8::2"]);
    assert_eq!((asked_about.len(), count(&asked_about, "who", "person")), (1, 1));

    let said = records(ask(&home, &simulator, &["explain", "2001:db8::1", "-f", "ndjson"]).as_bytes());
    let record = first.iter().find(|record| record["ip"] == "2001:db8::1").unwrap();
    for key in ["status", "verdict", "score", "found", "complete", "rule", "tags", "country"] {
        assert_eq!(said[0].get(key), record.get(key), "{key}");
    }
    let table = ask(&home, &simulator, &["explain", "2001:db8::1", "-f", "table"]);
    assert!(table.contains("  just now  fresh  decides  loopback\n"), "{table}");
    assert!(!table.contains("would read") && !table.contains("out of date"), "{table}");
    let whole = rows(&home, &simulator, &["cache", "get", "2001:db8::1"]);
    assert_eq!((&whole[0]["status"], whole[0]["body"].is_object()), (&json!(200), true));
    assert_eq!(requests(&simulator), 20, "commands that show ask nobody");
}

#[test]
fn a_changed_threshold_is_said_by_explain() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[answers]\n'2001:db8::1' = 'malicious'\n");
    ask(&home, &simulator, &["lookup", "2001:db8::1"]);
    home.put("config/sift/config.toml", "[verdict]\nmalicious = 100\n");
    let table = ask(&home, &simulator, &["explain", "2001:db8::1", "-f", "table"]);
    assert!(table.ends_with("so a run would read them anew: abuseipdb\n"), "{table}");
}

#[test]
fn no_key_is_in_the_store_nor_in_what_is_shown_of_it() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    ask(&home, &simulator, &["lookup", "2001:db8::1"]);
    let mut shown = Vec::new();
    for words in [
        &["quota"][..],
        &["audit"],
        &["cache", "stats"],
        &["cache", "get", "2001:db8::1"],
        &["explain", "2001:db8::1"],
    ] {
        shown.extend(home.ask(&simulator, &[words, &["-f", "ndjson", "-vv"]].concat()).stdout);
    }
    assert!(shown.len() > 500);
    for file in std::fs::read_dir(home.path().join("state/sift")).unwrap() {
        shown.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    assert!(!String::from_utf8_lossy(&shown).contains("fake-key"));
}

#[test]
fn a_job_leaves_the_reserve_to_people_and_stands_in_the_trail() {
    let home = Home::new();
    home.put("config/sift/config.toml", "[providers.abuseipdb]\ndaily = 10\nreserve = 0.5\n");
    let simulator = Simulator::start(&home, "");
    let file = home.put("list", &list(20));
    let output = home.ask(&simulator, &["enrich", file.to_str().unwrap(), "--job", "eve", "-f", "ndjson"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!((count(&records(&output.stdout), "status", "ok"), requests(&simulator)), (5, json!(5)));
    let [day] = &rows(&home, &simulator, &["quota"])[..] else { panic!("one window") };
    assert_eq!(
        [&day["used"], &day["limit"], &day["left"], &day["reserve"]],
        [&json!(5), &json!(10), &json!(5), &json!(5)]
    );
    // A person who waits for it may have what the job left.
    ask(&home, &simulator, &["lookup", "2001:db8:1::1"]);
    let of_job = rows(&home, &simulator, &["audit", "--job", "eve"]);
    assert_eq!((of_job.len(), count(&of_job, "who", "job")), (5, 5));
    let all = rows(&home, &simulator, &["audit"]);
    assert_eq!((all.len(), count(&all, "who", "person")), (6, 1));
}

#[test]
fn without_the_store_nothing_is_kept_and_offline_nothing_is_sent() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let lookup =
        |more: &[&str]| home.ask(&simulator, &[&["lookup", "2001:db8::1", "-f", "ndjson"], more].concat());
    for _ in 0..2 {
        assert_eq!(lookup(&["--no-store"]).status.code(), Some(0));
    }
    assert_eq!(requests(&simulator), 2);
    assert!(!home.path().join("state/sift/sift.db").exists());
    let output = lookup(&["--offline"]);
    assert_eq!(
        (output.status.code(), count(&records(&output.stdout), "error.type", "offline")),
        (Some(4), 1)
    );
    assert_eq!(lookup(&[]).status.code(), Some(0));
    let output = lookup(&["--offline"]);
    assert_eq!(
        (output.status.code(), count(&records(&output.stdout), "providers.abuseipdb.cache", "hit")),
        (Some(0), 1)
    );
    assert_eq!(requests(&simulator), 3);
    assert_eq!(lookup(&["--refresh"]).status.code(), Some(0));
    assert_eq!(requests(&simulator), 4);
    assert_eq!(rows(&home, &simulator, &["audit"]).len(), 2);
}
