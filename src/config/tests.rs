use std::path::Path;

use secrecy::ExposeSecret;

use super::*;

/// A folder that holds a machine's and a user's file.
struct Home(tempfile::TempDir);

impl Home {
    fn new(system: &str, user: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for (file, text) in
            [(home.folders().system_config_file(), system), (home.folders().config_file(), user)]
        {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            crate::output::write_whole(&file, text.as_bytes(), 0o600).unwrap();
        }
        home
    }

    fn folders(&self) -> Folders {
        let at = |name: &str| self.0.path().join(name);
        Folders { config: at("user"), system_config: at("etc"), state: at("state"), data: at("data") }
    }

    fn load(&self, request: &Request, variables: &[(&str, &str)]) -> Result<Loaded, ConfigErrors> {
        load(request, &variables.iter().copied().collect(), &self.folders())
    }

    /// Without the folder, which differs from run to run.
    fn show(&self, text: &str) -> String {
        text.replace(self.0.path().to_str().unwrap(), "")
    }

    fn faults(&self, request: &Request, variables: &[(&str, &str)]) -> String {
        self.show(&self.load(request, variables).unwrap_err().to_string())
    }
}

fn flag(path: &str, value: &str, flag: &str) -> (String, toml::Value, String) {
    (path.to_owned(), toml::Value::String(value.to_owned()), flag.to_owned())
}

fn load_user(text: &str) -> Result<Loaded, ConfigErrors> {
    Home::new("", text).load(&Request::default(), &[])
}

#[test]
fn the_default_is_whole_and_sound() {
    let loaded = load_user("").unwrap();
    for (path, _) in known::KEYS {
        assert_eq!(loaded.origins.of(path), Some(&Origin::Default), "{path} has no default");
    }
    let config = loaded.config;
    assert_eq!((config.concurrency.get(), config.retries, config.max_body), (16, 3, 2 << 20));
    assert_eq!((config.timeout, config.deadline), (Duration::from_secs(10), Duration::from_secs(120)));
    assert_eq!((config.max_time, config.input.limit), (None, Some(10_000)));
    assert!(config.proxy.is_none() && config.ca_file.is_none() && config.providers.is_empty());
    assert_eq!((config.output.format, config.output.sort), (None, Sort::Done));
    assert!(loaded.warnings.is_empty());
}

