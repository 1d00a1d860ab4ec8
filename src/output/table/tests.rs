use super::*;
use crate::output::fields::default_fields;

const EXAMPLES: &str = include_str!("../../../fixtures/records.ndjson");

fn render(terminal: usize, color: bool, records: &[Record]) -> String {
    let mut table = Table::new(&default_fields(), terminal, color, false);
    let mut out = Vec::new();
    table.head(&mut out);
    for record in records {
        table.row(record, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn examples() -> Vec<Record> {
    EXAMPLES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_examples_as_a_table() {
    insta::assert_snapshot!(render(80, false, &examples()), @r"
    IP               VERDICT     SCORE  CC      ASN    HITS  TAGS
    203.0.113.7      malicious     100  NL    64496      41  mirai ssh_bruteforcer
    2001:db8::7      unknown                              1
    198.51.100.23    suspicious     35  DE    64501       6  (half answered) port_s…
    203.0.113.8      no answer   rate_limited at virustotal: 429, and the wait aske…
    203.0.113.9      no answer   timeout at greynoise: no answer within 10 s, 4 tim…
    203.0.113.10     no answer   circuit_open at shodan: not asked: 8 of the last 1…
    203.0.113.11     no answer   unauthorized at abuseipdb: the provider does not a…
    203.0.113.12     no answer   deadline at virustotal: the run's 10 min were over…
    ");
}

#[test]
fn providers_text_does_nothing_to_the_terminal() {
    let mut record = examples().remove(0);
    record.tags = vec!["\u{1b}[2J\u{202e}evil\nnext".to_owned(), "x".repeat(200)];
    record.country = Some("\u{9b}31m".to_owned());
    let text = render(80, false, &[record]);
    assert_eq!(text.lines().count(), 2);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    assert!(text.ends_with("…\n"));
}

#[test]
fn an_address_is_never_cut() {
    let mut record = examples().remove(1);
    record.ip = "2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap();
    for terminal in [20, 80, 200] {
        assert!(
            render(terminal, false, std::slice::from_ref(&record))
                .contains("2001:db8:1111:2222:3333:4444:5555:6666")
        );
    }
}

#[test]
fn colour_is_beside_the_word_and_always_ends() {
    let text = render(80, true, &examples());
    assert!(text.contains("\u{1b}[31mmalicious\u{1b}[0m"));
    for line in text.lines() {
        let last = line.rfind('\u{1b}').unwrap();
        assert!(line[last..].starts_with("\u{1b}[0m"), "{line:?}");
    }
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(plain, render(80, false, &examples()));
}
