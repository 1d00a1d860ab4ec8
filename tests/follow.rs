//! `--follow` as a user runs it: logs that grow and rotate under the built binary, and signals that end it.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod harness;

use harness::{Home, Simulator, count, records, stderr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, rename};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for anything: a loaded machine is slow, and a test that hangs tells nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than a look at the files takes to come: whatever has not come by then does not come.
const QUIET: Duration = Duration::from_millis(600);

/// An event between a documentation address and a host inside.
fn event(ip: &str) -> String {
    let alert = "\"alert\":{\"severity\":1,\"signature\":\"ET SCAN a scan\",\"signature_id\":2001219}";
    format!(
        "{{\"timestamp\":\"2025-01-31T08:02:11.402+0000\",\"event_type\":\"alert\",\"src_ip\":\"{ip}\",\"dest_ip\":\"10.0.0.1\",{alert}}}\n"
    )
}

/// A log, and whoever writes it.
struct Log {
    path: PathBuf,
    writer: File,
    rotations: u32,
}

impl Log {
    fn new(home: &Home) -> Self {
        let path = home.path().join("eve.json");
        let writer = Self::open(&path);
        Self { path, writer, rotations: 0 }
    }

    fn open(path: &PathBuf) -> File {
        OpenOptions::new().append(true).create(true).open(path).unwrap()
    }

    fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).unwrap();
    }

    /// As logrotate does without copytruncate.
    fn rename(&mut self) {
        self.rotations += 1;
        rename(&self.path, self.path.with_extension(format!("json.{}", self.rotations))).unwrap();
        self.writer = Self::open(&self.path);
    }

    /// As logrotate does with it.
    fn copytruncate(&mut self) {
        std::fs::copy(&self.path, self.path.with_extension("json.copy")).unwrap();
        self.writer.set_len(0).unwrap();
    }
}

/// `sift … --follow`, its lines as they come.
struct Following {
    child: Child,
    lines: Receiver<String>,
    words: Receiver<String>,
}

impl Following {
    fn start(home: &Home, simulator: Option<&Simulator>, args: &[&str]) -> Self {
        let mut command = home.sift(args);
        if let Some(simulator) = simulator {
            simulator.point(&mut command);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = reader(child.stdout.take().unwrap());
        let words = reader(child.stderr.take().unwrap());
        Self { child, lines, words }
    }

    /// The next line.
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// The next line of standard error that holds this.
    fn word(&self, text: &str) -> String {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let line = self.words.recv_timeout(PATIENCE).unwrap();
            if line.contains(text) {
                return line;
            }
        }
        panic!("{text} was not said")
    }

    fn is_silent(&self) -> bool {
        self.lines.recv_timeout(QUIET).is_err()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The status it ends with, what was not read yet of its lines, and what it said.
    fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let lines = self.lines.iter().collect();
        let words: Vec<String> = self.words.iter().collect();
        (self.child.wait().unwrap().code(), lines, words.join("\n"))
    }
}

/// Lines on a thread of their own.
fn reader(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (lines, received) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    received
}

fn ip(line: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap()["ip"].as_str().unwrap().to_owned()
}

const EXTRACT: [&str; 3] = ["extract", "--follow", "--no-context"];

fn extract(home: &Home, log: &Log) -> Following {
    let mut args = EXTRACT.to_vec();
    args.push(log.path.to_str().unwrap());
    Following::start(home, None, &args)
}

#[test]
fn new_addresses_are_printed_as_they_come_and_seen_ones_are_not() {
    let home = Home::new();
    let mut log = Log::new(&home);
    log.write(&event("203.0.113.1"));
    let following = extract(&home, &log);
    assert_eq!([following.line(), following.line()], ["203.0.113.1", "10.0.0.1"]);
    log.write(&event("203.0.113.2"));
    assert_eq!(following.line(), "203.0.113.2");
    log.write(&event("203.0.113.1"));
    assert!(following.is_silent(), "one that was seen is not new");
    log.write(&event("203.0.113.3"));
    assert_eq!(following.line(), "203.0.113.3");
    following.signal(Signal::INT);
    let (code, rest, words) = following.end();
    assert_eq!((code, rest.len()), (Some(130), 0), "{words}");
    assert!(words.contains("4 addresses"), "{words}");
}

#[test]
fn with_context_each_line_says_what_had_been_seen() {
    let home = Home::new();
    let mut log = Log::new(&home);
    let following = Following::start(&home, None, &["extract", "--follow", log.path.to_str().unwrap()]);
    log.write(&(event("203.0.113.1") + &event("203.0.113.1")));
    let line: Value = serde_json::from_str(&following.line()).unwrap();
    assert_eq!((&line["ip"], &line["v"]), (&"203.0.113.1".into(), &1.into()));
    assert_eq!(line["seen"]["signatures"][0]["id"], 2_001_219);
    following.signal(Signal::TERM);
    assert_eq!(following.end().0, Some(143));
}