/// The commented part is read by people, and must be right too.
#[test]
fn the_commented_keys_of_the_default_are_all_there_are() {
    let uncommented: String = DEFAULT
        .lines()
        .skip_while(|line| !line.starts_with("# [providers."))
        .filter_map(|line| {
            line.strip_prefix("# ").filter(|line| line.starts_with('[') || line.contains(" = "))
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let loaded = load_user(&uncommented).unwrap();
    for (key, _) in known::PROVIDER_KEYS {
        let path = format!("providers.virustotal.{key}");
        assert!(loaded.origins.of(&path).is_some(), "{path} is not in the default");
    }
}

#[test]
fn the_stronger_layer_wins_and_is_remembered() {
    let home = Home::new(
        "concurrency = 2\ntimeout = \"2s\"\nretries = 2\nmax_time = \"1h\"\n",
        "\nconcurrency = 3\ntimeout = \"3s\"\n",
    );
    let scenario: toml::Table = "timeout = \"4s\"\n[providers.virustotal]\nrate = \"4/s\"".parse().unwrap();
    let request = Request {
        scenario: Some(("day-quota".into(), scenario)),
        flags: vec![flag("concurrency", "6", "-c"), flag("max_time", "", "--max-time")],
        ..Request::default()
    };
    let variables =
        [("SIFT_CONCURRENCY", "5"), ("SIFT_INPUT_LIMIT", "0"), ("SIFT_VIRUSTOTAL_RATE", "8/min,1/s")];
    let loaded = home.load(&request, &variables).unwrap();
    assert_eq!(loaded.config.concurrency.get(), 6);
    assert_eq!(loaded.config.timeout, Duration::from_secs(4));
    assert_eq!((loaded.config.max_time, loaded.config.input.limit), (None, None));
    assert_eq!(loaded.config.provider("virustotal").rate.unwrap().len(), 2);
    for (path, origin) in [
        ("concurrency", "-c"),
        ("timeout", "scenario day-quota"),
        ("retries", "/etc/config.toml:3"),
        ("deadline", "default"),
        ("input.limit", "SIFT_INPUT_LIMIT"),
        ("providers.virustotal.rate", "SIFT_VIRUSTOTAL_RATE"),
    ] {
        assert_eq!(home.show(&loaded.origins.of(path).unwrap().to_string()), origin, "{path}");
    }
    assert_eq!(loaded.files.len(), 2);
}

#[test]
fn every_fault_is_named_at_once_with_its_line() {
    let home = Home::new(
        "",
        "concurency = 4\ntimeout = 10\n[input]\nexclude = [\"198.51.100.7/24\"]\n[output]\nformat = \"tabel\"\nlimit = 5\n\
         [providers.virustotal]\nrate = \"4/fortnight\"\nreserve = 20\napi_key = \"s3cret\"\n[outptu]\n",
    );
    let request = Request { flags: vec![flag("concurrency", "0", "-c")], ..Request::default() };
    let faults = home.faults(&request, &[("SIFT_RETRIES", "1000")]);
    assert!(!faults.contains("s3cret"));
    insta::assert_snapshot!(faults, @r#"
    /user/config.toml:1: unknown key 'concurency' in the top table
      tip: did you mean 'concurrency'?
    /user/config.toml:2: 'timeout' must be a time from 1 s to 10m, as in "10s", "2m", "12h" or "7d", not 10
    /user/config.toml:4: 'input.exclude' holds '198.51.100.7/24', whose address has bits beyond the prefix; did you mean 198.51.100.0/24?
    /user/config.toml:6: 'output.format' must be one of auto, table, ndjson, json, csv, tsv, not "tabel"; did you mean 'table'?
    /user/config.toml:7: unknown key 'limit' in [output]
      tip: did you mean 'input.limit'?
    /user/config.toml:9: 'providers.virustotal.rate' holds a fault: `4/fortnight` is no quota; write a number above 0 and a window, as in 4/min, 50/s, 10/h, 1000/day, 50/week
    /user/config.toml:10: 'providers.virustotal.reserve' must be a share from 0 to 1, not 20
    /user/config.toml:11: an API key does not belong in the configuration, which others may read
      tip: take it out and store it with 'sift credentials set virustotal'
    /user/config.toml:12: unknown key 'outptu' in the top table
      tip: did you mean 'output'?
    SIFT_RETRIES: 'retries' must be a whole number from 0 to 20, not "1000"
    -c: 'concurrency' must be a whole number from 1 to 1024, not "0"
    "#);
}

#[test]
fn broken_toml_is_shown_with_its_line() {
    let home = Home::new("", "concurrency = 4\ntimeout = \n\n[input\n");
    let faults = home.faults(&Request::default(), &[]);
    assert!(faults.contains("/user/config.toml:2: "), "{faults}");
    assert!(faults.contains("/user/config.toml:4: "), "{faults}");
}

#[test]
fn a_default_gives_way_to_a_shorter_limit() {
    let home = Home::new("", "");
    let times = |flags: Vec<(String, toml::Value, String)>| {
        let config = home.load(&Request { flags, ..Request::default() }, &[]).unwrap().config;
        (config.timeout.as_secs(), config.deadline.as_secs())
    };
    assert_eq!(times(vec![flag("max_time", "30s", "--max-time")]), (10, 30));
    assert_eq!(times(vec![flag("max_time", "5s", "--max-time")]), (5, 5));
    assert_eq!(times(vec![flag("deadline", "4s", "--deadline")]), (4, 4));
    assert_eq!(
        times(vec![flag("max_time", "5s", "--max-time"), flag("timeout", "20s", "--timeout")]),
        (20, 5)
    );
    // So does one that `config init` has written out, and a scenario's.
    let written = Home::new("", DEFAULT);
    let flags = vec![flag("max_time", "30s", "--max-time")];
    let config = written.load(&Request { flags: flags.clone(), ..Request::default() }, &[]).unwrap().config;
    assert_eq!((config.timeout.as_secs(), config.deadline.as_secs()), (10, 30));
    // Not so one that was typed, although it is the same.
    let typed = vec![flag("max_time", "30s", "--max-time"), flag("deadline", "2m", "--deadline")];
    let faults = written.faults(&Request { flags: typed, ..Request::default() }, &[]);
    assert!(faults.contains("is above max_time (\"30s\", --max-time)"), "{faults}");
    let scenario = Some(("trial".to_owned(), toml::from_str("deadline = \"40s\"").unwrap()));
    let config = home.load(&Request { scenario, flags, ..Request::default() }, &[]).unwrap().config;
    assert_eq!(config.deadline.as_secs(), 30);
}

#[test]
fn contradictions_name_both_sides() {
    let home = Home::new(
        "timeout = \"3m\"\ndeadline = \"100s\"\n",
        "[verdict]\nsuspicious = 80\n[breaker]\nfailures = 20\n[providers.shodan]\nrate = [\"1/s\", \"60/min\"]\nburst = 5\n",
    );
    let faults = home
        .faults(&Request { flags: vec![flag("max_time", "90s", "--max-time")], ..Request::default() }, &[]);
    insta::assert_snapshot!(faults, @r#"
    /etc/config.toml:1: timeout ("3m", /etc/config.toml:1) is above deadline ("1m40s", /etc/config.toml:2): a look-up would end within its first attempt
    /user/config.toml:2: verdict.suspicious (80, /user/config.toml:2) is above verdict.malicious (75, default): nothing would ever be suspicious
    /user/config.toml:4: breaker.failures (20, /user/config.toml:4) is above breaker.window (10, default): so many failures never fit the window
    /user/config.toml:7: providers.shodan.burst (5, /user/config.toml:7) is above providers.shodan.rate (["1/s", "60/min"], /user/config.toml:6): the first burst would exceed it
    --max-time: deadline ("1m40s", /etc/config.toml:2) is above max_time ("1m30s", --max-time): a look-up may not take longer than the run
    "#);
}

#[test]
fn another_file_stands_in_for_the_users_and_none_for_all() {
    let home = Home::new("retries = 1\n", "concurrency = 3\n");
    let other = home.0.path().join("other.toml");
    crate::output::write_whole(&other, b"timeout = \"5s\"\n", 0o600).unwrap();
    let other = other.to_str().unwrap();
    let of = |request: &Request, variables: &[(&str, &str)]| {
        let config = home.load(request, variables).unwrap().config;
        (config.retries, config.concurrency.get(), config.timeout.as_secs())
    };
    let chosen = |config: &str| Request { config: Some(config.to_owned()), ..Request::default() };
    assert_eq!(of(&Request::default(), &[]), (1, 3, 10));
    assert_eq!(of(&Request::default(), &[("SIFT_CONFIG", other)]), (1, 16, 5));
    assert_eq!(of(&chosen(other), &[("SIFT_CONFIG", "none")]), (1, 16, 5));
    assert_eq!(of(&chosen("none"), &[("SIFT_CONFIG", other)]), (3, 16, 10));
    let faults = home.faults(&chosen("/nonexistent.toml"), &[]);
    assert!(faults.starts_with("/nonexistent.toml: cannot be read: No such file"), "{faults}");
}

#[test]
fn names_of_providers_are_checked_against_those_there_are() {
    let home = Home::new("", "[providers.virustotl]\nenabled = true\n[providers.my-misp]\nenabled = true\n");
    let loaded = home.load(&Request::default(), &[]).unwrap();
    let faults = loaded.check_providers(&["virustotal", "my-misp"]).unwrap_err().to_string();
    assert_eq!(
        home.show(&faults),
        "/user/config.toml:2: unknown provider 'virustotl'\n  tip: did you mean 'virustotal'?"
    );
    assert!(loaded.check_providers(&["virustotl", "my-misp"]).is_ok());
}

#[test]
fn variables_of_providers_are_told_apart() {
    let home = Home::new("", "");
    let variables = [
        ("SIFT_GREYNOISE_COMMUNITY_BASE_URL", "http://127.0.0.1:8080"),
        ("SIFT_SHODAN_MAX_AGE_UNKNOWN", "1h"),
        ("SIFT_SHODAN_API_KEY", "s3cret"),
        ("SIFT_SHODAN_API_KEY_FILE", "/run/key"),
        ("SIFT_CONCURENCY", "3"),
        ("SIFT_LOG", "debug"),
        ("SIFT_TIMEOUT", ""),
    ];
    let loaded = home.load(&Request::default(), &variables).unwrap();
    assert_eq!(
        loaded.config.provider("greynoise-community").base_url.as_deref(),
        Some("http://127.0.0.1:8080")
    );
    assert_eq!(loaded.config.provider("shodan").max_age_unknown, Some(Duration::from_secs(3600)));
    assert_eq!(loaded.config.provider("shodan").api_key_file.as_deref(), Some(Path::new("/run/key")));
    assert_eq!(loaded.config.log.level, "debug");
    assert_eq!(
        loaded.warnings,
        ["SIFT_CONCURENCY is set and means nothing to sift; did you mean SIFT_CONCURRENCY?"]
    );
}

#[test]
fn a_proxys_password_is_never_shown() {
    let home = Home::new("", "proxy = \"http://ana:s3cret@proxy.example:3128\"\n");
    let loaded = home.load(&Request::default(), &[]).unwrap();
    assert!(loaded.config.proxy.as_ref().unwrap().expose_secret().contains("s3cret"));
    assert!(!format!("{loaded:?}").contains("s3cret"));
    assert!(loaded.origins.iter().all(|(_, value, _)| !value.contains("s3cret")));
    let faults = Home::new("", "proxy = \"ana:s3cret@proxy\"\n").faults(&Request::default(), &[]);
    assert!(!faults.contains("s3cret"), "{faults}");
}

#[test]
fn what_is_shown_can_be_read_again() {
    let home = Home::new(
        "",
        "[input]\nexclude = [\"198.51.100.0/24\", \"2001:db8::1\"]\n[output]\nfields = [\"ip\", \"providers.abuseipdb.reports\"]\n",
    );
    let loaded = home.load(&Request::default(), &[]).unwrap();
    for (path, shown, _) in loaded.origins.iter() {
        let request = Request { flags: vec![], ..Request::default() };
        let (table, key) =
            path.rsplit_once('.').map_or((String::new(), path), |(table, key)| (format!("[{table}]\n"), key));
        let again = Home::new("", &format!("{table}{key} = {shown}\n")).load(&request, &[]);
        let again = again.unwrap_or_else(|faults| panic!("{path} = {shown}: {faults}"));
        assert_eq!(again.origins.iter().find(|(other, _, _)| *other == path).unwrap().1, shown);
    }
}

#[test]
fn the_check_finds_what_loading_does_not() {
    let home = Home::new(
        "",
        "concurency = 4\nca_file = \"/nonexistent.pem\"\n[input]\nexclude_files = [\"LIST\"]\n[providers.virustotl]\ndaily = 5\napi_key_file = \"/nonexistent.key\"\n",
    );
    let list = home.0.path().join("list");
    crate::output::write_whole(&list, b"# ours\n192.0.2.0/24 # lab\n\n192.0.2.1\nintranet\n", 0o600).unwrap();
    let file = home.folders().config_file();
    let text = std::fs::read_to_string(&file).unwrap().replace("LIST", list.to_str().unwrap());
    crate::output::write_whole(&file, text.as_bytes(), 0o600).unwrap();
    let faults =
        check(&Request::default(), &Environment::default(), &home.folders(), &["virustotal"]).unwrap_err();
    insta::assert_snapshot!(home.show(&faults.to_string()), @"
    /list:5: holds 'intranet', which is no address and no network
    /user/config.toml:1: unknown key 'concurency' in the top table
      tip: did you mean 'concurrency'?
    /user/config.toml:2: 'ca_file' names /nonexistent.pem, which cannot be read: No such file or directory (os error 2)
    /user/config.toml:6: unknown provider 'virustotl'
      tip: did you mean 'virustotal'?
    /user/config.toml:7: 'providers.virustotl.api_key_file' names /nonexistent.key, which cannot be read: No such file or directory (os error 2)
    ");
}

#[test]
fn excluded_networks_come_from_keys_and_files() {
    let home = Home::new("", "");
    let list = home.0.path().join("list");
    crate::output::write_whole(&list, b"192.0.2.0/25\n2001:db8::1\n", 0o600).unwrap();
    let flags = vec![
        flag("input.exclude_files", list.to_str().unwrap(), "--exclude"),
        flag("input.exclude", "192.0.2.128/25", "--exclude"),
    ];
    let loaded = home.load(&Request { flags, ..Request::default() }, &[]).unwrap();
    let networks: Vec<String> = loaded.excluded().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["192.0.2.0/24", "2001:db8::1/128"]);
}

#[test]
fn what_is_in_force_can_be_shown_and_read_again() {
    let home = Home::new("", "concurrency = 4\n[providers.shodan]\nrate = \"1/s\"\n");
    let loaded = home.load(&Request::default(), &[("SIFT_TIMEOUT", "5s")]).unwrap();
    let shown = home.show(&loaded.origins.render(true));
    for line in [
        "concurrency = 4  # /user/config.toml:1",
        "timeout = \"5s\"  # SIFT_TIMEOUT",
        "retries = 3  # default",
        "[providers.shodan]",
    ] {
        assert!(shown.lines().any(|other| other == line), "{line}\n{shown}");
    }
    let again = Home::new("", &loaded.origins.render(false)).load(&Request::default(), &[]).unwrap();
    assert_eq!(again.origins.render(false), loaded.origins.render(false));
}

#[test]
fn a_new_file_says_the_same_as_no_file() {
    let networks: Vec<IpNet> = vec!["198.51.100.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
    let none = Home::new("", &init_text(&[])).load(&Request::default(), &[]).unwrap();
    assert_eq!(none.origins.render(false), load_user("").unwrap().origins.render(false));
    let some = Home::new("", &init_text(&networks)).load(&Request::default(), &[]).unwrap();
    assert_eq!((some.config.input.exclude, some.config.input.home_net), (networks.clone(), networks));
    assert_eq!(some.config.input.limit, Some(10_000));
}

#[test]
fn the_store_lies_where_state_dir_says_and_nowhere_else() {
    let loaded = load_user("state_dir = \"/srv/sift\"\n[audit]\nkeep = \"400d\"\n").unwrap();
    assert_eq!(loaded.config.state_dir.as_deref(), Some(Path::new("/srv/sift")));
    assert_eq!(loaded.config.audit.keep, Duration::from_secs(400 * 86_400));
    let default = load_user("").unwrap().config;
    assert_eq!((default.state_dir, default.audit.keep), (None, crate::store::Place::AUDIT_KEPT));
    let home = Home::new("", "state_dir = \"shared\"\n[cache]\npath = \"/srv/cache\"\n");
    insta::assert_snapshot!(home.faults(&Request::default(), &[]), @r#"
    /user/config.toml:3: unknown key 'path' in [cache]
      tip: 'sift config init' writes a file with every key
    /user/config.toml:1: state_dir ("shared", /user/config.toml:1) is no absolute path: it would be another store from each folder that sift runs in
    "#);
}
