//! Keys: every source, which wins, what is refused.

use super::harness::{Home, Simulator, stderr};
use super::{stdout, without};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

pub(crate) const KEY: &str = "k3y-of-no-one-else-7f1d";

/// A source of keys: its name, and what makes it hold [`KEY`] for VirusTotal.
pub(crate) type Source = (&'static str, fn(&Home, &mut Command));

/// Every source, strongest first.
pub(crate) const SOURCES: [Source; 6] = [
    ("SIFT_VIRUSTOTAL_API_KEY", |_, command| {
        command.env("SIFT_VIRUSTOTAL_API_KEY", KEY);
    }),
    ("VT_API_KEY", |_, command| {
        command.env("VT_API_KEY", KEY);
    }),
    ("HOME/credentials/virustotal", |home, command| {
        home.put("credentials/virustotal", KEY);
        command.env("CREDENTIALS_DIRECTORY", home.path().join("credentials"));
    }),
    ("HOME/key", |home, command| {
        let file = home.put("key", &format!("{KEY}\n"));
        command.env("SIFT_VIRUSTOTAL_API_KEY_FILE", file);
    }),
    ("command cat", |home, _| {
        let file = home.put("vault", &format!("{KEY}\nnotes below\n"));
        let settings =
            format!("[providers.virustotal]\napi_key_command = [\"cat\", \"{}\"]\n", file.display());
        home.put("config/sift/config.toml", &settings);
    }),
    ("HOME/config/sift/credentials.toml:1", |home, _| {
        home.put("config/sift/credentials.toml", &format!("virustotal = \"{KEY}\"\n"));
    }),
];

fn set(home: &Home, args: &[&str], input: &str) -> Output {
    let mut command = home.sift(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn each_source_is_found_and_its_key_is_sent() {
    for (name, arrange) in SOURCES {
        let home = Home::new();
        let simulator = Simulator::start(&home, &format!("[providers.virustotal]\nkey = '{KEY}'"));
        let mut command = home.sift(&["credentials", "check", "virustotal"]);
        arrange(&home, command.env("SIFT_VIRUSTOTAL_BASE_URL", &simulator.url));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let text = without(&home, &stdout(&output));
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!((words[1], words[2..].join(" ").as_str()), ("accepted", name), "{text}");
        assert_eq!(simulator.ledger()["providers"]["virustotal"]["requests"], 1);
    }
}

#[test]
fn the_stronger_source_wins() {
    let home = Home::new();
    let mut command = home.sift(&["credentials", "list", "-f", "ndjson"]);
    for (name, arrange) in SOURCES.iter().rev() {
        arrange(&home, &mut command);
        let shown = without(&home, &stdout(&command.output().unwrap()));
        let row = shown.lines().find(|line| line.contains("\"virustotal\"")).unwrap();
        assert_eq!(row, format!("{{\"provider\":\"virustotal\",\"key\":true,\"from\":\"{name}\"}}"));
    }
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let home = Home::new();
    let file = home.put("config/sift/credentials.toml", &format!("virustotal = \"{KEY}\"\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let output = home.run(&["lookup", "9.9.9.9", "-p", "virustotal"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"
    error: the API key of virustotal cannot be used: HOME/config/sift/credentials.toml can be read or written by others (mode 0640)
      tip: chmod 600 HOME/config/sift/credentials.toml
    ");
    // One that a group shares is the usual way for a machine's own key file, but not for everybody.
    let file = home.put("key", KEY);
    for (mode, expected) in [(0o640, Some(0)), (0o644, Some(2))] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = home.sift(&["enrich", "-n", "-p", "virustotal", "fixtures/eve.json"]);
        let output = command.env("SIFT_VIRUSTOTAL_API_KEY_FILE", &file).output().unwrap();
        assert_eq!(output.status.code(), expected, "{mode:o}: {}", stderr(&output));
    }
}

#[test]
fn a_command_that_gives_none_is_told_without_its_output() {
    let home = Home::new();
    let settings =
        "[providers.virustotal]\napi_key_command = [\"sh\", \"-c\", \"echo half-a-key; exit 3\"]\n";
    home.put("config/sift/config.toml", settings);
    let output = home.run(&["lookup", "9.9.9.9"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(stderr(&output), @"
    error: the API key of virustotal cannot be used: the command sh gave no API key: it ended with exit status: 3
      tip: mend it, or store the key: sift credentials set virustotal
    ");
}

#[test]
fn children_get_no_keys() {
    let home = Home::new();
    let seen = home.path().join("seen");
    let script = format!("env > {}; echo {KEY}", seen.display());
    let settings = format!("[providers.virustotal]\napi_key_command = [\"sh\", \"-c\", \"{script}\"]\n");
    home.put("config/sift/config.toml", &settings);
    let mut command = home.sift(&["enrich", "-n", "fixtures/eve.json"]);
    command.env("SHODAN_API_KEY", KEY).env("ABUSECH_AUTH_KEY", KEY).env("IPINFO_TOKEN", KEY);
    command.env("PATH", "/usr/bin:/bin");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains(KEY), "{seen}");
}

#[test]
fn set_list_remove() {
    let home = Home::new();
    let output = set(&home, &["credentials", "set", "virustotal"], &format!("{KEY}\n"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = home.path().join("config/sift/credentials.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().contains(KEY));
    assert!(!stderr(&output).contains(KEY) && output.stdout.is_empty());
    let listed = without(&home, &stdout(&home.run(&["credentials", "list", "-f", "table"])));
    let row = listed.lines().find(|line| line.starts_with("virustotal")).unwrap();
    assert_eq!(row, "virustotal           from HOME/config/sift/credentials.toml:2");

    // A key of the environment would be used in its place: that is said.
    let mut command = home.sift(&["credentials", "set", "shodan"]);
    let mut child =
        command.env("SHODAN_API_KEY", "x").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"y").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(stderr(&output).contains("the key in SHODAN_API_KEY comes first"), "{}", stderr(&output));

    let output = home.run(&["credentials", "remove", "virustotal"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!std::fs::read_to_string(&file).unwrap().contains(KEY));
    let output = home.run(&["credentials", "remove", "virustotal"]);
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"
    error: HOME/config/sift/credentials.toml holds no key of virustotal
      tip: it holds keys of shodan
    ");
    for (name, input) in
        [("virustotl", KEY), ("internetdb", KEY), ("virustotal", "\n"), ("virustotal", "a\u{7}b\n")]
    {
        let output = set(&home, &["credentials", "set", name], input);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
    }
}

#[test]
fn check_tells_a_refused_key_from_a_good_one() {
    let home = Home::new();
    let scenario = format!("[providers.virustotal]\nkey = '{KEY}'\n[providers.abuseipdb]\nkey = 'another'");
    let simulator = Simulator::start(&home, &scenario);
    let mut command = home.sift(&["credentials", "check"]);
    simulator.point(&mut command).env("VT_API_KEY", KEY);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @"
    provider    key                                                     from
    abuseipdb   unauthorized: the provider does not accept the API key  ABUSEIPDB_API_KEY
    virustotal  accepted                                                VT_API_KEY
    ");
}

#[test]
fn the_address_that_is_asked_about_may_be_kept_too() {
    let home = Home::new();
    home.put("config/sift/config.toml", "[input]\nexclude = [\"9.9.9.0/24\"]\n");
    let simulator = Simulator::start(&home, "");
    let output = home.ask(&simulator, &["credentials", "check"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
}
