//! Progress on a pseudo-terminal: it draws, bears a change of the window's size, and leaves no line behind.

use super::harness::{Home, Simulator};
use super::is_here;
use super::screen::{Shown, Terminal, run};
use serde_json::json;
use std::process::Command;

/// Slow enough for some frames, with a failure to say in the middle of them.
const SLOW: &str = "\
[every]
latency = '60ms'
[[providers.abuseipdb.faults]]
kind = 'status'
status = 429
retry_after = '3s'
from = 12
first = 1
";

fn asking(home: &Home, simulator: &Simulator, more: &[&str]) -> Command {
    let mut command = home.sift(&[&["enrich", "fixtures/eve.json", "-c", "2"], more].concat());
    simulator.point(&mut command);
    command
}

/// Nothing of the block is left, and everything else is whole.
fn is_clean(shown: &Shown, terminal: Terminal) -> Vec<String> {
    let lines = shown.lines(terminal);
    let text = lines.join("\n");
    assert!(!text.contains("of 39 addresses") && !text.contains("abuseipdb  3"), "{terminal:?}\n{text}");
    assert_eq!(
        lines.last().map(String::as_str),
        Some(""),
        "{terminal:?}: the cursor is on a fresh line\n{text}"
    );
    lines
}

#[test]
fn it_draws_and_leaves_nothing_behind_whatever_the_window_does() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let simulator = Simulator::start(&home, SLOW);
    let sizes =
        json!([[0.5, 24, 60], [0.9, 10, 37], [1.3, 30, 120], [1.7, 4, 50], [2.1, 24, 80], [2.5, 24, 20]]);
    let shown = run(&home, &asking(&home, &simulator, &["-v"]), &json!({ "resize": sizes }));
    assert_eq!(shown.status, 0, "{}", shown.raw());
    let frames = shown.raw().matches("of 39 addresses").count();
    assert!(frames > 10, "{frames} frames");
    assert!(shown.raw().contains("it asked for a pause, "), "{}", shown.raw());
    for terminal in [Terminal::Reflows, Terminal::Cuts] {
        let lines = is_clean(&shown, terminal);
        let is_row = |line: &&String| {
            line.starts_with(|c: char| c.is_ascii_digit()) && !line.starts_with("51 addresses")
        };
        assert_eq!(
            lines.iter().filter(is_row).count(),
            39,
            "{terminal:?}: every row is there
{}",
            lines.join(
                "
"
            )
        );
        let held = lines.iter().filter(|line| line.starts_with("info: 429: the lane holds off")).count();
        assert_eq!(held, 1, "{terminal:?}: a line of the log is whole\n{}", lines.join("\n"));
        assert!(lines.iter().any(|line| line.starts_with("took ")), "{}", lines.join("\n"));
    }
}

#[test]
fn a_run_that_is_stopped_leaves_nothing_behind_either() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let simulator = Simulator::start(&home, SLOW);
    let stop = json!({ "type": [[" of 39 addresses", "\u{3}"]] });
    let shown = run(&home, &asking(&home, &simulator, &[]), &stop);
    assert_eq!(shown.status, 130, "{}", shown.raw());
    for terminal in [Terminal::Reflows, Terminal::Cuts] {
        let lines = is_clean(&shown, terminal);
        assert!(lines.iter().any(|line| line.contains("stopped by SIGINT")), "{}", lines.join("\n"));
    }
}

#[test]
fn standard_error_in_a_file_holds_neither_progress_nor_escapes() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let simulator = Simulator::start(&home, SLOW);
    let file = home.path().join("stderr");
    let shown = run(&home, &asking(&home, &simulator, &[]), &json!({ "stderr": file }));
    assert_eq!(shown.status, 0);
    let said = std::fs::read_to_string(&file).unwrap();
    assert!(!said.contains('\u{1b}') && !said.contains('\r') && !said.contains("of 39 addresses"), "{said}");
    assert!(shown.raw().contains("\u{1b}[1mIP"), "the table on the terminal is coloured: {}", shown.raw());
}

#[test]
fn a_reader_on_the_same_terminal_is_given_its_turn() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let simulator = Simulator::start(&home, SLOW);
    let asking = asking(&home, &simulator, &[]);
    let mut shell = Command::new("/bin/sh");
    let args = asking.get_args().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    shell.args(["-c", &format!("{} {args} | cat", env!("CARGO_BIN_EXE_sift"))]);
    shell
        .envs(asking.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/usr/bin:/bin");
    let shown = run(&home, &shell, &json!({}));
    assert!(shown.raw().matches("of 39 addresses").count() > 3, "{}", shown.raw());
    let lines = is_clean(&shown, Terminal::Reflows);
    let records: Vec<&String> = lines.iter().filter(|line| line.contains("\"ip\"")).collect();
    assert_eq!(records.len(), 51);
    for record in records {
        assert!(serde_json::from_str::<serde_json::Value>(record).is_ok(), "torn: {record}");
    }
}

#[test]
fn none_when_it_is_not_wanted() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let simulator = Simulator::start(&home, "[every]\nlatency = '30ms'");
    for more in [&["-q"][..], &["--progress", "never"], &["--log-format", "json"]] {
        let shown = run(&home, &asking(&home, &simulator, more), &json!({}));
        assert!(!shown.raw().contains("of 39 addresses"), "{more:?}: {}", shown.raw());
    }
}
