//! The command line as people meet it: configuration, keys, words, progress, forms of output, help.

#![expect(clippy::unwrap_used, reason = "the helpers of a test are a test")]

mod config;
mod doctor;
mod dry_run;
mod help;
mod kept;
mod kept_runs;
mod keys;
mod leaks;
mod mistakes;
mod output;
mod progress;
mod prompt;
mod readme;
mod screen;
mod stored;
mod words;

#[path = "../harness/mod.rs"]
mod harness;

use harness::Home;
use std::process::Output;

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The text with the home's path taken out, which differs from run to run.
fn without(home: &Home, text: &str) -> String {
    text.replace(home.path().to_str().unwrap(), "HOME")
}

/// Whether a program is on this machine; says so where a test is left out for want of it.
fn is_here(program: &str) -> bool {
    let here = std::process::Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !here {
        // Shown with --nocapture; a test has no other way to say that it was left out.
        #[expect(clippy::print_stdout, reason = "the notice that a test was left out")]
        {
            println!("{program} is not here, and its test is left out");
        }
    }
    here
}
