//! What outlives a run, as people meet it: its flags, and the commands that show it.

use super::harness::{Home, count, records, stderr};
use super::screen::{Terminal, run};
use super::stored::{Content, IP, abuseipdb, fill};
use super::{is_here, stdout, without};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

/// The first line that was said, without what the parser adds.
fn first_line(home: &Home, words: &[&str]) -> String {
    let output = home.run(&[&["enrich", "fixtures/eve.json"], words].concat());
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    stderr(&output).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn flags_are_checked_before_anything_is_read() {
    let home = Home::new();
    let faults: Vec<String> = [
        &["--max-age", "soon"][..],
        &["--stale-if-error", "soon"],
        &["--budget", "virustotal"],
        &["--budget", "0"],
        &["--job", "Eve/1"],
        &["--offline", "--refresh"],
        &["--offline", "--simulate"],
        &["--refresh", "--max-age", "1h"],
        &["--no-store", "--offline"],
        &["--no-store", "--job", "eve"],
        &["--defer", "--no-store"],
    ]
    .map(|words| first_line(&home, words))
    .into();
    insta::assert_snapshot!(faults.join("\n"), @r#"
    error: invalid value 'soon' for '--max-age <TIME>': write a time like this: 10s, 2m, 12h, 7d
    error: --stale-if-error: 'cache.stale_if_error' must be a time from 0 s to 366d, as in "10s", "2m", "12h" or "7d", not "soon"
    error: invalid value 'virustotal' for '--budget <[NAME=]N>': write it like this: 500, or virustotal=200; at least 1
    error: invalid value '0' for '--budget <[NAME=]N>': write it like this: 500, or virustotal=200; at least 1
    error: invalid value 'Eve/1' for '--job <NAME>': use a-z, 0-9, '.', '_' and '-', at most 64 of them
    error: the argument '--offline' cannot be used with '--refresh'
    error: the argument '--offline' cannot be used with '--simulate'
    error: the argument '--refresh' cannot be used with '--max-age <TIME>'
    error: the argument '--no-store' cannot be used with '--offline'
    error: the argument '--no-store' cannot be used with '--job <NAME>'
    error: the argument '--defer' cannot be used with '--no-store'
    "#);
}

/// What a command says of a filled store: its status, standard output, standard error.
fn say(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let output = home.sift(words).env("ABUSEIPDB_API_KEY", "fake-key").output().unwrap();
    (output.status.code(), without(home, &stdout(&output)), without(home, &stderr(&output)))
}

fn rows(home: &Home, words: &[&str]) -> Vec<Value> {
    let (code, out, err) = say(home, &[words, &["-f", "ndjson"]].concat());
    assert_eq!(code, Some(0), "{words:?}: {err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// These read: that they make nothing is what lets a monitor call them.
#[test]
fn where_nothing_is_kept_nothing_is_made() {
    let home = Home::new();
    for (words, status) in [
        (&["cache", "stats"][..], 0),
        (&["cache", "get", IP], 3),
        (&["cache", "clear", "--yes"], 0),
        (&["cache", "prune"], 0),
        (&["quota"], 0),
        (&["audit"], 0),
        (&["explain", IP], 3),
        (&["doctor", "--offline"], 0),
    ] {
        let (code, out, err) = say(&home, words);
        assert_eq!(code, Some(status), "{words:?}: {out}{err}");
        let told = if words[0] == "doctor" { &out } else { &err };
        assert!(told.contains("HOME/state/sift/sift.db"), "{words:?}: {out}{err}");
        assert!(!home.path().join("state").exists(), "{words:?}");
    }
}

#[test]
fn the_cache_shows_what_it_holds_and_of_when() {
    let home = Home::new();
    fill(&home);
    let (code, out, err) = say(&home, &["cache", "stats", "-f", "table"]);
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(out + &err, @"
    provider    answers   size  oldest       newest       from
    abuseipdb         1  283 B  20 min ago   20 min ago   api.abuseipdb.com
    shodan            1  215 B  1 h ago      1 h ago      loopback
    virustotal        1  225 B  60 days ago  60 days ago  www.virustotal.com
    723 B of at most 256 MiB (max_size), in HOME/state/sift/sift.db
    ");
    let stats = rows(&home, &["cache", "stats"]);
    assert_eq!((stats.len(), &stats[0]["answers"], &stats[1]["host"]), (3, &json!(1), &json!("loopback")));
    let whole = rows(&home, &["cache", "get", "203.0.113[.]7"]);
    assert_eq!(whole.len(), 3);
    assert_eq!(whole[0]["answer"]["score"], 96);
    assert_eq!(whole[0]["body"]["said"]["verdict"], "malicious");
    let (code, out, _) = say(&home, &["cache", "get", IP, "-f", "table"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("provider    abuseipdb\nfrom        api.abuseipdb.com\n"), "{out}");
}

#[test]
fn answers_are_dropped_where_that_was_meant() {
    let home = Home::new();
    fill(&home);
    let answers =
        || rows(&home, &["cache", "stats"]).iter().map(|row| row["answers"].as_u64().unwrap()).sum::<u64>();
    let (code, _, err) = say(&home, &["cache", "clear"]);
    assert_eq!((code, answers()), (Some(2), 3));
    insta::assert_snapshot!(err, @"
    error: nothing was changed: nobody can be asked
      tip: --yes does it without asking
    ");
    let (code, _, err) = say(&home, &["cache", "clear", "-p", "virustotl", "--yes"]);
    assert_eq!((code, answers()), (Some(2), 3));
    assert!(err.ends_with("tip: did you mean 'virustotal'?\n"), "{err}");
    assert_eq!(
        say(&home, &["cache", "clear", "-p", "virustotal", "--ip", IP, "--yes"]).2,
        "dropped 1 answer of virustotal about 203.0.113.7\n"
    );
    assert_eq!(answers(), 2);
    let (code, _, err) = say(&home, &["cache", "prune"]);
    assert_eq!((code, answers()), (Some(0), 2), "{err}");
    assert_eq!(say(&home, &["cache", "clear", "--yes"]).2, "dropped 2 answers\n");
    // What was spent stays counted, and who asked stays known.
    assert_eq!(rows(&home, &["quota", "-p", "abuseipdb"])[0]["used"], 42);
    assert_eq!(rows(&home, &["audit"]).len(), 4);
}

#[test]
fn a_person_is_asked_before_answers_are_dropped() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    fill(&home);
    let clear = |answer: &str| {
        let command = home.sift(&["cache", "clear", "--ip", IP]);
        run(&home, &command, &json!({ "type": [["[y/N] ", answer]] }))
    };
    for (answer, said) in [
        ("n\r", "nothing was changed"),
        ("\r", "nothing was changed"),
        ("y\r", "dropped 3 answers about 203.0.113.7"),
    ] {
        let shown = clear(answer);
        let lines = shown.lines(Terminal::Cuts).join("\n");
        assert_eq!(shown.status, 0, "{lines}");
        assert!(
            lines.starts_with("drop 3 answers about 203.0.113.7? [y/N]") && lines.contains(said),
            "{lines}"
        );
    }
    assert!(rows(&home, &["cache", "stats"]).is_empty());
}

#[test]
fn the_quota_says_what_was_spent_and_what_is_left() {
    let home = Home::new();
    home.put(
        "config/sift/config.toml",
        "[providers.virustotal]\nreserve = 0.1\n[providers.internetdb]\nenabled = true\n",
    );
    fill(&home);
    let quota = |form: &str| {
        let mut command = home.sift(&["quota", "-f", form]);
        let output =
            command.env("ABUSEIPDB_API_KEY", "fake-key").env("VT_API_KEY", "another").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let content = Content::of(&home);
    content.hold(&abuseipdb(), content.now + SignedDuration::from_hours(30));
    let until = (content.now + SignedDuration::from_hours(30)).strftime("%Y-%m-%d %H:%M UTC").to_string();
    drop(content);
    let table = quota("table").replace(&until, "THEN");
    // The hour at which a look-up leaves a rolling day differs from run to run.
    let table: Vec<String> = table
        .lines()
        .map(|line| {
            line.split_whitespace()
                .map(|word| if word.contains(':') { "TIME" } else { word })
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"), @"
    provider key window used limit left kept resets told
    abuseipdb 562df1a6 day 42 1,000 958 200 TIME UTC 958 left, just now held off until THEN
    internetdb 4a5166ce - 0 - - 0 - - no quota, 1/s
    shodan 912e4b65 day 1 1,000 999 200 TIME UTC - not in TIME loopback
    virustotal 349d0750 day 0 500 500 50 - -
    virustotal 349d0750 month 0 15,500 15,500 1,550 - -
    virustotal 9250076f day 0 1,000 1,000 200 - - not in TIME www.virustotal.com
    ");
    let rows: Vec<Value> = quota("ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let abuse = &rows[0];
    assert_eq!(
        [
            &abuse["used"],
            &abuse["limit"],
            &abuse["left"],
            &abuse["reserve"],
            &abuse["told_left"],
            &abuse["in_use"]
        ],
        [&json!(42), &json!(1000), &json!(958), &json!(200), &json!(958), &json!(true)]
    );
    assert_eq!(abuse["key_id"], abuseipdb().key_id.to_string());
    assert!(!quota("ndjson").contains("fake-key"));
    let (code, _, err) = say(&home, &["quota", "-p", "abuseipd"]);
    assert_eq!(code, Some(2));
    assert!(err.ends_with("tip: did you mean 'abuseipdb'?\n"), "{err}");
    assert_eq!(self::rows(&home, &["quota", "-p", "abuseipdb"]).len(), 1);
}

#[test]
fn the_audit_trail_is_narrowed_by_who_what_and_when() {
    let home = Home::new();
    fill(&home);
    let (code, out, _) = say(&home, &["audit", "-f", "table"]);
    assert_eq!(code, Some(0));
    let masked = |line: &str| match line.split_once(' ') {
        Some((at, rest)) if at.ends_with('Z') => format!("2026-01-15T10:00:00Z {rest}"),
        _ => line.to_owned(),
    };
    let table: Vec<String> = out.lines().map(masked).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    time                  user        for           provider      address          outcome
    2026-01-15T10:00:00Z  ana         person        virustotal    203.0.113.7      not_found
    2026-01-15T10:00:00Z  ana         person        shodan        203.0.113.7      found
    2026-01-15T10:00:00Z  ana         eve           abuseipdb     203.0.113.7      found
    2026-01-15T10:00:00Z  ana         worker        abuseipdb     2001:db8::7      timeout
    ");
    let outcomes = |words: &[&str]| {
        let rows = rows(&home, &[&["audit"], words].concat());
        rows.iter().map(|row| row["outcome"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (words, expected) in [
        (&["--since", "30m"][..], "found timeout"),
        (&["--until", "30m"], "not_found found"),
        (&["--since", "2h", "--until", "30m"], "found"),
        (&["-p", "abuseipdb"], "found timeout"),
        (&["--job", "eve"], "found"),
        (&["--user", "ana", "--ip", "2001:db8:0::7"], "timeout"),
        (&["--user", "bo"], ""),
    ] {
        assert_eq!(outcomes(words), expected, "{words:?}");
    }
    let row = &rows(&home, &["audit", "--job", "eve"])[0];
    assert_eq!(
        [&row["who"], &row["job"], &row["user"], &row["ip"]],
        [&json!("job"), &json!("eve"), &json!("ana"), &json!(IP)]
    );
    let (code, _, err) = say(&home, &["audit", "--until", "soon"]);
    assert_eq!(code, Some(2));
    assert!(err.starts_with("error: --until soon: neither a span of time nor a time\n"), "{err}");
    assert!(say(&home, &["audit", "-p", "abuseip"]).2.contains("did you mean 'abuseipdb'?"));
}

#[test]
fn a_long_audit_trail_comes_page_by_page() {
    let home = Home::new();
    let mut content = Content::of(&home);
    content.quota = "1000000/day";
    for n in 0..2_001_u32 {
        let ip = format!("2001:db8::{n:x}");
        content.asked(
            &abuseipdb(),
            sift::store::Who::Person,
            &ip,
            std::time::Duration::from_secs(60),
            "timeout",
        );
    }
    drop(content);
    let rows = rows(&home, &["audit"]);
    assert_eq!((rows.len(), &rows[2_000]["ip"]), (2_001, &json!("2001:db8::7d0")));
    let (_, table, _) = say(&home, &["audit", "-f", "table"]);
    assert_eq!((table.lines().count(), table.matches("outcome").count()), (2_002, 1));
}

#[test]
fn a_verdict_is_explained_from_what_is_kept() {
    let home = Home::new();
    home.put("our.txt", "203.0.113.7\n");
    let list = home.path().join("our.txt");
    assert_eq!(
        say(&home, &["lists", "add", "ours", list.to_str().unwrap(), "--verdict", "suspicious"]).0,
        Some(0)
    );
    fill(&home);
    let (code, out, err) = say(&home, &["explain", "203.0.113[.]7", "-f", "table"]);
    assert_eq!((code, &*err), (Some(0), ""));
    insta::assert_snapshot!(out, @"
    provider    verdict     score  known  of                        counts                   from
    abuseipdb   malicious      96  yes    20 min ago   fresh        decides                  api.abuseipdb.com
    shodan      benign          0  yes    1 h ago      fresh        no: asked elsewhere now  loopback
    virustotal  unknown         -  no     60 days ago  out of date  decides                  www.virustotal.com
    ours        suspicious      -  yes    just now                  decides                  this machine
    203.0.113.7 is malicious, score 96, by the rule worst-answer: the worst of the answers, from abuseipdb
    network: NL
    tags: ssh
    read by an older definition, so a run would read them anew: abuseipdb, virustotal
    out of date, so a run would ask again: virustotal
    ");
    let output = home.run(&["explain", IP, "-f", "ndjson"]);
    let records = records(&output.stdout);
    assert_eq!(count(&records, "verdict", "malicious") + count(&records, "rule", "worst-answer"), 2);
    let providers = &records[0]["providers"];
    let uses = ["abuseipdb", "virustotal", "ours"].map(|name| providers[name]["cache"].as_str().unwrap());
    assert_eq!(uses, ["hit", "stale", "local"]);
    assert!(providers.get("shodan").is_none(), "a rehearsal's answer counts for nothing");
    // What an answer is good for is the configuration's to say.
    home.put("config/sift/config.toml", "[providers.abuseipdb]\nmax_age = \"5m\"\n");
    let (_, out, _) = say(&home, &["explain", IP, "-f", "table"]);
    assert!(out.ends_with("out of date, so a run would ask again: abuseipdb, virustotal\n"), "{out}");
}

#[test]
fn what_is_not_kept_can_be_asked_about_or_never_will_be() {
    let home = Home::new();
    fill(&home);
    for (ip, said) in [
        ("9.9.9.9", "no provider's answer about 9.9.9.9 is kept; ask: sift lookup 9.9.9.9\n"),
        (
            "10.1.2.3",
            "no provider's answer about 10.1.2.3 is kept, and none will be: it is never sent (private)\n",
        ),
    ] {
        assert_eq!(say(&home, &["explain", ip, "-f", "table"]), (Some(3), String::new(), said.to_owned()));
        let records = records(&home.run(&["explain", ip]).stdout);
        assert_eq!((count(&records, "status", "error"), count(&records, "error.type", "offline")), (1, 1));
    }
    assert_eq!(say(&home, &["explain", "example.com"]).0, Some(2));
    // Documentation addresses go to a provider on this machine, and to no other.
    let documented = |home: &Home| say(home, &["explain", "198.51.100.9", "-f", "table"]).2;
    assert!(documented(&home).ends_with("it is never sent (documentation)\n"));
    home.put("config/sift/config.toml", "[providers.shodan]\nbase_url = \"http://127.0.0.1:9\"\n");
    assert!(documented(&home).ends_with("is kept; ask: sift lookup 198.51.100.9\n"), "{}", documented(&home));
}

#[test]
fn a_store_that_cannot_be_used_is_told_with_what_to_do() {
    let home = Home::new();
    fill(&home);
    let file = home.path().join("state/sift/sift.db");
    let (code, out, _) = say(&home, &["doctor", "--offline"]);
    assert_eq!(code, Some(0), "{out}");
    let line = out.lines().find(|line| line.contains("sift.db")).unwrap();
    assert!(
        line.starts_with("ok     store          HOME/state/sift/sift.db: ")
            && line.ends_with(", version 1, mode 0600, yours alone"),
        "{line}"
    );
    assert!(out.contains("ok     room           "), "{out}");
    let folder = file.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o2770)).unwrap();
    let (_, out, _) = say(&home, &["doctor", "--offline"]);
    assert!(out.contains("mode 0660, shared by the group "), "{out}");
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();

    home.put("state/sift/sift.db", "this is no store, and nothing of it may be lost");
    let (code, out, err) = say(&home, &["quota"]);
    assert_eq!((code, &*out), (Some(1), ""));
    insta::assert_snapshot!(err, @"
    error: the store HOME/state/sift/sift.db is damaged: file is not a database
      tip: move the file away (with -wal and -shm) to begin anew. Nothing was changed
    ");
    let (code, out, _) = say(&home, &["doctor", "--offline"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("wrong  store          the store HOME/state/sift/sift.db is damaged: "), "{out}");
    assert!(out.contains("--no-store"), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "this is no store, and nothing of it may be lost");
}

/// Who watches over a shared store need not have its keys.
#[test]
fn without_the_keys_what_was_spent_is_told_all_the_same() {
    let home = Home::new();
    fill(&home);
    home.put("config/sift/config.toml", "[providers.greynoise]\nenabled = true\n");
    let output = home.run(&["quota", "-f", "ndjson"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).starts_with("warning: greynoise needs an API key and none was found: "),
        "{}",
        stderr(&output)
    );
    let text = stdout(&output);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().all(|row| row["in_use"] == false) && rows[0]["used"] == 42, "{text}");
}
