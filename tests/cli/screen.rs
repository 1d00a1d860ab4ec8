//! A pseudo-terminal, and what a person would see on it.

use super::harness::Home;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a command did on a terminal.
pub(crate) struct Shown {
    pub(crate) status: i64,
    /// Whether the terminal echoes afterwards.
    pub(crate) echo: bool,
    pieces: Vec<(usize, String)>,
}

/// Runs a command on a terminal. `more` is what `terminal.py` takes beside the command.
pub(crate) fn run(home: &Home, command: &Command, more: &Value) -> Shown {
    let text = |value: &std::ffi::OsStr| value.to_str().unwrap().to_owned();
    let argv: Vec<String> = [command.get_program()].into_iter().chain(command.get_args()).map(text).collect();
    let mut env = serde_json::Map::new();
    env.insert("TERM".into(), "xterm".into());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            env.insert(text(name), text(value).into());
        }
    }
    let mut spec = json!({ "argv": argv, "env": env, "cwd": env!("CARGO_MANIFEST_DIR"), "size": [24, 100] });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/terminal.py");
    let mut python = Command::new("python3");
    let python = python.arg(script).current_dir(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(spec.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pieces = told["pieces"].as_array().unwrap().iter().map(|piece| {
        // Latin-1 stands for bytes.
        let bytes: Vec<u8> = piece[1].as_str().unwrap().chars().map(|c| u8::try_from(c).unwrap()).collect();
        (usize::try_from(piece[0].as_u64().unwrap()).unwrap(), bytes)
    });
    // A character may be cut in two by a read; all that is cut that way here is an ellipsis.
    let pieces = pieces.map(|(width, bytes)| (width, String::from_utf8_lossy(&bytes).into_owned())).collect();
    Shown { status: told["status"].as_i64().unwrap(), echo: told["echo"].as_bool().unwrap(), pieces }
}

/// How a terminal treats lines that are wider than it has become.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Terminal {
    /// Breaks them anew, as most do today.
    Reflows,
    /// Cuts them, as xterm does.
    Cuts,
}

impl Shown {
    /// Everything that was written, in order.
    pub(crate) fn raw(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The lines that are on the screen in the end, above its upper edge too.
    pub(crate) fn lines(&self, terminal: Terminal) -> Vec<String> {
        let mut screen = Screen { lines: vec![Vec::new()], line: 0, column: 0, width: usize::MAX };
        for (width, text) in &self.pieces {
            if matches!(terminal, Terminal::Reflows) {
                screen.width = *width;
            }
            screen.take(text);
        }
        let text = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
        screen.lines.iter().map(text).collect()
    }
}

/// Logical lines, each taking as many rows as its length asks for; so a change of the width needs no work.
struct Screen {
    lines: Vec<Vec<char>>,
    line: usize,
    column: usize,
    width: usize,
}

impl Screen {
    fn take(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column -= self.column % self.width,
                '\n' => self.down(),
                '\u{1b}' => {
                    assert_eq!(rest.next(), Some('['), "{text:?}");
                    let mut argument = String::new();
                    let end = rest.by_ref().find(|c| {
                        let is_end = c.is_ascii_alphabetic();
                        if !is_end {
                            argument.push(*c);
                        }
                        is_end
                    });
                    self.obey(end.unwrap(), &argument);
                }
                c => {
                    let line = &mut self.lines[self.line];
                    line.resize(line.len().max(self.column + 1), ' ');
                    line[self.column] = c;
                    self.column += 1;
                }
            }
        }
    }

    fn obey(&mut self, end: char, argument: &str) {
        match end {
            'J' if argument.is_empty() => {
                self.lines.truncate(self.line + 1);
                self.lines[self.line].truncate(self.column);
            }
            'A' => (0..argument.parse().unwrap_or(1)).for_each(|_| self.up()),
            'm' => {}
            other => panic!("this terminal does not know {argument}{other}"),
        }
    }

    fn down(&mut self) {
        let next = self.column.saturating_add(self.width);
        if next - next % self.width < self.lines[self.line].len() {
            self.column = next;
            return;
        }
        self.line += 1;
        self.column %= self.width;
        if self.line == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn up(&mut self) {
        if self.column >= self.width {
            self.column -= self.width;
            return;
        }
        self.line = self.line.checked_sub(1).unwrap();
        let last = self.lines[self.line].len().saturating_sub(1);
        self.column += last - last % self.width;
    }
}

#[test]
fn this_terminal_is_one() {
    let shown = |pieces: &[(usize, &str)]| Shown {
        status: 0,
        echo: true,
        pieces: pieces.iter().map(|(width, text)| (*width, (*text).to_owned())).collect(),
    };
    let lines = |pieces: &[(usize, &str)], terminal| shown(pieces).lines(terminal);
    assert_eq!(lines(&[(80, "a\r\nbc\rx\r\n")], Terminal::Cuts), ["a", "xc", ""]);
    assert_eq!(lines(&[(80, "one\r\ntwo\r\u{1b}[1A\r\u{1b}[Jlog\r\n")], Terminal::Reflows), ["log", ""]);
    // Five columns wide, the first line takes two rows, and two up from the second is its first.
    assert_eq!(lines(&[(80, "abcdefg\r\nhi\r"), (5, "\u{1b}[2A\rX")], Terminal::Reflows), ["Xbcdefg", "hi"]);
    assert_eq!(lines(&[(80, "abcdefg\r\nhi\r"), (5, "\u{1b}[1A\rX")], Terminal::Reflows), ["abcdeXg", "hi"]);
}
