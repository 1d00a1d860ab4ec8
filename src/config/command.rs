//! Runs a command for its output, within bounds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// What the program printed, at most `most` bytes of it, or what it did instead in a few words. Its standard error is
/// ours, so that it can say what is wrong; its standard input is empty. One that takes longer is killed.
pub(super) fn output(
    program: &[String],
    environment: &BTreeMap<OsString, OsString>,
    limit: Duration,
    most: u64,
) -> Result<Vec<u8>, String> {
    let (name, arguments) = program.split_first().ok_or("it is empty")?;
    let mut child = Command::new(name)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("it cannot be run: {error}"))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    if let Some(stdout) = child.stdout.take() {
        // Ends with the pipe: when the child is done, or has been killed and no child of its own holds the pipe open.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(most).read_to_end(&mut bytes).map(|_| bytes);
            // Nobody listens any more once the time is up.
            let _ = sender.send(read);
        });
    }
    let Ok(read) = receiver.recv_timeout(limit) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("it took longer than {} s", limit.as_secs_f64()));
    };
    let bytes = read.map_err(|error| format!("its output cannot be read: {error}"))?;
    let status = child.wait().map_err(|error| format!("its end was not seen: {error}"))?;
    if status.success() { Ok(bytes) } else { Err(format!("it ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Result<Vec<u8>, String> {
        let program = ["sh", "-c", script].map(str::to_owned);
        let environment = [("PATH", "/usr/bin:/bin"), ("A", "b")].map(|(n, v)| (n.into(), v.into())).into();
        output(&program, &environment, limit, 16)
    }

    #[test]
    fn gives_what_is_printed_in_the_environment_given() {
        let limit = Duration::from_secs(30);
        assert_eq!(run("echo $A$HOME", limit), Ok(b"b\n".to_vec()));
        assert_eq!(run("echo no; exit 3", limit), Err("it ended with exit status: 3".to_owned()));
        assert!(
            output(&["/nonexistent".to_owned()], &BTreeMap::new(), limit, 16)
                .unwrap_err()
                .starts_with("it cannot")
        );
        assert!(output(&[], &BTreeMap::new(), limit, 16).is_err());
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let error = run("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error, "it took longer than 0.05 s");
    }

    #[test]
    fn a_command_that_prints_for_ever_is_cut() {
        let printed = run("exec yes", Duration::from_secs(30));
        assert!(printed.is_err_and(|reason| reason.starts_with("it ended with signal")));
    }
}
