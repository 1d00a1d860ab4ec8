//! `sift config`.

use super::harness::{Home, stderr};
use super::{stdout, without};
use std::os::unix::fs::PermissionsExt as _;

const FAULTY: &str = "\
concurency = 16
timeout = \"5m\"
retry_budget = 20

[input]
exclude = [\"198.51.100.7/24\"]

[providers.virustotl]
rate = \"4/min\"

[providers.virustotal]
api_key = \"s3cret\"
rate = \"4/min\"
burst = 9
";

#[test]
fn check_names_every_fault_in_one_go() {
    let home = Home::new();
    home.put("config/sift/config.toml", FAULTY);
    let output = home.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    insta::assert_snapshot!(without(&home, &stderr(&output)), @r#"
    error: HOME/config/sift/config.toml:1: unknown key 'concurency' in the top table
      tip: did you mean 'concurrency'?
    error: HOME/config/sift/config.toml:2: timeout ("5m", HOME/config/sift/config.toml:2) is above deadline ("2m", default): a look-up would end within its first attempt
    error: HOME/config/sift/config.toml:3: 'retry_budget' must be a share from 0 to 1, not 20
    error: HOME/config/sift/config.toml:6: 'input.exclude' holds '198.51.100.7/24', whose address has bits beyond the prefix; did you mean 198.51.100.0/24?
    error: HOME/config/sift/config.toml:9: unknown provider 'virustotl'
      tip: did you mean 'virustotal'?
    error: HOME/config/sift/config.toml:12: an API key does not belong in the configuration, which others may read
      tip: take it out and store it with 'sift credentials set virustotal'
    error: HOME/config/sift/config.toml:14: providers.virustotal.burst (9, HOME/config/sift/config.toml:14) is above providers.virustotal.rate (["4/min"], HOME/config/sift/config.toml:13): the first burst would exceed it
    "#);
}

#[test]
fn extract_reads_definitions_only_for_the_names_in_the_configuration() {
    let home = Home::new();
    home.put("config/sift/providers/ours.toml", "this is no definition");
    let list = home.put("list.txt", "203.0.113.7\n");
    let extract = || home.run(&["extract", "-q", "--no-context", list.to_str().unwrap()]);
    let output = extract();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "203.0.113.7\n"));
    assert_eq!(stderr(&output), "", "nobody is asked, so no definition matters");
    home.put("config/sift/config.toml", "[providers.virustotl]\nrate = \"4/min\"\n");
    let output = extract();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown provider 'virustotl'"), "{}", stderr(&output));
}

