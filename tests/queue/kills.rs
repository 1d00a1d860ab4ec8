//! Workers that die, and many processes on one store.

use super::harness::{list, records, stderr};
use super::{Desk, FAST, signal};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const LEASE: &str = "1s";

/// Two workers over `tasks` tasks, one of which is killed `kills` times at random moments and begins anew. Each task has
/// one result, and no more was asked twice than was in flight at the kills.
fn killed(tasks: usize, kills: u64, concurrency: u64, latency: &str, between: std::ops::Range<u64>) {
    let desk = Desk::new(&format!("[every]\nlatency = '{latency}'\n"));
    desk.rows(&["enqueue", &desk.put("ips", &list(tasks)), "--limit", "0", "-q"]);
    let at_once = concurrency.to_string();
    let begin = || -> Child {
        let mut command = desk.command(&["worker", "-c", &at_once, "--lease", LEASE, "-q"]);
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut other, mut victim) = (begin(), begin());
    let mut done = 0;
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(rand::random_range(between.clone())));
        done += u64::from(victim.try_wait().unwrap().is_none());
        let _ = victim.kill();
        victim.wait().unwrap();
        victim = begin();
    }
    assert_eq!((other.wait().unwrap().code(), victim.wait().unwrap().code()), (Some(0), Some(0)));
    assert_eq!(desk.status("abuseipdb"), [0; 4]);
    let results = records(&desk.sift(&["queue", "results"]).stdout);
    assert_eq!(results.len(), tasks);
    assert!(results.iter().all(|record| record["status"] == "ok"));
    let report = desk.simulator.ledger()["providers"]["abuseipdb"].clone();
    let again = report["asked_again"].as_u64().unwrap();
    assert_eq!(report["distinct"], tasks);
    assert!(done > 0, "every kill came too late");
    assert!(again <= done * concurrency, "{again} of {tasks} were asked twice after {done} kills");
    if tasks > 5_000 {
        #[expect(clippy::print_stdout, reason = "the figures of a run by hand, with --nocapture")]
        {
            println!("{again} of {tasks} look-ups were made twice after {done} kills");
        }
    }
}

#[test]
fn a_worker_that_is_killed_loses_nothing_and_nothing_is_done_twice() {
    // SIFT_TEST_KILLS=20 is the whole of it: 10,000 tasks.
    match std::env::var("SIFT_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()) {
        Some(kills) => killed(10_000, kills, 8, "8ms", 100..500),
        None => killed(600, 3, 8, "15ms", 100..350),
    }
}

/// A worker that ends on the spot at each named point, of the store's and of its own code.
#[test]
fn a_worker_that_ends_at_any_point_loses_nothing() {
    for point in [
        "worker.taken",
        "lane.answered",
        "worker.finished",
        "queue.taking",
        "queue.completing",
        "writer.before-begin",
        "writer.before-commit",
        "writer.after-commit",
        "writer.before-reply",
    ] {
        let desk = Desk::new("[every]\nlatency = '5ms'\n");
        desk.rows(&["enqueue", &desk.put("ips", &list(60)), "-q"]);
        let worker = |at: &str| {
            let mut command = desk.command(&["worker", "-c", "4", "--lease", LEASE, "-q"]);
            command.env("SIFT_CRASH_AT", at).stderr(Stdio::null()).status().unwrap()
        };
        assert_eq!(worker(&format!("{point}:2")).code(), None, "{point}: it was to be aborted");
        assert_eq!(worker("").code(), Some(0), "{point}");
        let results = records(&desk.sift(&["queue", "results"]).stdout);
        assert_eq!(results.len(), 60, "{point}");
        assert!(results.iter().all(|record| record["status"] == "ok"), "{point}");
        let again = desk.simulator.ledger()["providers"]["abuseipdb"]["asked_again"].as_u64().unwrap();
        assert!(again <= 4, "{point}: {again} were asked twice");
    }
}

/// Whether no process is in the middle of a transaction on the store.
fn can_be_written(desk: &Desk) -> bool {
    let store = rusqlite::Connection::open(desk.home.path().join("state/sift/sift.db")).unwrap();
    store.busy_timeout(Duration::from_millis(100)).unwrap();
    store.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
}

/// One that stops without dying: its leases are over, and its answers come after another's.
#[test]
fn a_worker_that_was_asleep_ends_no_task_of_anothers() {
    let desk = Desk::new("[every]\nlatency = '20ms'\n");
    desk.rows(&["enqueue", &desk.put("ips", &list(200)), "-q"]);
    // A claim of one that is there holds for 20 s more than an attempt may take.
    let worker = || {
        let mut command = desk.command(&["worker", "-c", "4", "--lease", LEASE]);
        command.env("SIFT_TIMEOUT", "1s").stderr(Stdio::null());
        command
    };
    let mut sleeper = worker().spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    signal(sleeper.id(), "STOP");
    // Nobody gets past one that sleeps in the middle of a transaction: what this is about is its leases.
    while !can_be_written(&desk) {
        signal(sleeper.id(), "CONT");
        std::thread::sleep(Duration::from_millis(3));
        signal(sleeper.id(), "STOP");
    }
    let other = worker().output().unwrap();
    assert_eq!(other.status.code(), Some(0), "{}", stderr(&other));
    signal(sleeper.id(), "CONT");
    assert!(sleeper.wait().unwrap().success());
    assert_eq!(desk.status("abuseipdb"), [0; 4]);
    assert_eq!(records(&desk.sift(&["queue", "results"]).stdout).len(), 200);
}

#[test]
fn a_worker_runs_and_people_on_one_store_never_meet_a_lock() {
    let desk = Desk::new(FAST);
    let time = std::env::var("SIFT_TEST_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let time = time.map_or(Duration::from_secs(4), |minutes: u64| Duration::from_secs(minutes * 60));
    let began = Instant::now();
    let mut worker = desk.command(&["worker", "--watch"]).stderr(Stdio::piped()).spawn().unwrap();
    let addresses = |from: usize, round: usize| -> String {
        list(from + 300).lines().skip(from).fold(String::new(), |text, line| {
            text + &line.replace("2001:db8:", &format!("2001:db8:{round:x}:")) + "\n"
        })
    };
    let mut asked = 0;
    for round in 1.. {
        if began.elapsed() >= time {
            break;
        }
        let name = |what: &str, from| desk.put(&format!("{what}{round}"), &addresses(from, round));
        let (queued, one, two) = (name("queued", 0), name("one", 200), name("two", 400));
        let runs =
            [&["enqueue", &queued][..], &["enrich", &one], &["enrich", &two], &["quota", "-f", "ndjson"]]
                .map(|words| {
                    desk.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
                });
        for run in runs {
            let output = run.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(!stderr(&output).contains("lock"), "{}", stderr(&output));
        }
        asked += 700;
    }
    // What is left is worked off before it is told to go.
    let end = Instant::now() + Duration::from_secs(20);
    while desk.status("abuseipdb") != [0; 4] && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
    }
    signal(worker.id(), "TERM");
    assert_eq!(worker.wait().unwrap().code(), Some(143));
    let report = desk.simulator.ledger()["providers"]["abuseipdb"].clone();
    assert_eq!(report["distinct"], asked);
    assert_eq!(report["requests"], asked, "what one has asked the others take from the store");
    let used = desk.rows(&["quota", "-f", "ndjson", "-p", "abuseipdb"]);
    assert_eq!(used[0]["used"], asked, "no update is lost");
}
