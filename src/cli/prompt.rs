//! Asks people: for a secret, which may come from a pipe too, or for a yes.
//!
//! On a terminal nothing is shown, and Ctrl-C is read as a key rather than sent as a signal: a signal would end the
//! process with the terminal still silent.

use super::report::CliError;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, IsTerminal as _, Read, Write as _};

/// Keys have some hundred bytes; what is longer is no key.
const MOST_BYTES: u64 = 64 * 1024;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const CTRL_U: u8 = 21;
const BACKSPACE: [u8; 2] = [8, 127];

/// The secret: typed after `prompt` where standard input is a terminal, else the first line of standard input.
///
/// # Errors
/// Ctrl-C, and what cannot be read.
pub(super) fn secret(prompt: &str) -> Result<SecretString, CliError> {
    let failed = |source| CliError::System { what: "read the API key", source };
    if io::stdin().is_terminal() {
        return typed(prompt)?.ok_or(CliError::Left);
    }
    let mut bytes = Zeroizing::new(Vec::new());
    io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| failed(io::Error::from(io::ErrorKind::InvalidData)))?;
    Ok(text.lines().next().unwrap_or_default().to_owned().into())
}

/// Whether a person at the terminal says yes; everything else is a no.
///
/// # Errors
/// Where nobody can be asked.
pub(super) fn agrees(question: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::usage(
            "nothing was changed: nobody can be asked",
            "--yes does it without asking",
        ));
    }
    let failed = |source| CliError::System { what: "read from the terminal", source };
    io::stderr().write_all(question.as_bytes()).map_err(failed)?;
    let mut line = String::new();
    io::stdin().lock().take(MOST_BYTES).read_line(&mut line).map_err(failed)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// None when Ctrl-C, or Ctrl-D on an empty line, was pressed.
fn typed(prompt: &str) -> Result<Option<SecretString>, CliError> {
    let failed = |source| CliError::System { what: "read from the terminal", source };
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(failed)?;
    // Before the prompt: who sees it may type at once.
    let keyboard = terminal.try_clone().map_err(failed)?;
    let silent = Silent::new(&keyboard).map_err(failed)?;
    terminal.write_all(prompt.as_bytes()).map_err(failed)?;
    let line = line(&terminal).map_err(failed)?;
    drop(silent);
    terminal.write_all(b"\n").map_err(failed)?;
    Ok(line)
}

/// One line, key by key.
fn line(mut from: impl Read) -> io::Result<Option<SecretString>> {
    let mut line = Zeroizing::new(Vec::with_capacity(256));
    let mut byte = [0];
    loop {
        let ended = from.read(&mut byte)? == 0;
        match byte[0] {
            _ if ended => break,
            b'\r' | b'\n' => break,
            CTRL_C => return Ok(None),
            CTRL_D if line.is_empty() => return Ok(None),
            CTRL_D => break,
            CTRL_U => line.clear(),
            key if BACKSPACE.contains(&key) => {
                line.pop();
            }
            key if line.len() as u64 <= MOST_BYTES => line.push(key),
            _ => {}
        }
    }
    let text = std::str::from_utf8(&line).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Some(text.to_owned().into()))
}

/// A terminal that shows nothing and sends no signals, until this is dropped.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // Nothing is left to try where this fails.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    fn read(keys: &[u8]) -> Option<String> {
        line(keys).unwrap().map(|line| line.expose_secret().to_owned())
    }

    #[test]
    fn keys_edit_the_line() {
        assert_eq!(read(b"s3cret\rmore").as_deref(), Some("s3cret"));
        assert_eq!(read(b"wrong\x15s3cx\x7fret\n").as_deref(), Some("s3cret"));
        assert_eq!(read(b"s3c\x03ret\n"), None);
        assert_eq!(read(b"\x04"), None);
        assert_eq!(read(b"s3cret\x04").as_deref(), Some("s3cret"));
        assert_eq!(read(b"").as_deref(), Some(""));
    }
}
