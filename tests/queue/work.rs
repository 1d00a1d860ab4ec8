//! Workers: what they answer, what they put off, what they give up.

use super::harness::{count, list, records, stderr};
use super::{Desk, FAST, signal};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

/// A record without what differs from run to run.
fn settled(record: &Value) -> Value {
    let mut record = record.clone();
    record["timestamp"] = Value::Null;
    for (_, entry) in record["providers"].as_object_mut().unwrap() {
        for varies in ["fetched_at", "latency_ms"] {
            entry.as_object_mut().unwrap().remove(varies);
        }
    }
    record
}

fn all_settled(bytes: &[u8]) -> Vec<Value> {
    let mut all: Vec<Value> = records(bytes).iter().map(settled).collect();
    all.sort_by_key(|record| record["ip"].as_str().unwrap().to_owned());
    all
}

#[test]
fn a_worker_writes_the_records_of_enrich() {
    let desk = Desk::new(FAST);
    let with_both = |words: &[&str]| {
        let mut command = desk.command(words);
        let output =
            command.env("VT_API_KEY", "fake").env("SIFT_VIRUSTOTAL_RATE", "1000/s").output().unwrap();
        (output.status.code(), output)
    };
    assert_eq!(with_both(&["enqueue", "fixtures/eve.json", "--job", "night"]).0, Some(0));
    let (code, worked) = with_both(&["worker"]);
    assert_eq!((code, worked.stdout.len()), (Some(0), 0), "{}", stderr(&worked));
    assert!(stderr(&worked).ends_with("78 answered\n"), "{}", stderr(&worked));
    let kept = with_both(&["queue", "results", "--keep"]).1;
    let file = desk.home.path().join("out.ndjson");
    let path = file.to_str().unwrap();
    for _ in 0..2 {
        assert_eq!(with_both(&["queue", "results", "-o", path, "--append"]).0, Some(0));
    }
    let results = std::fs::read(&file).unwrap();
    assert_eq!(results, kept.stdout, "each once, and --keep leaves them for the next");

    let other = Desk::new(FAST);
    let mut command = other.command(&["enrich", "fixtures/eve.json", "--no-skipped"]);
    let asked = command.env("VT_API_KEY", "fake").env("SIFT_VIRUSTOTAL_RATE", "1000/s").output().unwrap();
    assert_eq!(all_settled(&results), all_settled(&asked.stdout));
    assert_eq!(count(&records(&results), "status", "ok"), 39);
}

#[test]
fn a_stored_answer_is_asked_for_by_nobody() {
    let desk = Desk::new(FAST);
    let file = desk.put("ips", &list(50));
    desk.rows(&["enrich", &file, "-q"]);
    desk.rows(&["enqueue", &desk.put("more", &list(60)), "-q"]);
    let output = desk.sift(&["worker"]);
    assert!(stderr(&output).ends_with("60 answered (50 from the store)\n"), "{}", stderr(&output));
    assert_eq!(desk.simulator.ledger()["total"]["requests"], 60);
    let results = desk.sift(&["queue", "results"]).stdout;
    assert_eq!(
        records(&results).iter().filter(|r| r["providers"]["abuseipdb"]["cache"] == "hit").count(),
        50
    );
}

#[test]
fn what_is_refused_is_given_up_and_what_fails_is_tried_again_later() {
    let scenario = format!(
        "{FAST}[[every.faults]]\nkind = 'status'\nstatus = 422\naddresses = ['2001:db8::3']\n\
         [[every.faults]]\nkind = 'status'\nstatus = 503\naddresses = ['2001:db8::5']\n"
    );
    let desk = Desk::new(&scenario);
    desk.rows(&["enqueue", &desk.put("ips", &list(10)), "-q"]);
    let mut command = desk.command(&["worker"]);
    let output = command.env("SIFT_RETRIES", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(
        text.contains("8 answered, 1 to be tried again, 1 given up (sift queue failed); 1 wait"),
        "{text}"
    );
    assert_eq!(desk.status("abuseipdb"), [0, 1, 0, 1]);
    let failed = desk.rows(&["queue", "failed", "-f", "ndjson"]);
    assert_eq!(
        (&failed[0]["ip"], &failed[0]["why"], &failed[0]["error"]["type"], &failed[0]["attempts"]),
        (&json!("2001:db8::3"), &json!("failed"), &json!("invalid_request"), &json!(1))
    );
    // Its address has its record, and another one once it was tried again.
    let results = records(&desk.sift(&["queue", "results"]).stdout);
    assert_eq!((results.len(), count(&results, "error.type", "invalid_request")), (9, 1));
    assert_eq!(stderr(&desk.sift(&["queue", "retry"])), "1 task can be asked again: sift worker\n");
    assert_eq!(desk.sift(&["worker", "-q"]).status.code(), Some(4));
    assert_eq!(records(&desk.sift(&["queue", "results"]).stdout).len(), 1);
    assert_eq!(stderr(&desk.sift(&["queue", "purge", "dead", "--yes"])), "removed 1 tasks\n");
}

#[test]
fn a_quota_that_is_gone_costs_no_attempt() {
    let desk = Desk::new(FAST);
    desk.rows(&["enqueue", &desk.put("ips", &list(300)), "-q"]);
    let worker = || desk.command(&["worker"]).env("SIFT_ABUSEIPDB_DAILY", "20").output().unwrap();
    let output = worker();
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains("abuseipdb is not asked any more until "), "{text}");
    let [ready, delayed, leased, dead] = desk.status("abuseipdb");
    assert_eq!((ready + delayed, leased, dead), (280, 0, 0), "{text}");
    assert_eq!(worker().status.code(), Some(4));
    assert_eq!(desk.simulator.ledger()["total"]["requests"], 20);
    let output = desk.sift(&["queue", "failed"]);
    assert_eq!(output.stdout.len(), 0, "nothing was given up");
}

