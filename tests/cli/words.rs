//! What is said on standard error, in which form, and how loudly.

use super::harness::{Home, Simulator, stderr};
use super::stdout;
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;

const FAILING: &str = "\
[providers.abuseipdb]
key = 'another'
[[providers.virustotal.faults]]
kind = 'status'
status = 500
";

fn failing(home: &Home, simulator: &Simulator, more: &[&str]) -> (Option<i32>, String) {
    let args = [&["enrich", "fixtures/eve.json", "--retries", "0"], more].concat();
    let mut command = home.sift(&args);
    simulator.point(&mut command).env("VT_API_KEY", "fake").env("SIFT_VIRUSTOTAL_RATE", "1000/s");
    command.env("SIFT_BREAKER_OPEN_FOR", "1s");
    let output = command.output().unwrap();
    (output.status.code(), stderr(&output))
}

#[test]
fn the_same_failure_is_said_once_with_a_count() {
    let home = Home::new();
    let simulator = Simulator::start(&home, FAILING);
    let (code, text) = failing(&home, &simulator, &[]);
    assert_eq!(code, Some(4), "{text}");
    let refused: Vec<&str> = text.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(
        refused,
        ["error: abuseipdb does not accept the API key (401); 39 look-ups not answered"],
        "{text}"
    );
    assert!(
        text.contains(
            "  key from: ABUSEIPDB_API_KEY\n  tip: check it with 'sift credentials check abuseipdb'"
        )
    );
    // With -q there is no summary, so everything is said here; with -qq only what is an error.
    let (_, quiet) = failing(&home, &simulator, &["-q"]);
    let said: Vec<&str> = quiet.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(
        said.iter()
            .any(|line| line.starts_with("warning: virustotal: ") && line.contains("look-ups not answered")),
        "{quiet}"
    );
    assert!(!quiet.contains("asking") && !quiet.contains("took"), "{quiet}");
    let (_, quieter) = failing(&home, &simulator, &["-qq"]);
    assert!(quieter.lines().all(|line| line.starts_with("error:") || line.starts_with("  ")), "{quieter}");
}

#[test]
fn silent_on_success_with_q() {
    let home = Home::new();
    let output = home.run(&["lookup", "-q", "--simulate", "203.0.113.7"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn louder_by_steps() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let said = |more: &[&str]| {
        let output = home.ask(&simulator, &[&["lookup", "--refresh", "203.0.113.7"], more].concat());
        stderr(&output)
    };
    assert!(!said(&[]).contains("debug:"));
    assert!(!said(&["-v"]).contains("debug:"));
    assert!(said(&["-vv"]).contains("debug: reply provider=abuseipdb status=200"), "{}", said(&["-vv"]));
}

#[test]
fn json_lines_for_collectors() {
    let home = Home::new();
    let simulator = Simulator::start(&home, FAILING);
    let (_, text) = failing(&home, &simulator, &["-vv", "--log-format", "json"]);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["message"].is_string()));
    let refused = lines.iter().find(|line| line["level"] == "error").unwrap();
    assert_eq!(refused["key_from"], "ABUSEIPDB_API_KEY");
    let summary = lines.iter().find_map(|line| line.get("summary")).unwrap();
    assert_eq!(summary["records"]["error"], 39);
    assert!(lines.iter().any(|line| line["level"] == "debug" && line["provider"] == "abuseipdb"));
    // The variable and the configuration say the same.
    let output = home.sift(&["lookup", "nonsense"]).env("SIFT_LOG_FORMAT", "json").output().unwrap();
    assert!(stderr(&output).starts_with('{'));
    home.put("config/sift/config.toml", "[log]\nformat = \"json\"\n");
    let output = home.run(&["lookup", "nonsense", "--simulate"]);
    assert!(stderr(&output).starts_with('{'), "{}", stderr(&output));
}

#[test]
fn journal_priorities_where_stderr_is_the_journal() {
    let home = Home::new();
    let file = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(home.path().join("journal"))
        .unwrap();
    let metadata = file.metadata().unwrap();
    let stream = |inode: u64| format!("{}:{inode}", metadata.dev());
    let run = |variable: String| {
        let mut command = home.sift(&["lookup", "nonsense", "--color", "always"]);
        command.env("JOURNAL_STREAM", variable).stderr(file.try_clone().unwrap());
        file.set_len(0).unwrap();
        std::io::Seek::rewind(&mut &file).unwrap();
        command.status().unwrap();
        std::fs::read_to_string(home.path().join("journal")).unwrap()
    };
    let text = run(stream(metadata.ino()));
    assert!(text.starts_with("<3>error: 'nonsense' is no address\n<3>  tip: "), "{text}");
    // Inherited from a parent whose standard error is another: no priorities.
    assert!(run(stream(metadata.ino() + 1)).starts_with("\u{1b}[1;31merror:"));
}

#[test]
fn colour_by_flag_and_variable() {
    let home = Home::new();
    let is_colored = |args: &[&str], variables: &[(&str, &str)]| {
        let output = home.sift(args).envs(variables.iter().copied()).output().unwrap();
        (output.stdout.contains(&0x1b), output.stderr.contains(&0x1b))
    };
    let table = ["lookup", "--simulate", "203.0.113.7", "-f", "table"];
    let with = |more: &[&'static str]| [&table[..], more].concat();
    assert_eq!(is_colored(&table, &[]), (false, false));
    assert_eq!(is_colored(&table, &[("CLICOLOR_FORCE", "1")]), (true, false));
    assert_eq!(is_colored(&with(&["--color", "always"]), &[("NO_COLOR", "1")]), (true, false));
    assert_eq!(is_colored(&with(&["--color=never"]), &[("CLICOLOR_FORCE", "1")]), (false, false));
    let wrong = ["lookup", "nonsense"];
    assert_eq!(is_colored(&wrong, &[("CLICOLOR_FORCE", "1")]), (false, true));
    assert_eq!(is_colored(&wrong, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), (false, false));
    // The parser's own words follow the flag too.
    assert_eq!(is_colored(&["lookup", "--nonsense", "--color", "always"], &[]), (false, true));
    assert!(is_colored(&["--help", "--color", "always"], &[]).0);
}

#[test]
fn the_form_of_a_list_is_for_people_only_on_request() {
    let home = Home::new();
    let list = |form: &str| stdout(&home.run(&["providers", "list", "-f", form]));
    assert!(list("table").starts_with("provider "));
    assert!(list("auto").lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn one_is_said_in_the_singular() {
    let home = Home::new();
    let file = home.put("list", "9.9.9.9\n10.0.0.1\n");
    let said = |command: &str, more: &[&str]| {
        let args = [&[command, file.to_str().unwrap()], more].concat();
        stderr(&home.sift(&args).env("ABUSEIPDB_API_KEY", "fake").output().unwrap())
    };
    let extracted = said("extract", &[]);
    assert!(extracted.starts_with("2 addresses (1 global, 1 private) in 2 lines"), "{extracted}");
    let rehearsed = said("enrich", &["--simulate"]);
    assert!(rehearsed.contains("; 1 never leaves this host\n"), "{rehearsed}");
    let added = said("enqueue", &["--limit", "1"]);
    assert!(added.contains("added 1 task; 1 address is not asked about"), "{added}");
    let again = said("enqueue", &["--limit", "1"]);
    assert!(again.contains("added no tasks; 1 was in the queue already"), "{again}");
    let dry = home.run(&["enrich", "-n", "--simulate", file.to_str().unwrap()]);
    assert!(stdout(&dry).contains("; 1 private stays here\n"), "{}", stdout(&dry));
}
