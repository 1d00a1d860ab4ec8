//! `sift enrich -n`: it says what would be asked, and sends nothing.

use super::harness::{Home, Simulator, list, stderr};
use super::stdout;
use serde_json::Value;

#[test]
fn it_says_who_would_be_asked_and_asks_nobody() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let mut command = home.sift(&["enrich", "-n", "fixtures/eve.json"]);
    simulator.point(&mut command).env("VT_API_KEY", "fake").env("SIFT_ABUSEIPDB_RATE", "10/s");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output), @"
    51 addresses in 61 events: 39 to ask about; 1 broadcast, 1 link-local, 2 multicast, 7 private, 1 unspecified stay here
    provider    from cache  to ask   left     at  takes
    abuseipdb            0      39  1,000   10/s  4 s
    virustotal           0      39    500  4/min  9 min 35 s
    the address, with a key, would go to 127.0.0.1
    nothing was sent
    ");
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
}

#[test]
fn what_would_not_be_answered_ends_in_3() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let file = home.put("list", &list(600));
    let run = |more: &[&str]| {
        let mut command =
            home.sift(&[&["enrich", "-n", "-p", "virustotal", file.to_str().unwrap()], more].concat());
        let output = simulator.point(&mut command).env("VT_API_KEY", "fake").output().unwrap();
        let row = stdout(&output)
            .lines()
            .find(|line| line.starts_with("virustotal "))
            .unwrap_or_default()
            .to_owned();
        (output.status.code(), row.split_once("/min  ").unwrap_or_default().1.to_owned())
    };
    // 500 a day at 4 a minute.
    assert_eq!(
        run(&[]),
        (Some(3), "2 h 5 min, and 100 would not be answered today, from rank 501 on".to_owned())
    );
    assert_eq!(
        run(&["--max-time", "5m"]),
        (Some(3), "4 min 47 s, and 580 would not be answered within --max-time, from rank 21 on".to_owned())
    );
    assert_eq!(run(&["--limit", "20"]), (Some(3), "4 min 47 s".to_owned()));
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
}

#[test]
fn a_budget_is_for_all_providers_together() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let run = |budget: &str| {
        let mut command = home.sift(&["enrich", "-n", "fixtures/eve.json", "--budget", budget]);
        simulator.point(&mut command).env("VT_API_KEY", "fake").env("SIFT_ABUSEIPDB_RATE", "10/s");
        let output = command.output().unwrap();
        let text = stdout(&output).replace('\n', "; ");
        let said = text.contains(&format!("; all of them together: at most {budget} (--budget); "));
        assert!(said, "{text}");
        output.status.code()
    };
    // 39 at each of the two: either fits alone, both do not.
    assert_eq!((run("78"), run("77"), run("39")), (Some(0), Some(3), Some(3)));
    assert_eq!(simulator.ledger()["total"]["requests"], 0);
}

#[test]
fn the_same_as_ndjson_and_without_touching_the_output() {
    let home = Home::new();
    let simulator = Simulator::start(&home, "");
    let file = home.path().join("out.ndjson");
    let args = ["enrich", "-n", "fixtures/eve.json", "-f", "ndjson", "-o", file.to_str().unwrap()];
    let output = home.ask(&simulator, &args);
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["kind"], &lines[0]["to_ask"]), (2, &"input".into(), &39.into()));
    assert_eq!(
        (&lines[1]["provider"], &lines[1]["to_ask"], &lines[1]["key"]),
        (&"abuseipdb".into(), &39.into(), &true.into())
    );
    assert!(
        std::fs::read_dir(home.path()).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("out"))
    );
}
