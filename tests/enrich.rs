//! `sift enrich` and `lookup` as a user runs them: the built binary, a real simulator, real signals, real files.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod harness;

use harness::{Home, Simulator, count, list, records, stderr};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_first_run_needs_no_key_and_shows_every_kind_of_record() {
    let home = Home::new();
    let began = Instant::now();
    let output = home.run(&["enrich", "--simulate", "fixtures/eve.json"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    let records = records(&output.stdout);
    let extracted = home.run(&["extract", "--no-context", "fixtures/eve.json"]);
    assert_eq!(records.len(), String::from_utf8(extracted.stdout).unwrap().lines().count());
    for verdict in ["malicious", "suspicious", "benign", "unknown"] {
        assert!(count(&records, "verdict", verdict) > 0, "{verdict}");
    }
    for status in ["ok", "error", "skipped"] {
        assert!(count(&records, "status", status) > 0, "{status}");
    }
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn every_address_has_its_record_and_none_that_is_private_leaves() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '2ms'");
    let output = home.ask(&simulator, &["enrich", "fixtures/eve.json"]);
    let records = records(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((count(&records, "status", "ok"), count(&records, "status", "skipped")), (39, 12));
    let ledger = simulator.ledger();
    assert_eq!(
        (ledger["total"]["special"].as_u64(), ledger["total"]["distinct"].as_u64()),
        (Some(0), Some(39))
    );
    let excluded = home.ask(&simulator, &["enrich", "--exclude", "203.0.113.0/24", "fixtures/eve.json"]);
    assert!(count(&harness::records(&excluded.stdout), "reason", "excluded") > 5);
}

#[test]
fn a_used_up_day_is_told_at_once_and_ends_in_3() {
    let home = Home::new();
    let simulator = Simulator::start(
        &home,
        "[providers.abuseipdb]\nlatency = '2ms'\ndaily = { count = 1000, used = 900, reset = '8h' }",
    );
    let file = home.put("list", &list(205));
    let output = home.ask(&simulator, &["enrich", file.to_str().unwrap()]);
    let records = records(&output.stdout);
    assert_eq!(
        (
            output.status.code(),
            count(&records, "status", "ok"),
            count(&records, "error.type", "quota_exhausted")
        ),
        (Some(3), 100, 105)
    );
    assert!(
        records
            .iter()
            .filter(|record| record["status"] == "error")
            .all(|record| record["error"]["retry_at"].is_string())
    );
    assert!(simulator.ledger()["providers"]["abuseipdb"]["too_many"].as_u64().unwrap() <= 1);
}

#[test]
fn nothing_answered_ends_in_4() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[providers.abuseipdb]\nkey = 'another'");
    let file = home.put("list", &list(100));
    let output = home.ask(&simulator, &["enrich", file.to_str().unwrap()]);
    assert_eq!(
        (output.status.code(), count(&records(&output.stdout), "error.type", "unauthorized")),
        (Some(4), 100)
    );
    assert!(simulator.ledger()["total"]["requests"].as_u64().unwrap() <= 16);
    for text in [stderr(&output), String::from_utf8_lossy(&output.stdout).into_owned()] {
        assert!(!text.contains("fake-key"), "{text}");
    }
}

#[test]
fn a_finding_ends_in_10_and_no_address_in_0() {
    let home = Home::new();
    let simulator =
        Simulator::start(&home, "[answers]\n'203.0.113.7' = 'malicious'\n'203.0.113.8' = 'unknown'");
    let found = home.ask(&simulator, &["lookup", "203.0.113[.]7", "--fail-on", "malicious", "-f", "ndjson"]);
    assert_eq!((found.status.code(), count(&records(&found.stdout), "verdict", "malicious")), (Some(10), 1));
    let clean = home.ask(&simulator, &["lookup", "203.0.113.8", "--fail-on", "suspicious"]);
    assert_eq!(clean.status.code(), Some(0), "{}", stderr(&clean));
    let empty = home.put("empty", "");
    let none = home.ask(&simulator, &["enrich", empty.to_str().unwrap()]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0));
}

#[test]
fn the_limit_bounds_what_is_asked_and_the_rest_has_its_record() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let output = home.ask(&simulator, &["enrich", "--limit", "5", "--sort", "rank", "fixtures/eve.json"]);
    let records = records(&output.stdout);
    assert_eq!(
        (output.status.code(), count(&records, "error.type", "budget_exhausted"), records.len()),
        (Some(3), 34, 51)
    );
    assert_eq!(simulator.ledger()["total"]["requests"], 5);
    let ranked = home.run(&["extract", "--sort", "rank", "fixtures/eve.json"]);
    let ranked: Vec<Value> = String::from_utf8(ranked.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let worst: Vec<&Value> = ranked
        .iter()
        .filter(|line| line["scope"] == "documentation")
        .take(5)
        .map(|line| &line["ip"])
        .collect();
    assert_eq!(records[..5].iter().map(|record| &record["ip"]).collect::<Vec<_>>(), worst, "the worst first");
    assert_eq!(ranked[0]["seen"]["severity"], 1);
}

#[test]
fn results_come_in_the_order_asked_for() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = { min = '1ms', max = '30ms' }");
    let ips = |bytes: &[u8]| {
        records(bytes).iter().map(|record| record["ip"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let input = home.ask(&simulator, &["enrich", "--sort", "input", "fixtures/eve.json"]);
    let extracted =
        String::from_utf8(home.run(&["extract", "--no-context", "fixtures/eve.json"]).stdout).unwrap();
    assert_eq!(ips(&input.stdout), extracted.lines().collect::<Vec<_>>());
    let ranked = home.ask(&simulator, &["enrich", "--sort", "rank", "--no-skipped", "fixtures/eve.json"]);
    let rank = home.run(&["extract", "--sort", "rank", "--no-context", "fixtures/eve.json"]);
    let rank = String::from_utf8(rank.stdout).unwrap();
    let shown = ips(&ranked.stdout);
    assert_eq!(shown, rank.lines().filter(|ip| shown.iter().any(|known| known == ip)).collect::<Vec<_>>());
}

/// Starts a run of 500 addresses of which about 16 are answered every 200 ms, and waits for the first record.
fn in_the_middle(home: &Home, simulator: &Simulator, more: &[&str]) -> (std::process::Child, Vec<u8>) {
    let file = home.put("list", &list(500));
    let mut args = vec!["enrich", file.to_str().unwrap()];
    args.extend(more);
    let mut child =
        simulator.point(&mut home.sift(&args)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = Vec::new();
    if !more.contains(&"-o") {
        // Byte by byte, so that nothing after the first line is taken from the pipe.
        let stdout = child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while first.last() != Some(&b'\n') {
            stdout.read_exact(&mut byte).unwrap();
            first.push(byte[0]);
        }
    }
    (child, first)
}

fn signal(child: &std::process::Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_signal_ends_the_run_in_order() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '200ms'");
    for (kind, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let (child, mut bytes) = in_the_middle(&home, &simulator, &[]);
        let began = Instant::now();
        signal(&child, kind);
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(6));
        bytes.extend(&output.stdout);
        let records = records(&bytes);
        let (answered, cancelled) =
            (count(&records, "status", "ok"), count(&records, "error.type", "cancelled"));
        assert_eq!(
            (output.status.code(), records.len(), answered + cancelled),
            (Some(code), 500, 500),
            "{}",
            stderr(&output)
        );
        assert!(answered >= 16 && cancelled > 100);
    }
}

#[test]
fn a_signal_leaves_an_unfinished_file_where_it_says() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '200ms'");
    let target = home.path().join("out.ndjson");
    let partial = home.path().join("out.ndjson.partial");
    let (child, _) = in_the_middle(&home, &simulator, &["-o", target.to_str().unwrap()]);
    let began = Instant::now();
    while std::fs::metadata(&partial).map_or(0, |file| file.len()) == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "a first record");
        std::thread::yield_now();
    }
    signal(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(!target.exists());
    assert_eq!(records(&std::fs::read(&partial).unwrap()).len(), 500);
    assert!(stderr(&output).contains("out.ndjson.partial"), "{}", stderr(&output));
}

#[test]
fn a_closed_pipe_ends_the_run_in_success() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '100ms'");
    let file = home.put("list", &list(2_000));
    let mut child = simulator
        .point(&mut home.sift(&["enrich", file.to_str().unwrap()]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(": nobody reads the output"), "{}", stderr(&output));
    assert!(began.elapsed() < Duration::from_secs(3), "at once");
    assert!(simulator.ledger()["total"]["requests"].as_u64().unwrap() < 200);
}

#[test]
fn a_full_disk_stops_the_asking_and_says_so() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '100ms'");
    let file = home.put("list", &list(2_000));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        simulator.point(&mut home.sift(&["enrich", file.to_str().unwrap()])).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no room left"), "{}", stderr(&output));
    assert!(simulator.ledger()["total"]["requests"].as_u64().unwrap() < 200);
}

