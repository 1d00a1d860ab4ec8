//! The prompt for a key, on a pseudo-terminal.

use super::harness::Home;
use super::is_here;
use super::keys::KEY;
use super::screen::run;
use serde_json::json;

#[test]
fn a_key_is_asked_for_without_showing_it() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let command = home.sift(&["credentials", "set", "virustotal"]);
    let typed = format!("wrong\u{15}{KEY}\r");
    let shown = run(&home, &command, &json!({ "type": [["(not shown): ", typed]] }));
    assert_eq!(shown.status, 0, "{}", shown.raw());
    assert!(shown.raw().starts_with("API key of VirusTotal (not shown): \r\nstored in "), "{}", shown.raw());
    assert!(!shown.raw().contains("k3y") && !shown.raw().contains("wrong") && shown.echo);
    let stored = std::fs::read_to_string(home.path().join("config/sift/credentials.toml")).unwrap();
    assert!(stored.contains(&format!("\"virustotal\" = \"{KEY}\"")), "{stored}");
}

#[test]
fn ctrl_c_leaves_everything_as_it_was() {
    if !is_here("python3") {
        return;
    }
    let home = Home::new();
    let command = home.sift(&["credentials", "set", "virustotal"]);
    let shown = run(&home, &command, &json!({ "type": [["(not shown): ", "half\u{3}"]] }));
    assert_eq!((shown.status, shown.echo), (130, true), "{}", shown.raw());
    assert!(!shown.raw().contains("half") && !home.path().join("config/sift/credentials.toml").exists());
}
