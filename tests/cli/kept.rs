//! What outlives a run, as people meet it: its flags, and the commands that show it.

use super::harness::{Home, stderr};

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