#[test]
fn an_unwritable_file_costs_no_request() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let output = home.ask(&simulator, &["enrich", "-o", "/nowhere/out.ndjson", "fixtures/eve.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("/nowhere/out.ndjson"));
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
}

#[test]
fn a_file_appears_whole_and_grows_with_append() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let target = home.path().join("out.ndjson");
    let target = target.to_str().unwrap();
    assert_eq!(home.ask(&simulator, &["enrich", "-o", target, "fixtures/eve.json"]).status.code(), Some(0));
    assert_eq!(records(&std::fs::read(target).unwrap()).len(), 51);
    assert_eq!(
        home.ask(&simulator, &["lookup", "203.0.113.250", "-o", target, "--append"]).status.code(),
        Some(0)
    );
    assert_eq!(records(&std::fs::read(target).unwrap()).len(), 52);
}

#[test]
fn nobody_to_ask_says_which_keys_were_looked_for() {
    let output = Home::new().run(&["enrich", "fixtures/eve.json"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    for word in ["ABUSEIPDB_API_KEY", "VT_API_KEY", "--simulate"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_proxy_is_never_used_for_loopback() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let mut command = home.sift(&["lookup", "203.0.113.7", "-f", "ndjson"]);
    let output = simulator
        .point(&mut command)
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), count(&records(&output.stdout), "status", "ok")),
        (Some(0), 1),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_run_that_waits_for_its_input_ends_at_once_on_a_signal() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    for (kind, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let mut command = home.sift(&["enrich", "-"]);
        let mut child =
            simulator.point(&mut command).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Held: waiting for a child closes its input, and an input that ends first ends the run in success.
        let _input = child.stdin.take();
        // It says that it reads before it does, and listens for signals before that.
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        let began = Instant::now();
        signal(&child, kind);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(began.elapsed() < Duration::from_secs(3));
    }
}

#[test]
fn what_is_read_is_never_written_over() {
    let home = Home::new();
    let file = home.put("list", &list(3));
    let name = file.to_str().unwrap();
    for args in [vec!["extract", name, "-o", name], vec!["enrich", "--simulate", name, "-o", name]] {
        let output = home.run(&args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), list(3));
    }
}