#[test]
fn check_of_a_file_that_is_not_in_its_place() {
    let home = Home::new();
    let file = home.put("other.toml", "timeout = \"5s\"\nretries = -1\n");
    let output = home.run(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"error: HOME/other.toml:2: 'retries' must be a whole number from 0 to 20, not -1");
    home.put("other.toml", "timeout = \"5s\"\n");
    let output = home.run(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(
        (output.status.code(), without(&home, &stdout(&output))),
        (Some(0), "no fault: HOME/other.toml\n".to_owned())
    );
}

#[test]
fn check_covers_definitions_and_named_files() {
    let home = Home::new();
    home.provider("own", "title = \"Own\"\n");
    home.put("key", "s3cret");
    std::fs::set_permissions(home.path().join("key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    home.put(
        "config/sift/config.toml",
        &format!(
            "ca_file = \"/nowhere/ca.pem\"\n[providers.virustotal]\napi_key_file = \"{}\"\n",
            home.path().join("key").display()
        ),
    );
    let output = home.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"
    error: HOME/config/sift/providers/own.toml:1: `role` is missing: it must be there
    error: HOME/config/sift/providers/own.toml:1: `accepts` is missing: it must be a list of texts
    error: HOME/config/sift/providers/own.toml:1: `request` is missing: it must be a table
    error: HOME/config/sift/providers/own.toml:1: `answer` is missing: it must be a table
    error: HOME/config/sift/config.toml:1: 'ca_file' names /nowhere/ca.pem, which cannot be read: No such file or directory (os error 2)
    error: HOME/config/sift/config.toml:3: 'providers.virustotal.api_key_file' names HOME/key, which others can read or write (mode 0644); chmod 600 HOME/key
    ");
}

#[test]
fn init_writes_the_defaults_and_never_over_a_file() {
    let home = Home::new();
    let path = home.path().join("config/sift/config.toml");
    let output = home.run(&["config", "init"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), sift::config::DEFAULT);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // What it writes changes nothing.
    let with = home.run(&["config", "show"]);
    assert_eq!(stdout(&with), stdout(&home.run(&["config", "show", "--config", "none"])));
    assert_eq!(home.run(&["config", "check"]).status.code(), Some(0));

    home.put("config/sift/config.toml", "retries = 1\n");
    let output = home.run(&["config", "init"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is there already\n  tip: --force replaces it"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "retries = 1\n");
    assert_eq!(home.run(&["config", "init", "--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), sift::config::DEFAULT);
}

#[test]
fn init_takes_the_networks_of_suricata() {
    let home = Home::new();
    let yaml = home.put(
        "suricata.yaml",
        "vars:\n  address-groups:\n    HOME_NET: \"[192.168.0.0/16,203.0.113.0/24]\"\n    EXTERNAL_NET: \"!$HOME_NET\"\n",
    );
    let output = home.run(&["config", "init", "--home-net", yaml.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("never sent: 192.168.0.0/16, 203.0.113.0/24"), "{}", stderr(&output));
    // And they are not: all addresses of that network are skipped.
    let output = home.run(&["enrich", "--simulate", "fixtures/eve.json"]);
    let records = super::harness::records(&output.stdout);
    let of_network = records.iter().filter(|record| record["ip"].as_str().unwrap().starts_with("203.0.113."));
    assert!(of_network.clone().count() > 5);
    assert!(of_network.clone().all(|record| record["reason"] == "excluded"));

    home.put("suricata.yaml", "vars:\n  address-groups:\n    HOME_NET: any\n");
    let output = home.run(&["config", "init", "--force", "--home-net", yaml.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(without(&home, &stderr(&output)), @"error: HOME/suricata.yaml tells no networks: HOME_NET is any, which is no list of networks; name yours with 'exclude' in the configuration");
}

#[test]
fn show_says_where_each_value_comes_from() {
    let home = Home::new();
    home.put(
        "config/sift/config.toml",
        "retries = 1\nproxy = \"http://ana:s3cret@proxy.example:3128\"\n[providers.virustotal]\nrate = \"2/min\"\n",
    );
    let output = home.sift(&["config", "show", "--origin"]).env("SIFT_TIMEOUT", "5s").output().unwrap();
    let text = without(&home, &stdout(&output));
    for line in [
        "deadline = \"2m\"  # default",
        "proxy = \"********\"  # HOME/config/sift/config.toml:2",
        "retries = 1  # HOME/config/sift/config.toml:1",
        "timeout = \"5s\"  # SIFT_TIMEOUT",
        "rate = [\"2/min\"]  # HOME/config/sift/config.toml:4",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(!text.contains("s3cret"));
    // Without origins it can be read again, but for what is masked.
    let shown = stdout(&home.run(&["config", "show"])).replace("\"********\"", "\"\"");
    let file = home.put("again.toml", &shown);
    assert_eq!(home.run(&["config", "check", file.to_str().unwrap()]).status.code(), Some(0));
}

#[test]
fn paths_follow_xdg_and_systemd() {
    let home = Home::new();
    let output = home
        .sift(&["config", "paths"])
        .env("STATE_DIRECTORY", "/var/lib/sift:/var/lib/sift/metrics")
        .env("CONFIGURATION_DIRECTORY", "/nowhere/sift")
        .output()
        .unwrap();
    insta::assert_snapshot!(without(&home, &stdout(&output)).replace("/etc/sift/config.toml  (not there)", "/etc/sift/config.toml"), @"
    configuration  /nowhere/sift/config.toml  (not there)
    machine's      /etc/sift/config.toml
    credentials    /nowhere/sift/credentials.toml  (not there)
    providers      /nowhere/sift/providers  (not there)
    state          /var/lib/sift  (not there)
    store          /var/lib/sift/sift.db  (not there)
    data           HOME/data/sift  (not there)
    ");
}
