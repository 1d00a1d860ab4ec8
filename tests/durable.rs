//! What was paid for is never lost, and never paid for twice: the built binary, killed, run beside itself, and given a store
//! that cannot be used.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test that kills processes waits for them, and writes broken files"
)]

mod harness;

use harness::{Home, Simulator, count, list, records, stderr};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const QUICK: &str = "[providers.abuseipdb]\nlatency = '3ms'\n";

fn start(home: &Home, simulator: &Simulator, args: &[&str], quota: &str) -> Child {
    let mut command = home.sift(args);
    simulator.point(&mut command).env("SIFT_ABUSEIPDB_DAILY", quota);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn requests(simulator: &Simulator) -> u64 {
    simulator.ledger()["total"]["requests"].as_u64().unwrap()
}

/// Look-ups that were made more than once, each counted as often as it was too many.
fn repeated(simulator: &Simulator) -> u64 {
    simulator.ledger()["providers"]["abuseipdb"]["asked_again"].as_u64().unwrap()
}

#[test]
fn a_run_that_is_killed_again_and_again_is_resumed_by_running_it() {
    let home = Home::new();
    let simulator = Simulator::start(&home, QUICK);
    let file = home.put("list", &list(1_500));
    let args = ["enrich", "--limit", "0", "-c", "8", file.to_str().unwrap()];
    let mut kills = 0;
    for millis in [150, 230, 310, 190, 270] {
        let mut run = start(&home, &simulator, &args, "1000000");
        std::thread::sleep(Duration::from_millis(millis));
        kills += u64::from(run.try_wait().unwrap().is_none());
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let last = start(&home, &simulator, &args, "1000000").wait_with_output().unwrap();
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
    let records = records(&last.stdout);
    assert_eq!((records.len(), count(&records, "status", "ok")), (1_500, 1_500));
    // At most what was in flight is asked twice for each kill.
    assert!(kills > 0);
    assert!(requests(&simulator) <= 1_500 + 8 * kills, "{} requests, {kills} kills", requests(&simulator));
    assert!(repeated(&simulator) <= 8 * kills);
    let again = start(&home, &simulator, &args, "1000000").wait_with_output().unwrap();
    let hits = harness::records(&again.stdout)
        .iter()
        .filter(|record| record["providers"]["abuseipdb"]["cache"] == "hit")
        .count();
    assert_eq!(hits, 1_500, "{}", stderr(&again));
}

#[test]
fn four_processes_on_one_key_spend_its_quota_to_the_last_look_up_and_no_further() {
    let home = Home::new();
    // A provider that says nothing of its count: ours alone is to hold.
    let scenario = "[providers.virustotal]\nlatency = '3ms'\nsize = 'small'\n";
    let simulator = Simulator::start(&home, scenario);
    let list = list(1_200);
    let runs: Vec<Child> = (0..4)
        .map(|n| {
            let part: Vec<&str> = list.lines().skip(n * 300).take(300).collect();
            let file = home.put(&format!("list{n}"), &(part.join("\n") + "\n"));
            let mut command = home.sift(&["enrich", "-p", "virustotal", file.to_str().unwrap()]);
            simulator
                .point(&mut command)
                .env("VT_API_KEY", "fake")
                .env("SIFT_VIRUSTOTAL_RATE", "100000/s")
                .env("SIFT_VIRUSTOTAL_DAILY", "500");
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut answered = 0;
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let records = records(&output.stdout);
        assert_eq!(records.len(), 300, "{}", stderr(&output));
        answered += count(&records, "status", "ok");
        for record in records.iter().filter(|record| record["status"] == "error") {
            assert_eq!(record["error"]["type"], "quota_exhausted", "{record}");
            assert!(record["error"]["retry_at"].is_string(), "{record}");
        }
    }
    assert_eq!((answered, requests(&simulator)), (500, 500));
    assert_eq!(simulator.ledger()["total"]["statuses"]["429"], Value::Null);
}

#[test]
fn the_same_addresses_in_two_processes_are_asked_about_once() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[providers.abuseipdb]\nlatency = '20ms'\n");
    let file = home.put("list", &list(300));
    // Each into a file: one that nobody reads would hold its claims for as long as its output is stuck.
    let out = |n: usize| home.path().join(format!("out{n}"));
    let runs: Vec<Child> = (0..3)
        .map(|n| {
            let out = out(n);
            let args = ["enrich", "-c", "8", "-o", out.to_str().unwrap(), file.to_str().unwrap()];
            start(&home, &simulator, &args, "1000000")
        })
        .collect();
    for (n, run) in runs.into_iter().enumerate() {
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let records = records(&std::fs::read(out(n)).unwrap());
        assert_eq!((records.len(), count(&records, "status", "ok")), (300, 300));
    }
    assert_eq!((requests(&simulator), repeated(&simulator)), (300, 0));
}

#[test]
fn a_dry_run_knows_what_a_run_will_ask() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '2ms'\n");
    let (half, whole) = (home.put("half", &list(40)), home.put("whole", &list(90)));
    let command = |args: &[&str]| {
        let mut command = home.sift(args);
        simulator
            .point(&mut command)
            .env("VT_API_KEY", "fake")
            .env("SHODAN_API_KEY", "fake")
            .env("SIFT_VIRUSTOTAL_RATE", "1000/s")
            .env("SIFT_SHODAN_RATE", "1000/s")
            .env("SIFT_VIRUSTOTAL_DAILY", "60")
            .env("SIFT_ABUSEIPDB_DAILY", "70");
        command
    };
    let before = command(&["enrich", half.to_str().unwrap()]).output().unwrap();
    assert_eq!(before.status.code(), Some(0), "{}", stderr(&before));
    let sent = |simulator: &Simulator| -> BTreeMap<String, u64> {
        let ledger = simulator.ledger();
        let providers = ledger["providers"].as_object().unwrap();
        providers.iter().map(|(name, report)| (name.clone(), report["requests"].as_u64().unwrap())).collect()
    };
    let first = sent(&simulator);
    let dry = command(&["enrich", "-n", "-f", "ndjson", whole.to_str().unwrap()]).output().unwrap();
    assert_eq!(dry.status.code(), Some(3), "{}", stderr(&dry));
    assert_eq!(sent(&simulator), first, "it sends nothing");
    let rows: Vec<Value> = String::from_utf8(dry.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|row: &Value| row["kind"] == "provider")
        .collect();
    let run = command(&["enrich", whole.to_str().unwrap()]).output().unwrap();
    assert_eq!(run.status.code(), Some(3), "{}", stderr(&run));
    let second = sent(&simulator);
    assert_eq!(rows.len(), 3);
    for row in rows {
        let name = row["provider"].as_str().unwrap();
        assert_eq!(row["from_cache"], 40, "{row}");
        assert_eq!(second[name] - first[name], row["requests"].as_u64().unwrap(), "{row}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_told_and_left_as_it_is() {
    let home = Home::new();
    let simulator = Simulator::start(&home, QUICK);
    let lookup = |more: &[&str]| home.ask(&simulator, &[&["lookup", "203.0.113.7"], more].concat());
    assert_eq!(lookup(&[]).status.code(), Some(0));
    let file = home.path().join("state/sift/sift.db");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let sound = std::fs::read(&file).unwrap();
    let mut newer = sound.clone();
    // The user_version, SQLite's file format, section 1.3.
    newer[60..64].copy_from_slice(&9_999_u32.to_be_bytes());
    let cases: [(&str, Vec<u8>); 4] = [
        ("damaged", sound[..sound.len() / 2 + 100].to_vec()),
        ("damaged", sound[..50].to_vec()),
        ("damaged", b"no store at all, and longer than a header of one hundred bytes is: ".repeat(3)),
        ("version", newer),
    ];
    for (word, bytes) in cases {
        std::fs::write(&file, &bytes).unwrap();
        let output = lookup(&[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{word}: {said}");
        assert!(said.contains(word) && said.contains("--no-store") && said.contains("sift.db"), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{word}: the file is left as it is");
        let without = lookup(&["--no-store"]);
        assert_eq!(without.status.code(), Some(0), "{}", stderr(&without));
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    assert_eq!(requests(&simulator), 5);
}

#[test]
fn a_full_disk_in_mid_run_ends_it_and_tells_every_answer() {
    // The limit on the size of files stands in for a small disk: the store cannot grow, the pipe can.
    let home = Home::new();
    let simulator = Simulator::start(&home, QUICK);
    let file = home.put("list", &list(2_000));
    let sift = home.sift(&["enrich", "--limit", "0", file.to_str().unwrap()]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 300; exec \"$0\" \"$@\""])
        .arg(sift.get_program())
        .args(sift.get_args());
    shell.env_clear().current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, value) in sift.get_envs() {
        shell.env(name, value.unwrap());
    }
    simulator.point(&mut shell).env("SIFT_ABUSEIPDB_DAILY", "1000000").env("PATH", "/usr/bin:/bin");
    let output = shell.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("sift.db"), "{said}");
    let records = records(&output.stdout);
    assert_eq!(records.len(), 2_000);
    let answered = count(&records, "status", "ok");
    // Every answer that came was told, and no new attempt was made after the first that could not be kept.
    assert!(answered > 0 && answered < 2_000, "{answered}");
    let asked = usize::try_from(requests(&simulator)).unwrap();
    assert!(asked <= answered + 16, "{asked} {answered}");
}