#[test]
fn a_device_stays_a_device() {
    let home = Home::new();
    let file = home.put("list", &list(3));
    let fifo = home.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::read_to_string(fifo).unwrap())
    };
    let name = fifo.to_str().unwrap();
    assert_eq!(
        home.run(&["-q", "extract", "--no-context", file.to_str().unwrap(), "-o", name]).status.code(),
        Some(0)
    );
    assert_eq!(reader.join().unwrap(), "2001:db8::\n2001:db8::1\n2001:db8::2\n");
    assert!(!std::fs::metadata(&fifo).unwrap().is_file());
}

#[test]
fn an_unwritable_stderr_costs_no_record() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let file = home.put("list", &list(10));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = home.sift(&["enrich", file.to_str().unwrap()]);
    let output = simulator.point(&mut command).stderr(full).output().unwrap();
    assert_eq!((output.status.code(), records(&output.stdout).len()), (Some(0), 10));
}

/// What was never connected has not left this host, and the summary does not say so.
#[test]
fn an_address_counts_as_sent_once_there_was_a_connection() {
    let home = Home::new();
    // Bound and let go: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told = home.path().join("summary.json");
    let output = home
        .sift(&["lookup", "203.0.113.7", "--retries", "1", "--summary-file", told.to_str().unwrap()])
        .env("SIFT_ABUSEIPDB_BASE_URL", format!("http://127.0.0.1:{port}"))
        .env("ABUSEIPDB_API_KEY", "fake")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("abuseipdb  no requests, 1 without a connection"),
        "{}",
        stderr(&output)
    );
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    let counts = &summary["providers"]["abuseipdb"];
    assert_eq!((counts["requests"].as_u64(), counts["sent"].as_u64()), (Some(0), Some(0)), "{counts}");
    assert_eq!(counts["errors"]["connection"], 1, "{counts}");
}

/// The tip that comes with an answer that cannot be read leads to what the provider sent.
#[test]
fn a_reply_that_cannot_be_read_is_shown_to_who_looks_closer() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[[providers.abuseipdb.faults]]\nkind = 'html'");
    let ask = |more: &[&str]| {
        let output = home.ask(&simulator, &[&["lookup", "203.0.113.7", "-p", "abuseipdb"], more].concat());
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        stderr(&output)
    };
    let said = ask(&[]);
    assert!(said.contains("tip: see what it sends: sift lookup 203.0.113.7 -p abuseipdb -vv"), "{said}");
    assert!(!said.contains("<!DOCTYPE html>"), "{said}");
    let said = ask(&["-vv"]);
    assert!(said.contains("nothing can be made of the reply") && said.contains("<!DOCTYPE html>"), "{said}");
}
