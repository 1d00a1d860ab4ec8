//! The README, run: every command in it, in order, in one fresh home, against what it says comes out.
//!
//! A block fenced as `console` holds commands (after `$ `) and what a person sees of them on a terminal 100 columns wide.
//! There `…` stands for any text, and on a line of its own for any lines. `cron` and `toml` blocks are run too, each in its
//! own way. `sh` blocks build the program or need the
//! network, and can only be looked at.

use super::harness::{Home, Simulator};
use super::is_here;
use super::screen::{Terminal, run};
use serde_json::json;
use std::process::Command;

const README: &str = include_str!("../../README.md");

/// The blocks of one kind, each with the line it begins in.
fn blocks(kind: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in (1..).zip(README.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((number, kind, String::new())),
            (Some(_), Some(_)) => {
                let (number, found, text) = open.take().unwrap();
                if found == kind {
                    blocks.push((number, text));
                }
            }
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none());
    blocks
}

/// Whether the text is what is expected, where `…` is anything.
fn fits(expected: &str, text: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The same for lines, where a line `…` is any number of them.
fn all_fit(expected: &[&str], lines: &[&str]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((&"…", below)), _) => (0..=lines.len()).any(|skipped| all_fit(below, &lines[skipped..])),
        (Some((first, below)), Some((line, rest))) => fits(first, line) && all_fit(below, rest),
        _ => false,
    }
}

#[test]
fn an_ellipsis_is_anything() {
    for (expected, text, fit) in [
        ("took … s", "took 4.8 s", true),
        ("took … s", "took 4.8 min", false),
        ("a", "ab", false),
        ("…b…d", "abcd", true),
    ] {
        assert_eq!(fits(expected, text), fit, "{expected} {text}");
    }
    assert!(all_fit(&["a", "…", "d"], &["a", "b", "c", "d"]));
    assert!(!all_fit(&["a", "…", "d"], &["a", "b", "c"]));
}

/// A home as a new user has it, with `sift` in the path and the repository's example at hand.
struct Reader {
    home: Home,
    simulator: Simulator,
}

impl Reader {
    fn new() -> Self {
        let home = Home::new();
        let simulator = Simulator::start(&home, "[answers]\n'203.0.113.7' = 'malicious'\n");
        let eve = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/eve.json")).unwrap();
        home.put("fixtures/eve.json", &eve);
        let sound: String = eve.lines().take(20).fold(String::new(), |text, line| text + line + "\n");
        home.put("suricata/eve.json", &sound);
        home.put("log/.keep", "");
        home.put("bin/.keep", "");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sift"), home.path().join("bin/sift")).unwrap();
        Self { home, simulator }
    }

    fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().args(["-c", line]).current_dir(self.home.path());
        shell.env("PATH", format!("{}/bin:/usr/local/bin:/usr/bin:/bin", self.home.path().display()));
        shell.env("HOME", self.home.path());
        for provider in ["ABUSEIPDB", "VIRUSTOTAL", "SHODAN", "INTERNETDB"] {
            shell.env(format!("SIFT_{provider}_BASE_URL"), &self.simulator.url);
        }
        shell
    }

    /// What is seen on a terminal.
    fn see(&self, line: &str) -> String {
        let more = json!({ "cwd": self.home.path(), "type": [["(not shown): ", "fake-key\r"]] });
        let shown = run(&self.home, &self.shell(line), &more);
        let text = shown.lines(Terminal::Cuts).join("\n");
        text.trim_end().replace(self.home.path().to_str().unwrap(), "/home/ana")
    }
}

#[test]
fn every_command_gives_what_it_says() {
    if !is_here("python3") || !is_here("jq") {
        return;
    }
    let reader = Reader::new();
    let mut faults = Vec::new();
    let mut commands = 0;
    for (number, block) in blocks("console") {
        for part in format!("\n{block}").split("\n$ ").skip(1) {
            let (line, expected) = part.split_once('\n').unwrap_or((part, ""));
            commands += 1;
            let seen = reader.see(line);
            let expected: Vec<&str> = expected.trim_end().lines().collect();
            if !all_fit(&expected, &seen.lines().collect::<Vec<_>>()) {
                faults.push(format!("README.md:{number}: $ {line}\n{seen}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(commands > 20, "{commands}");
    assert!(
        blocks("console")
            .iter()
            .map(|(_, text)| text.matches("| jq ").count() + text.matches("$ jq ").count())
            .sum::<usize>()
            >= 10
    );
}

#[test]
fn the_line_for_cron_runs_and_is_silent() {
    if !is_here("flock") {
        return;
    }
    let reader = Reader::new();
    let [(_, block)] = &blocks("cron")[..] else { panic!("one crontab") };
    let line = block.lines().find(|line| line.starts_with("*/")).unwrap();
    let command = line.split_whitespace().skip(6).collect::<Vec<_>>().join(" ");
    let at = |folder: &str| format!("{}/{folder}", reader.home.path().display());
    let command = command.replace("/run/", &at("")).replace("/var/log/sift/", &at("log/"));
    let command = command.replace("/var/log/suricata/", &at("suricata/"));
    for _ in 0..2 {
        let output = reader.shell(&command).env("ABUSEIPDB_API_KEY", "fake").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{command}");
        assert!(output.stdout.is_empty());
    }
    let records = std::fs::read(reader.home.path().join("log/results.ndjson")).unwrap();
    assert!(String::from_utf8_lossy(&records).lines().count() > 10);
}

/// `own_providers.rs` asks it.
#[test]
fn the_provider_in_15_lines_has_no_more() {
    let [(_, block)] = &blocks("toml")[..] else { panic!("one definition") };
    assert!(block.lines().count() <= 15, "{block}");
}

#[test]
fn what_cannot_be_run_here_builds_or_needs_the_network() {
    for (number, block) in blocks("sh") {
        assert!(
            block.lines().all(|line| line.starts_with("cargo ") || line.starts_with("sift lists update ")),
            "README.md:{number}: {block}"
        );
    }
    let kinds = ["console", "cron", "toml", "sh"].iter().map(|kind| blocks(kind).len()).sum::<usize>();
    assert_eq!(README.matches("\n```").count(), kinds * 2, "every block is of a kind that is looked at");
}
