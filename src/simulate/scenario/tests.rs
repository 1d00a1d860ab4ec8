//! Reading scenarios: the embedded ones are sound, and mistakes are named with their line.

use super::*;

fn fails(text: &str) -> ScenarioError {
    Scenario::parse(Path::new("s.toml"), text).expect_err(text)
}

#[test]
fn every_embedded_scenario_is_sound() {
    for (name, text) in NAMED {
        let scenario =
            Scenario::parse(Path::new(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!scenario.about.is_empty(), "{name} says what it is for");
        assert!(!scenario.client.is_empty(), "{name} sets the client up");
    }
    assert_eq!(Scenario::names().count(), NAMED.len());
    assert!(Scenario::named("nothing").is_none());
    assert!(Scenario::default_scenario().client().contains_key("providers"));
}

/// What the help shows is a scenario, and names every kind of fault.
#[test]
fn the_format_as_it_is_shown_can_be_read() {
    let format = include_str!("format.toml");
    let shown = Scenario::parse(Path::new("s.toml"), format).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(shown.providers.len(), 3);
    assert_eq!(shown.settings("abuseipdb").limits.unwrap().len(), 3);
    assert_eq!(shown.key("misp-two").as_deref(), Some("simulated-key"));
    let known = fails("[[every.faults]]\nkind = 'nothing'\n").to_string();
    let kinds: Vec<&str> = known.split('`').skip(3).step_by(2).collect();
    assert!(kinds.len() > 15, "{known}");
    let words: Vec<&str> = format.split(|letter: char| !letter.is_alphanumeric() && letter != '-').collect();
    for kind in kinds {
        assert!(words.contains(&kind), "{kind}");
    }
}

#[test]
fn unknown_keys_are_named_with_line_and_nearest() {
    for (text, key, line, nearest) in [
        ("abuot = \"x\"\n", "abuot", 1, Some("about")),
        ("\n[providers.abuseipdb]\nlatencie = \"1s\"\n", "latencie", 3, Some("latency")),
        ("[every]\nfaults = [\n  {kind = \"stall\", fist = 1}]\n", "fist", 3, Some("first")),
        ("[shares]\ncolour = 1\n", "colour", 2, None),
    ] {
        let error = fails(text);
        let ScenarioError::UnknownKey { key: named, line: at, nearest: near, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((named.as_str(), *at, near.as_deref()), (key, line, nearest), "{text}");
        assert_eq!(error.tip().is_some(), nearest.is_some());
    }
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    for (text, reason) in [
        ("about = ", "s.toml:1"),
        ("[every]\nlatency = \"soon\"\n", "no duration"),
        ("[every]\nlatency = {min = \"2s\", max = \"1s\"}\n", "not below its min"),
        ("[every]\nlimits = [{count = 0, per = \"1s\"}]\n", "s.toml:2"),
        ("[every]\nlimits = [{count = 1, per = \"0s\"}]\n", "longer than nothing"),
        ("[every]\nlimits = [{count = 1, per = \"1s\", burst = 2}]\n", "belongs to"),
        ("[every]\nretry_after = \"later\"\n", "none of auto"),
        ("[every]\nfaults = [{kind = \"status\"}]\n", "needs a status"),
        ("[every]\nfaults = [{kind = \"redirect\"}]\n", "needs a location"),
        ("[every]\nfaults = [{kind = \"stall\", share = 2.0}]\n", "between 0 and 1"),
        ("[shares]\nmalicious = 0.9\nbenign = 0.2\n", "add up"),
        ("[providers.inhouse]\nlatency = \"1s\"\n", "provider 'inhouse'"),
        ("[providers.x]\nlike = \"misq\"\n", "to be like"),
        ("[providers.\"a/b\"]\nbody = \"x\"\n", "letters"),
        ("[answers]\n\"203.0.113.7\" = \"evil\"\n", "evil"),
    ] {
        let error = fails(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn what_a_provider_says_wins_over_every() {
    let text = "[every]\nlatency = \"1s\"\nfaults = [{kind = \"stall\"}]\n[providers.shodan]\nlatency = \"2s\"\nfaults = [{kind = \"html\"}]\n";
    let scenario = Scenario::parse(Path::new("s"), text).unwrap();
    let own = scenario.settings("shodan");
    assert_eq!(own.latency.unwrap().min.as_secs(), 2);
    assert_eq!(
        own.faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(),
        [FaultKind::Html, FaultKind::Stall]
    );
    assert_eq!(scenario.settings("abuseipdb").latency.unwrap().min.as_secs(), 1);
}

#[test]
fn keys_are_offered_where_one_is_wanted() {
    let text = "[providers.virustotal]\nkey = \"k\"\n[providers.inhouse]\nbody = \"x\"\n[providers.own]\nlike = \"misp\"\n";
    let scenario = Scenario::parse(Path::new("s"), text).unwrap();
    assert_eq!(scenario.key("virustotal").as_deref(), Some("k"));
    assert_eq!(scenario.key("abuseipdb").as_deref(), Some("simulated-key"));
    assert_eq!(scenario.key("own").as_deref(), Some("simulated-key"));
    assert_eq!(scenario.key("internetdb"), None);
    assert_eq!(scenario.key("inhouse"), None);
}

#[test]
fn a_body_file_lies_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    let write = |name: &str, text: &str| {
        use std::io::Write as _;
        let mut file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.persist(folder.path().join(name)).unwrap();
    };
    write("s.toml", "[providers.inhouse]\nbody_file = \"answer.json\"\n");
    assert!(matches!(Scenario::load(&path), Err(ScenarioError::Read { .. })));
    write("answer.json", "{\"ip\":\"{ip}\"}");
    assert_eq!(Scenario::load(&path).unwrap().settings("inhouse").body.unwrap(), "{\"ip\":\"{ip}\"}");
}

#[test]
fn the_first_look_has_every_kind_of_answer() {
    use crate::simulate::verdict::{judge, mix_name};
    let scenario = Scenario::default_scenario();
    let provider = mix_name(1, "abuseipdb");
    let verdicts: std::collections::HashSet<Verdict> =
        (1..=40_u8).map(|n| judge(&scenario.shares, 1, provider, IpAddr::from([203, 0, 113, n]))).collect();
    assert_eq!(verdicts.len(), 4);
}
