//! The progress block at the foot of a terminal.
//!
//! After a block is drawn the cursor goes back to its first column, so whatever comes next begins with "clear from here
//! to the end of the screen". That leaves nothing behind even where a terminal has been made narrower and has broken the
//! block's lines anew, which counting lines would. No line is as wide as the terminal, so none is broken when drawn.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Clears from the start of this line to the end of the screen.
const CLEAR: &str = "\r\u{1b}[J";

/// Where standard output leads, and so who else may write on this screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The same terminal, written by us alone.
    Terminal,
    /// A pipe, whose reader may write on the terminal a moment later (`| jq`).
    Pipe,
    /// Neither.
    Elsewhere,
}

/// What a pipe's reader is given to write its line before the block comes back. jq took 1 to 4 ms for a record.
const READERS_TURN: Duration = Duration::from_millis(30);

/// The block and whether it is on the screen.
#[derive(Debug)]
pub(super) struct Screen {
    lines: Vec<String>,
    is_drawn: bool,
    output: Option<Output>,
    /// Standard output is being written to.
    is_away: bool,
    gave_way: Option<Instant>,
}

impl Screen {
    pub(super) const fn new() -> Self {
        Self { lines: Vec::new(), is_drawn: false, output: None, is_away: false, gave_way: None }
    }

    /// Whether there is a block at all.
    pub(super) fn is_shown(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Draws these lines in the place of those before.
    pub(super) fn draw(&mut self, lines: Vec<String>) {
        self.lines = lines;
        let is_readers_turn = self.gave_way.is_some_and(|at| at.elapsed() < READERS_TURN);
        if !is_readers_turn && !self.is_away && self.is_shown() {
            self.put(b"");
        }
    }

    /// Writes text above the block.
    pub(super) fn above(&mut self, text: &[u8]) {
        if self.is_shown() && !self.is_away { self.put(text) } else { super::put(text) }
    }

    /// Clears the block away for a write to standard output, if there is one; then [`Screen::give_back`] is due.
    pub(super) fn make_room(&mut self) -> bool {
        if !self.is_shown() || self.output() == Output::Elsewhere {
            return false;
        }
        self.clear();
        self.is_away = true;
        true
    }

    /// After that write: the block comes back at once, or when a pipe's reader had its turn.
    pub(super) fn give_back(&mut self) {
        self.is_away = false;
        if self.output() == Output::Pipe {
            self.gave_way = Some(Instant::now());
        } else if self.is_shown() {
            self.put(b"");
        }
    }

    fn clear(&mut self) {
        if self.is_drawn {
            super::put(CLEAR.as_bytes());
            self.is_drawn = false;
        }
    }

    /// Takes the block away for good.
    pub(super) fn end(&mut self) {
        self.lines.clear();
        self.clear();
    }

    /// Text, then the block, in one write.
    fn put(&mut self, text: &[u8]) {
        let (columns, rows) = size();
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(if self.is_drawn { CLEAR.as_bytes() } else { b"" });
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(&block(&self.lines, columns, rows));
        self.is_drawn = true;
        super::put(&bytes);
    }

    fn output(&mut self) -> Output {
        *self.output.get_or_insert_with(|| {
            use std::io::IsTerminal as _;
            let is_pipe = || {
                rustix::fs::fstat(std::io::stdout()).is_ok_and(|stat| {
                    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo
                })
            };
            if std::io::stdout().is_terminal() {
                Output::Terminal
            } else if is_pipe() {
                Output::Pipe
            } else {
                Output::Elsewhere
            }
        })
    }
}

/// The block's bytes, with the cursor back at its beginning; lines that do not fit are cut, as are rows.
fn block(lines: &[String], columns: usize, rows: usize) -> Vec<u8> {
    let mut text = String::new();
    let shown = lines.len().min(rows.saturating_sub(1).max(1));
    for (place, line) in lines.iter().take(shown).enumerate() {
        if place > 0 {
            text.push_str("\r\n");
        }
        text.extend(line.chars().take(columns.saturating_sub(1)));
    }
    text.push('\r');
    if shown > 1 {
        // Writing to a String cannot fail.
        let _ = write!(text, "\u{1b}[{}A", shown - 1);
    }
    text.into_bytes()
}

/// Columns and rows of the terminal, asked anew each time: it may have been resized.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        _ => (80, 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_cursor_ends_where_the_block_begins() {
        assert_eq!(block(&lines(&["one"]), 80, 24), b"one\r");
        assert_eq!(block(&lines(&["one", "two", "three"]), 80, 24), b"one\r\ntwo\r\nthree\r\x1b[2A");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(block(&lines(&["abcdef", "ghi"]), 4, 24), b"abc\r\nghi\r\x1b[1A");
        assert_eq!(block(&lines(&["a", "b", "c", "d"]), 80, 3), b"a\r\nb\r\x1b[1A");
        assert_eq!(block(&lines(&["a", "b"]), 80, 1), b"a\r");
    }
}
