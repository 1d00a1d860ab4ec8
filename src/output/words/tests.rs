use super::*;

fn example() -> Summary {
    serde_json::from_str(include_str!("../../../fixtures/summary.json")).unwrap()
}

#[test]
fn the_example_reads_as_sentences() {
    insta::assert_snapshot!(example().words(Some("sift enrich eve.json")), @r"
    1,418 addresses in 48,112 events: 12 malicious, 31 suspicious, 402 benign, 747 unknown; 12 not answered, 9 half answered; 214 left out (3 excluded, 211 private); 78 lines could not be read
      abuseipdb   593 requests, 593 addresses sent to api.abuseipdb.com, 611 from cache, 2 retries
      virustotal  572 requests, 572 addresses sent to www.virustotal.com, 611 from cache, 21 not asked: the quota is used up until 00:00 UTC (100 kept for people)
    took 2 min 22 s; ask again for the rest after 00:00 UTC: sift enrich eve.json
    ");
}

#[test]
fn what_was_sent_and_refused_is_not_said_to_be_unasked() {
    let line = |sent: u64, error: &str| {
        let errors = [(error.to_owned(), 23)].into();
        let host = "127.0.0.1".to_owned();
        let counts = ProviderCounts { lookups: 30, requests: sent, sent, host, errors, ..Default::default() };
        provider_line(&counts, example().ended)
    };
    let quota = "quota_exhausted";
    assert_eq!(
        line(8, quota),
        "8 requests, 8 addresses sent to 127.0.0.1, 23 not answered: the quota is used up"
    );
    assert_eq!(
        line(7, quota),
        "7 requests, 7 addresses sent to 127.0.0.1, 23 not asked: the quota is used up"
    );
    assert!(line(8, "cancelled").ends_with("23 not answered: the run was stopped"));
    assert!(line(7, "cancelled").ends_with("23 not asked: the run was stopped"));
    assert!(line(8, "rate_limited").ends_with("23 not answered: it asks for fewer requests"));
}

#[test]
fn a_refused_key_is_the_first_thing_to_put_right() {
    let mut summary = example();
    summary.providers.get_mut("abuseipdb").unwrap().errors.insert("unauthorized".into(), 593);
    summary.stopped_by = Some("SIGINT".into());
    insta::assert_snapshot!(summary.words(None), @r"
    1,418 addresses in 48,112 events: 12 malicious, 31 suspicious, 402 benign, 747 unknown; 12 not answered, 9 half answered; 214 left out (3 excluded, 211 private); 78 lines could not be read
      abuseipdb   593 requests, 593 addresses sent to api.abuseipdb.com, 611 from cache, 2 retries, 593 not answered: it refuses the API key
      virustotal  572 requests, 572 addresses sent to www.virustotal.com, 611 from cache, 21 not asked: the quota is used up until 00:00 UTC (100 kept for people)
    stopped by SIGINT after 2 min 22 s; put the API key of abuseipdb right: 'sift providers show abuseipdb' says where it is read from
    ");
}

#[test]
fn what_lookup_was_given_are_no_lines() {
    let mut summary = Summary { command: "lookup".to_owned(), ..example() };
    (summary.input.events, summary.input.lines) = (0, 2);
    assert!(summary.words(None).starts_with("1,418 addresses: 12 malicious"), "{}", summary.words(None));
    summary.command = "enrich".to_owned();
    assert!(summary.words(None).starts_with("1,418 addresses in 2 lines: "), "{}", summary.words(None));
}

#[test]
fn what_ended_a_run_is_said_in_words() {
    for (by, words) in [
        ("SIGTERM", "stopped by SIGTERM after 2 min 22 s"),
        ("max_time", "stopped after 2 min 22 s: --max-time was over"),
        ("closed_pipe", "stopped after 2 min 22 s: nobody reads the output"),
        ("output", "stopped after 2 min 22 s: the output could not be written"),
        ("store", "stopped after 2 min 22 s: the store failed"),
    ] {
        let words = format!("{words}; ask again for the rest after 00:00 UTC");
        let summary = Summary { stopped_by: Some(by.to_owned()), ..example() };
        assert_eq!(summary.words(None).lines().last(), Some(words.as_str()));
    }
}

#[test]
fn an_over_full_run_says_how_to_ask_for_more() {
    let mut summary = example();
    summary.providers.clear();
    summary.records.incomplete = 0;
    summary.records.errors.insert("budget_exhausted".into(), 12);
    summary.duration_s = 0.84;
    insta::assert_snapshot!(summary.words(None), @r"
    1,418 addresses in 48,112 events: 12 malicious, 31 suspicious, 402 benign, 747 unknown; 12 not answered; 214 left out (3 excluded, 211 private); 78 lines could not be read
    took 0.8 s; 12 addresses were over the limit: raise it with --limit
    ");
    // The lane's own word for it: the run's budget was spent.
    let errors = [("budget_exhausted".to_owned(), 12)].into();
    summary.providers.insert("abuseipdb".into(), ProviderCounts { errors, ..ProviderCounts::default() });
    let words = summary.words(None);
    assert!(words.contains("12 addresses were over the budget: raise it with --budget"), "{words}");
}

#[test]
fn nothing_found_is_said_too() {
    let mut summary = example();
    summary.providers.clear();
    summary.records = crate::output::summary::RecordCounts::default();
    summary.verdicts = crate::output::summary::VerdictCounts::default();
    summary.input.malformed = 1;
    insta::assert_snapshot!(summary.words(None), @r"
    no addresses in 48,112 events; 1 line could not be read
    took 2 min 22 s
    ");
}

#[test]
fn numbers_and_times_for_people() {
    for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(thousands(n), text);
    }
    for (seconds, text) in
        [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.6, "1 min"), (141.656, "2 min 22 s"), (4325.0, "1 h 12 min")]
    {
        assert_eq!(took(seconds), text);
    }
    let now: Timestamp = "2025-01-31T09:17:21Z".parse().unwrap();
    for (at, text) in [
        ("2025-02-01T00:00:00Z", "00:00 UTC"),
        ("2025-01-31T09:18:00.5Z", "09:18:01 UTC"),
        ("2025-02-03T00:00:00Z", "2025-02-03 00:00 UTC"),
    ] {
        assert_eq!(clock(at.parse().unwrap(), now), text);
    }
}

#[test]
fn what_this_machine_answered_has_its_line() {
    let local = Some(crate::output::summary::LocalCounts { addresses: 1_040, known_good: 12 });
    let summary = Summary { local, ..example() };
    let words = summary.words(None);
    assert_eq!(
        words.lines().nth(3),
        Some("  1,040 addresses answered by this machine alone, 12 of them known to be good")
    );
}
