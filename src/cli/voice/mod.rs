//! Standard error: everything that is said to people, in one form, one piece at a time.
//!
//! Errors, warnings, notes, the log and the progress block all pass through here, under one lock, so that no line tears
//! another. The form is text, text with journal priorities, or JSON lines ([`LogForm`]); `-q` and `-qq` are kept here.
//! There is one standard error in a process, so there is one voice.

mod line;
mod screen;

use super::args::{Global, LogForm, When};
use crate::config::LogFormat;
use line::{Form, Line};
use screen::Screen;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

pub(super) use line::Level;

/// A detail under a message: its label and its text, as in `tip: …`.
pub(super) type Detail<'a> = (&'a str, String);

struct Voice {
    form: Form,
    color: bool,
    quiet: u8,
    screen: Screen,
}

/// Locked for one piece of text at a time, never across anything that waits but the write itself.
static VOICE: Mutex<Voice> =
    Mutex::new(Voice { form: Form::Text, color: false, quiet: 0, screen: Screen::new() });

fn voice() -> MutexGuard<'static, Voice> {
    // A panic in here left at worst a half-written line behind.
    VOICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets form, colour and loudness, as far as the command line and the environment say.
pub(super) fn start(global: &Global) {
    let mut voice = voice();
    voice.quiet = global.quiet;
    voice.color = match global.color {
        When::Auto => anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never,
        When::Always => true,
        When::Never => false,
    };
    let variable =
        || <LogForm as clap::ValueEnum>::from_str(&std::env::var("SIFT_LOG_FORMAT").ok()?, false).ok();
    voice.form = form(global.log_format.or_else(variable).unwrap_or(LogForm::Auto));
}

/// Takes the form that the configuration holds; a flag is among its layers.
pub(super) fn settle(format: LogFormat) {
    voice().form = form(match format {
        LogFormat::Auto => LogForm::Auto,
        LogFormat::Text => LogForm::Text,
        LogFormat::Json => LogForm::Json,
    });
}

fn form(wanted: LogForm) -> Form {
    match wanted {
        LogForm::Auto if is_journal() => Form::Journal,
        LogForm::Auto | LogForm::Text => Form::Text,
        LogForm::Json => Form::Json,
    }
}

/// Whether standard error is the journal's socket. systemd.exec(5) says to compare device and inode: the variable is
/// inherited by children whose standard error may have been sent elsewhere.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Some((device, inode)) = stream.split_once(':') else { return false };
    std::fs::metadata("/dev/stderr")
        .is_ok_and(|metadata| device.parse() == Ok(metadata.dev()) && inode.parse() == Ok(metadata.ino()))
}

/// Whether a progress block may be drawn.
pub(super) fn may_draw(wanted: When) -> bool {
    let voice = voice();
    let quiet = voice.quiet > 0;
    match wanted {
        When::Always => !quiet && voice.form == Form::Text,
        When::Auto => !quiet && voice.form == Form::Text && std::io::stderr().is_terminal(),
        When::Never => false,
    }
}

/// An error, whatever `-q` says.
pub(super) fn error(text: &str, details: &[Detail<'_>]) {
    speak(&Line { details, ..Line::new(Level::Error, text) });
}

/// An error in a panic, which may have struck while the voice was held: then it is said past it.
pub(super) fn last_words(text: &str, details: &[Detail<'_>]) {
    let line = Line { details, ..Line::new(Level::Error, text) };
    let mut voice = match VOICE.try_lock() {
        Ok(voice) => voice,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return put(line.render(Form::Text, false).as_bytes()),
    };
    voice.screen.end();
    put(line.render(voice.form, voice.color).as_bytes());
}

/// A warning; not with `-qq`.
pub(super) fn warn(text: impl std::fmt::Display) {
    warn_with(&text.to_string(), &[]);
}

/// A warning with details under it; not with `-qq`.
pub(super) fn warn_with(text: &str, details: &[Detail<'_>]) {
    speak(&Line { details, ..Line::new(Level::Warning, text) });
}

/// Something worth knowing, without a label; not with `-q`.
pub(super) fn note(text: impl std::fmt::Display) {
    speak(&Line { is_plain: true, ..Line::new(Level::Info, &text.to_string()) });
}

/// The same, even with `-q`: what a person must know who has just pressed Ctrl-C, or where records were left.
pub(super) fn tell(text: impl std::fmt::Display) {
    speak(&Line { is_plain: true, is_vital: true, ..Line::new(Level::Info, &text.to_string()) });
}

/// A result that is an object where lines are JSON, under `key`; not with `-q`.
pub(super) fn object(text: &str, key: &str, value: serde_json::Value) {
    let fields = [(key.to_owned(), value)];
    speak(&Line { is_plain: true, fields: &fields, ..Line::new(Level::Info, text) });
}

/// An event of the log; the log's own filter has let it through, so `-q` does not count.
pub(super) fn event(level: Level, text: &str, fields: &[(String, serde_json::Value)]) {
    speak(&Line { fields, is_vital: true, ..Line::new(level, text) });
}

fn speak(line: &Line<'_>) {
    let mut voice = voice();
    let is_heard = line.is_vital
        || match line.level {
            Level::Error => true,
            Level::Warning => voice.quiet < 2,
            Level::Info | Level::Debug => voice.quiet < 1,
        };
    if is_heard {
        let text = line.render(voice.form, voice.color);
        voice.screen.above(text.as_bytes());
    }
}

/// Shows these lines as the progress block, in the place of those shown before.
pub(super) fn draw(lines: Vec<String>) {
    voice().screen.draw(lines);
}

/// Takes the progress block away, and leaves nothing of it.
pub(super) fn erase() {
    voice().screen.end();
}

/// Writes to standard output without tearing the progress block, where there is one.
pub(super) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let is_shown = voice().screen.make_room();
    // Not under the lock: a reader that does not read must not keep errors and signals from being said.
    let result = write();
    if is_shown {
        voice().screen.give_back();
    }
    result
}

/// One write(2), so that lines of several processes do not mix. Nobody can be told of a failure here.
fn put(bytes: &[u8]) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
}
