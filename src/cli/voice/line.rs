//! One message in the forms that standard error knows.
//!
//! | form | an error with a tip |
//! |---|---|
//! | text | `error: no such file` / `  tip: …` |
//! | journal | `<3>error: no such file` / `<3>  tip: …` (sd-daemon(3); no time, no colour: the journal has both) |
//! | JSON | `{"timestamp":"…","level":"error","message":"no such file","tip":"…"}` |

use super::Detail;
use crate::output::harmless;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How a message looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Journal,
    Json,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Level {
    /// Something did not work.
    Error,
    /// Something is not as it should be.
    Warning,
    /// What goes on.
    Info,
    /// What goes on in detail.
    Debug,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// syslog's priority (sd-daemon(3)).
    const fn priority(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Info => 6,
            Self::Debug => 7,
        }
    }

    const fn color(self) -> &'static str {
        match self {
            Self::Error => "\u{1b}[1;31m",
            Self::Warning => "\u{1b}[1;33m",
            Self::Info | Self::Debug => "\u{1b}[2m",
        }
    }
}

const TIP_COLOR: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

/// One message.
pub(super) struct Line<'a> {
    pub(super) level: Level,
    pub(super) text: &'a str,
    pub(super) details: &'a [Detail<'a>],
    pub(super) fields: &'a [(String, Value)],
    /// Stands without the level's word.
    pub(super) is_plain: bool,
    /// Is said even where its level is not.
    pub(super) is_vital: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(level: Level, text: &'a str) -> Self {
        Self { level, text, details: &[], fields: &[], is_plain: false, is_vital: false }
    }

    /// The message with its line breaks.
    pub(super) fn render(&self, form: Form, color: bool) -> String {
        match form {
            Form::Text => self.lines(color).into_iter().fold(String::new(), |text, line| text + &line + "\n"),
            Form::Journal => {
                let mut text = String::new();
                for line in self.lines(false) {
                    // Writing to a String cannot fail.
                    let _ = writeln!(text, "<{}>{line}", self.level.priority());
                }
                text
            }
            Form::Json => self.json(),
        }
    }

    fn lines(&self, color: bool) -> Vec<String> {
        let paint =
            |code: &str, text: &str| if color { format!("{code}{text}{RESET}") } else { text.to_owned() };
        let mut text = String::new();
        if !self.is_plain {
            text = paint(self.level.color(), &format!("{}:", self.level.word())) + " ";
        }
        let mut lines: Vec<String> = Vec::new();
        for line in self.text.trim_end().lines() {
            // What a provider or a file's name brings along must not steer the terminal.
            lines.push(std::mem::take(&mut text) + &harmless(line));
        }
        if !self.is_plain
            && let Some(last) = lines.last_mut()
        {
            for (name, value) in self.fields {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = write!(last, " {name}={}", harmless(&shown));
            }
        }
        for (label, detail) in self.details {
            let label = if *label == "tip" { paint(TIP_COLOR, "tip:") } else { format!("{label}:") };
            lines.push(format!("  {label} {}", harmless(&detail.replace('\n', "; "))));
        }
        lines
    }

    fn json(&self) -> String {
        let mut object = Map::new();
        object.insert("timestamp".to_owned(), format!("{:.3}", Timestamp::now()).into());
        object.insert("level".to_owned(), self.level.word().into());
        object.insert("message".to_owned(), self.text.trim_end().into());
        for (name, value) in self.fields {
            object.insert(name.clone(), value.clone());
        }
        for (label, detail) in self.details {
            // Of several tips a list.
            let entry = object.entry(label.replace(' ', "_")).or_insert(Value::Null);
            *entry = match std::mem::take(entry) {
                Value::Null => detail.as_str().into(),
                Value::Array(list) => list.into_iter().chain([detail.as_str().into()]).collect(),
                first => Value::Array(vec![first, detail.as_str().into()]),
            };
        }
        Value::Object(object).to_string() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(details: &'a [Detail<'a>]) -> Line<'a> {
        Line { details, ..Line::new(Level::Error, "no such file") }
    }

    #[test]
    fn text_and_journal() {
        let details = [("key from", "VT_API_KEY".to_owned()), ("tip", "look again".to_owned())];
        let said = line(&details);
        assert_eq!(
            said.render(Form::Text, false),
            "error: no such file\n  key from: VT_API_KEY\n  tip: look again\n"
        );
        assert_eq!(
            said.render(Form::Journal, true),
            "<3>error: no such file\n<3>  key from: VT_API_KEY\n<3>  tip: look again\n"
        );
        assert!(said.render(Form::Text, true).starts_with("\u{1b}[1;31merror:\u{1b}[0m no such file\n"));
    }

    #[test]
    fn json_is_one_line_whatever_is_said() {
        let details = [("tip", "a\nb".to_owned())];
        let fields = [("provider".to_owned(), Value::from("shodan"))];
        let said = Line { fields: &fields, details: &details, ..Line::new(Level::Warning, "two\nlines") };
        let text = said.render(Form::Json, false);
        assert_eq!(text.lines().count(), 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["message"], "two\nlines");
        assert_eq!(
            (&value["level"], &value["tip"], &value["provider"]),
            (&"warning".into(), &"a\nb".into(), &"shodan".into())
        );
    }

    #[test]
    fn nothing_that_is_said_steers_the_terminal() {
        let details = [("tip", "\u{9b}2J".to_owned())];
        let said = Line { details: &details, ..Line::new(Level::Error, "\u{1b}[2Jno\u{7}") };
        assert!(!said.render(Form::Text, false).chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn an_event_shows_its_fields() {
        let fields =
            [("provider".to_owned(), Value::from("shodan")), ("wait_s".to_owned(), Value::from(2.5))];
        let said = Line { fields: &fields, ..Line::new(Level::Info, "holds off") };
        assert_eq!(said.render(Form::Text, false), "info: holds off provider=shodan wait_s=2.5\n");
    }
}