#[test]
fn half_a_line_waits_for_its_end_and_is_taken_at_ours() {
    let home = Home::new();
    let mut log = Log::new(&home);
    let following = extract(&home, &log);
    let text = event("203.0.113.1");
    let (half, rest) = text.split_at(60);
    log.write(half);
    assert!(following.is_silent());
    log.write(rest);
    assert_eq!([following.line(), following.line()], ["203.0.113.1", "10.0.0.1"]);
    log.write(event("203.0.113.2").trim_end());
    assert!(following.is_silent());
    following.signal(Signal::INT);
    let (code, rest, words) = following.end();
    assert_eq!((code, rest), (Some(130), vec!["203.0.113.2".to_owned()]), "{words}");
}

#[test]
fn rotations_lose_nothing_and_double_nothing() {
    let home = Home::new();
    let mut log = Log::new(&home);
    log.write(&event("203.0.113.1"));
    let following = extract(&home, &log);
    assert_eq!([following.line(), following.line()], ["203.0.113.1", "10.0.0.1"]);
    // The last line before the rotation may be unread when it comes.
    log.write(&event("203.0.113.2"));
    log.rename();
    log.write(&event("203.0.113.3"));
    assert_eq!([following.line(), following.line()], ["203.0.113.2", "203.0.113.3"]);
    log.copytruncate();
    log.write(&event("203.0.113.4"));
    assert_eq!(following.line(), "203.0.113.4");
    assert!(following.word("cut back").contains("once so far"));
    // Cut back and grown beyond where it stood before anybody looked.
    log.writer.set_len(0).unwrap();
    log.write(&(event("203.0.113.5") + &event("203.0.113.6") + &event("203.0.113.4")));
    assert_eq!([following.line(), following.line()], ["203.0.113.5", "203.0.113.6"]);
    log.rename();
    log.write(&event("203.0.113.7"));
    assert_eq!(following.line(), "203.0.113.7");
    following.signal(Signal::TERM);
    assert_eq!(following.end().0, Some(143));
}

#[test]
fn a_file_that_is_not_there_yet_is_awaited() {
    let home = Home::new();
    let path = home.path().join("eve.json");
    let following = Following::start(&home, None, &["extract", "--follow", path.to_str().unwrap()]);
    following.word("is not there yet");
    Log::new(&home).write(&event("203.0.113.1"));
    assert_eq!(ip(&following.line()), "203.0.113.1");
    following.signal(Signal::INT);
    assert_eq!(following.end().0, Some(130));
}

#[test]
fn nobody_reading_ends_it_in_success_even_while_the_log_is_quiet() {
    let home = Home::new();
    let mut log = Log::new(&home);
    log.write(&event("203.0.113.1"));
    let mut child = home
        .sift(&["extract", "--follow", log.path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 20];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = wait(child);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

fn wait(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "it does not end");
        std::thread::yield_now();
    }
    child.wait_with_output().unwrap()
}

#[test]
fn what_cannot_be_read_is_said_as_it_comes_and_not_every_time() {
    let home = Home::new();
    let mut log = Log::new(&home);
    log.write(&event("203.0.113.1").repeat(20));
    let following = extract(&home, &log);
    assert_eq!([following.line(), following.line()], ["203.0.113.1", "10.0.0.1"]);
    log.write("{\"broken\n");
    assert!(following.word("could not be read").contains("1 of 21 lines"));
    for _ in 0..7 {
        log.write("{\"broken\n");
    }
    log.write(&event("203.0.113.2"));
    assert_eq!(following.line(), "203.0.113.2");
    following.signal(Signal::INT);
    let (code, _, words) = following.end();
    assert_eq!(code, Some(130));
    let said = words.lines().filter(|line| line.contains("warning") && line.contains("could not be read"));
    assert!((1..=4).contains(&said.count()), "{words}");
}