#[test]
fn a_key_that_is_refused_is_no_tasks_fault() {
    let scenario = format!("{FAST}[[every.faults]]\nkind = 'status'\nstatus = 401\n");
    let desk = Desk::new(&scenario);
    desk.rows(&["enqueue", &desk.put("ips", &list(50)), "-q"]);
    let output = desk.sift(&["worker"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("abuseipdb is not asked any more: unauthorized"), "{}", stderr(&output));
    assert_eq!(desk.status("abuseipdb"), [50, 0, 0, 0]);
}

#[test]
fn a_task_waits_for_its_time_and_is_not_asked_after_it() {
    let desk = Desk::new(FAST);
    desk.rows(&["enqueue", &desk.put("late", &list(5)), "--not-before", "3s", "-q"]);
    let expires = desk.put("short", "2001:db8:1::1\n");
    desk.rows(&["enqueue", &expires, "--expires", "1s", "-q"]);
    std::thread::sleep(Duration::from_millis(1_100));
    let output = desk.sift(&["worker", "--once"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(desk.status("abuseipdb"), [0, 5, 0, 1]);
    assert_eq!(desk.rows(&["queue", "failed", "-f", "ndjson"])[0]["why"], "expired");
    let results = records(&desk.sift(&["queue", "results"]).stdout);
    assert_eq!(count(&results, "error.type", "deadline"), 1);
    // One that stays waits for them, until it is told to go.
    let mut worker = desk.command(&["worker", "--watch"]).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(3_500));
    signal(worker.id(), "INT");
    assert_eq!(worker.wait().unwrap().code(), Some(130));
    assert_eq!(records(&desk.sift(&["queue", "results"]).stdout).len(), 5);
}

#[test]
fn a_worker_that_is_told_to_go_gives_back_what_it_has() {
    let desk = Desk::new("[every]\nlatency = '150ms'\n");
    desk.rows(&["enqueue", &desk.put("ips", &list(300)), "-q"]);
    let mut worker = desk.command(&["worker", "-c", "16"]).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(900));
    signal(worker.id(), "TERM");
    assert_eq!(worker.wait().unwrap().code(), Some(143));
    let [ready, delayed, leased, dead] = desk.status("abuseipdb");
    assert!(ready > 0 && ready < 300, "{ready}");
    assert_eq!((delayed, leased, dead), (0, 0, 0));
    assert_eq!(desk.sift(&["worker", "-c", "64"]).status.code(), Some(0));
    assert_eq!(records(&desk.sift(&["queue", "results"]).stdout).len(), 300);
    let report = desk.simulator.ledger()["providers"]["abuseipdb"].clone();
    assert_eq!(
        (&report["requests"], &report["asked_again"]),
        (&json!(300), &json!(0)),
        "nothing was asked twice"
    );
}

#[test]
fn a_run_that_ends_by_its_time_leaves_the_rest() {
    let desk = Desk::new("[every]\nlatency = '100ms'\n");
    desk.rows(&["enqueue", &desk.put("ips", &list(400)), "-q"]);
    let output = desk.sift(&["worker", "--max-time", "1s", "-c", "8"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let [ready, delayed, leased, dead] = desk.status("abuseipdb");
    assert!(ready > 200 && ready < 400, "{ready}");
    assert_eq!((delayed, leased, dead), (0, 0, 0));
}

#[test]
fn a_provider_of_ones_own_is_queued_like_any_other() {
    let body = "body = '{\"verdict\": \"{verdict}\", \"score\": {score}}'";
    let desk = Desk::new(&format!("{FAST}[providers.inhouse]\n{body}\n"));
    let definition = format!(
        "title = 'In-house'\nrole = 'reputation'\naccepts = ['ipv4', 'ipv6']\nsends = 'the address'\n\
         [answer]\nfilter = '{{found: true, verdict: .body.verdict, score: .body.score}}'\n\
         [request]\nbase_url = '{}'\npath = '/inhouse/check/{{ip}}'\n",
        desk.simulator.url
    );
    desk.home.provider("inhouse", &definition);
    desk.rows(&["enqueue", &desk.put("ips", &list(20)), "-p", "inhouse,abuseipdb", "-q"]);
    // It needs no key, so that nobody asks it unasked; who added the tasks has chosen it.
    assert_eq!(desk.sift(&["worker"]).status.code(), Some(0));
    let results = records(&desk.sift(&["queue", "results"]).stdout);
    let answered = |name: &str| count(&results, &format!("providers.{name}.status"), "ok");
    assert_eq!((results.len(), answered("inhouse"), answered("abuseipdb")), (20, 20, 20));
}

#[test]
fn a_store_that_is_damaged_ends_the_worker_and_is_left_as_it_is() {
    let desk = Desk::new(FAST);
    desk.rows(&["enqueue", &desk.put("ips", &list(20)), "-q"]);
    let path = desk.put("state/sift/sift.db", "no store at all, but long enough to be looked at twice");
    let _ = std::fs::remove_file(path.clone() + "-wal");
    for words in [&["worker"][..], &["enqueue", "fixtures/eve.json"], &["queue", "results"]] {
        let output = desk.sift(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(!stderr(&output).contains("--no-store"), "{}", stderr(&output));
    }
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("no store"));
}

#[test]
fn what_enrich_cannot_ask_now_it_puts_into_the_queue() {
    let desk = Desk::new(FAST);
    let file = desk.put("ips", &list(60));
    let mut command = desk.command(&["enrich", &file, "--defer", "--limit", "50"]);
    let output = command.env("SIFT_ABUSEIPDB_DAILY", "20").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("40 look-ups are in the queue: sift worker\n"), "{}", stderr(&output));
    let all = records(&output.stdout);
    let failed: Vec<&Value> = all.iter().filter(|record| record["status"] == "error").collect();
    assert_eq!((all.len(), failed.len(), count(&all, "error.type", "quota_exhausted")), (60, 40, 30));
    for record in failed {
        let message = record["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("; put into the queue"), "{message}");
    }
    // Those that the quota holds back wait for its end; those beyond the limit do not.
    assert_eq!(desk.status("abuseipdb"), [10, 30, 0, 0]);
}

/// The record that comes out of the queue has the answers that were there already.
#[test]
fn a_record_of_which_a_part_was_put_off_comes_out_whole() {
    let desk = Desk::new(FAST);
    let file = desk.put("ips", "203.0.113.1\n203.0.113.2\n203.0.113.3\n203.0.113.4\n203.0.113.5\n");
    let with_both = |words: &[&str], quota: &str| {
        let mut command = desk.command(words);
        command.env("VT_API_KEY", "fake").env("SIFT_VIRUSTOTAL_RATE", "1000/s");
        command.env("SIFT_VIRUSTOTAL_DAILY", quota).output().unwrap()
    };
    assert_eq!(with_both(&["enrich", &file, "--defer"], "2").status.code(), Some(3));
    assert_eq!((desk.status("abuseipdb"), desk.status("virustotal")), ([3, 0, 0, 0], [0, 3, 0, 0]));
    assert_eq!(with_both(&["worker"], "2").status.code(), Some(0));
    assert_eq!(desk.status("abuseipdb"), [0; 4]);
    assert_eq!(desk.sift(&["queue", "results"]).stdout.len(), 0, "nothing is done before all of it is");
    // The quota's end is tomorrow: what is there by then is a result.
    assert_eq!(with_both(&["queue", "purge", "open", "--yes"], "2").status.code(), Some(0));
    let results = records(&desk.sift(&["queue", "results"]).stdout);
    assert_eq!(count(&results, "providers.abuseipdb.cache", "hit"), 3);
}

/// A provider with `ask = "suspicious"` is not asked about what the others cleared.
#[test]
fn what_the_others_cleared_is_not_asked_again() {
    let answers =
        "[answers]\n'203.0.113.1' = 'benign'\n'203.0.113.2' = 'malicious'\n'203.0.113.3' = 'unknown'\n";
    let desk = Desk::new(&format!("{FAST}{answers}"));
    let config = "[providers.virustotal]\nask = 'suspicious'\n";
    desk.put("config/sift/config.toml", config);
    let file = desk.put("ips", "203.0.113.1\n203.0.113.2\n203.0.113.3\n");
    let with_both = |desk: &Desk, words: &[&str]| {
        let mut command = desk.command(words);
        let output =
            command.env("VT_API_KEY", "fake").env("SIFT_VIRUSTOTAL_RATE", "1000/s").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        output
    };
    with_both(&desk, &["enqueue", &file]);
    let worked = stderr(&with_both(&desk, &["worker"]));
    assert!(worked.ends_with("5 answered, 1 not asked, since others cleared the address\n"), "{worked}");
    let results = with_both(&desk, &["queue", "results"]).stdout;
    let other = Desk::new(&format!("{FAST}{answers}"));
    other.put("config/sift/config.toml", config);
    assert_eq!(all_settled(&results), all_settled(&with_both(&other, &["enrich", &file]).stdout));
}