#[test]
fn what_is_no_log_is_refused_also_when_it_comes_later() {
    let home = Home::new();
    let gz = home.path().join("eve.json.gz");
    sift::output::write_whole(&gz, b"\x1f\x8b\x08\0\0\0\0\0\0\x03", 0o600).unwrap();
    home.put("list", "192.0.2.1\n192.0.2.2\n");
    home.put("array", "[{\"src_ip\":\"192.0.2.1\"},\n{}]\n");
    let wrapped = "{\"data\":{\"event_type\":\"alert\",\"src_ip\":\"192.0.2.1\"}}\n";
    home.put("wazuh", wrapped);
    let folder = home.path().display().to_string();
    for command in ["extract", "enrich"] {
        for (name, code, word) in [
            ("eve.json.gz", 2, "compressed"),
            ("list", 2, "a list"),
            ("array", 1, "one JSON array"),
            ("wazuh", 1, "--event-path data"),
            ("", 1, "is a directory"),
        ] {
            let path = format!("{folder}/{name}");
            let mut args = vec![command, "--follow", &path];
            args.extend((command == "enrich").then_some("--simulate"));
            let output =
                wait(home.sift(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{command} {name}: {said}");
            assert!(said.contains(word), "{command} {name}: {said}");
        }
    }
    let later = format!("{folder}/later");
    let following = Following::start(&home, None, &["extract", "--follow", &later]);
    following.word("is not there yet");
    home.put("later", wrapped);
    let (code, _, words) = following.end();
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("--event-path data"), "{words}");
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let home = Home::new();
    let log = Log::new(&home);
    let path = log.path.to_str().unwrap();
    home.put("sorted.toml", "[output]\nsort = 'rank'\n");
    let config = home.path().join("sorted.toml").display().to_string();
    for (args, word) in [
        (vec!["extract", "--follow"], "needs a FILE"),
        (vec!["extract", "--follow", "-"], "not standard input"),
        (vec!["extract", "--follow", "--sort", "rank", path], "--sort rank"),
        (vec!["extract", "--follow", "-o", "x", path], "--output"),
        (vec!["extract", "--follow", "--input-format", "list", path], "no list"),
        (vec!["enrich", "--simulate", "--follow"], "needs a FILE"),
        (vec!["enrich", "--simulate", "--follow", "-"], "not standard input"),
        (vec!["enrich", "--simulate", "--follow", "-n", path], "--dry-run"),
        (vec!["enrich", "--simulate", "--follow", "--sort", "input", path], "--sort input"),
        (vec!["enrich", "--simulate", "--follow", "--config", &config, path], "--sort rank"),
        (vec!["enrich", "--simulate", "--follow", "-f", "json", path], "--format json"),
        (vec!["enrich", "--simulate", "--follow", "-o", "x", path], "--append"),
        (vec!["lookup", "--follow", "203.0.113.7"], "--follow"),
    ] {
        let output = home.run(&args);
        let said = stderr(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains(word), "{args:?}: {said}");
    }
}

fn enrich(home: &Home, simulator: &Simulator, log: &Log, more: &[&str]) -> Following {
    let mut args = vec!["enrich", "--follow", "-p", "abuseipdb", log.path.to_str().unwrap()];
    args.extend(more);
    Following::start(home, Some(simulator), &args)
}

#[test]
fn new_addresses_are_asked_about_as_they_come_and_once() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '2ms'");
    let mut log = Log::new(&home);
    log.write(&event("203.0.113.1"));
    let following = enrich(&home, &simulator, &log, &[]);
    let mut lines = vec![following.line(), following.line()];
    log.write(&(event("203.0.113.1") + &event("203.0.113.2")));
    lines.push(following.line());
    log.rename();
    log.write(&(event("203.0.113.2") + &event("203.0.113.3")));
    lines.push(following.line());
    assert!(following.is_silent());
    following.signal(Signal::INT);
    let (code, rest, words) = following.end();
    assert_eq!((code, rest.len()), (Some(130), 0), "{words}");
    let records = records((lines.join("\n") + "\n").as_bytes());
    assert_eq!((count(&records, "status", "ok"), count(&records, "status", "skipped")), (3, 1));
    assert_eq!(simulator.ledger()["total"]["requests"], 3);
    // Of the summary.
    for word in ["4 addresses in 5 events", "stopped by SIGINT", "3 requests, 3 addresses"] {
        assert!(words.contains(word), "{word}: {words}");
    }
}

#[test]
fn a_signal_leaves_a_record_for_each_that_was_not_asked_about() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '200ms'");
    let mut log = Log::new(&home);
    let many = 40_000;
    log.write(
        &(0..many).map(|n| event(&format!("2001:db8::{:x}:{:x}", n >> 16, n & 0xffff))).collect::<String>(),
    );
    let following = enrich(&home, &simulator, &log, &["--limit", "0", "--no-skipped"]);
    // The lanes take 16,384 at once; what waits beside them has its record, too.
    let lines: Vec<String> = (0..50).map(|_| following.line()).collect();
    following.signal(Signal::TERM);
    let (code, rest, words) = following.end();
    assert_eq!(code, Some(143), "{words}");
    let records = records(([lines, rest].concat().join("\n") + "\n").as_bytes());
    let (answered, cancelled) = (count(&records, "status", "ok"), count(&records, "error.type", "cancelled"));
    assert!(answered > 16 && answered + cancelled == records.len(), "{answered} {cancelled} {words}");
    assert!(records.len() > 16_384, "{}", records.len());
}

#[test]
fn its_time_ends_it_and_the_limit_bounds_what_is_asked() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '2ms'");
    let mut log = Log::new(&home);
    log.write(&(1..6).map(|n| event(&format!("203.0.113.{n}"))).collect::<String>());
    let limits = ["--limit", "3", "--max-time", "2s", "--deadline", "1s", "--timeout", "1s"];
    let following = enrich(&home, &simulator, &log, &limits);
    let (code, lines, words) = following.end();
    let records = records((lines.join("\n") + "\n").as_bytes());
    assert_eq!(
        (count(&records, "status", "ok"), count(&records, "error.type", "budget_exhausted"), records.len()),
        (3, 2, 6),
        "{words}"
    );
    assert_eq!((code, simulator.ledger()["total"]["requests"].as_u64()), (Some(3), Some(3)), "{words}");
}

#[test]
fn records_are_added_to_a_file_as_they_come() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '2ms'");
    let mut log = Log::new(&home);
    let file = home.path().join("out.ndjson");
    let following = enrich(&home, &simulator, &log, &["-o", file.to_str().unwrap(), "--append"]);
    log.write(&event("203.0.113.1"));
    let began = Instant::now();
    let two = || std::fs::read_to_string(&file).unwrap_or_default().lines().count() == 2;
    while !two() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    following.signal(Signal::INT);
    assert_eq!(following.end().0, Some(130));
    assert_eq!(records(&std::fs::read(&file).unwrap()).len(), 2);
}

/// A writer of 20,000 lines a second, each of an address of its own, and what comes out meanwhile.
struct Storm {
    log: Log,
    following: Following,
    written: u32,
    seen: HashMap<String, u32>,
}

impl Storm {
    /// Writes what is due.
    fn write(&mut self, until: u32) {
        let mut text = String::new();
        for n in self.written..until {
            text += &event(&format!("2001:db8::{:x}:{:x}", n >> 16, n & 0xffff));
        }
        self.log.write(&text);
        self.written = self.written.max(until);
    }

    /// Takes what comes out for so long, or until so many addresses came.
    fn take(&mut self, time: Duration, until: usize) {
        let began = Instant::now();
        while self.seen.len() < until {
            let left = time.saturating_sub(began.elapsed());
            let Ok(line) = self.following.lines.recv_timeout(left) else { return };
            *self.seen.entry(line).or_default() += 1;
        }
    }

    /// All that was written, and the one address inside.
    fn all(&self) -> usize {
        self.written as usize + 1
    }
}

#[test]
fn a_busy_writer_that_rotates_every_second_loses_nothing() {
    let home = Home::new();
    home.put("config/sift/config.toml", "[input]\nmax_unique = 10_000_000\n");
    let log = Log::new(&home);
    let following = extract(&home, &log);
    let mut storm = Storm { log, following, written: 0, seen: HashMap::new() };
    // Sixty in a trial by hand.
    let seconds =
        std::env::var("SIFT_STORM_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(4);
    let began = Instant::now();
    for second in 1..=seconds {
        let before = storm.all();
        while began.elapsed() < Duration::from_secs(second) {
            storm.write(u32::try_from(began.elapsed().as_millis() * 20).unwrap());
            storm.take(Duration::from_millis(5), usize::MAX);
        }
        // Two rotations must not come between two looks, however slow the machine is.
        storm.take(PATIENCE, before + 1);
        if second % 3 == 0 {
            // What is cut off unread is lost for everybody, so the writer pauses.
            storm.take(PATIENCE, storm.all());
            storm.log.copytruncate();
        } else {
            storm.log.rename();
        }
    }
    storm.take(PATIENCE, storm.all());
    storm.following.signal(Signal::INT);
    let all = storm.all();
    let Storm { following, written, seen, .. } = storm;
    let (code, rest, words) = following.end();
    assert_eq!((seen.len(), rest.len()), (all, 0), "{words}");
    assert!(written > 10_000 * u32::try_from(seconds).unwrap(), "{written}");
    assert!(seen.values().all(|&times| times == 1));
    assert_eq!(code, Some(130), "{words}");
    let told = sift::output::thousands(written.into());
    assert!(words.contains(&format!("in {told} events of {told} lines")), "{written}: {words}");
}
