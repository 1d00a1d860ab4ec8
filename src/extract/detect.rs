//! Tells what an input holds from its first lines.

use super::{json::Walker, list, list::Entry, own};
use crate::input::is_padding;

/// What the beginning of an input looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Eve,
    List,
    Own,
    /// One JSON list.
    Array,
    /// Objects over several lines.
    Pretty,
    /// Nothing that decides.
    Unknown,
}

/// Looks for the first line that decides. `prefix` is the beginning; `is_all` says that there is no more.
///
/// A line that looks like nothing (the tail of a cut record, a heading) is passed over.
pub(super) fn shape(prefix: &[u8], is_all: bool) -> Shape {
    let mut lines = prefix.split(|&byte| byte == b'\n').map(trim).filter(|line| !line.is_empty()).peekable();
    let mut comments = false;
    while let Some(line) = lines.next() {
        let is_cut = !is_all && lines.peek().is_none();
        match line {
            // A member or the end must come next; else it is what is left of an event.
            b"{" if matches!(lines.peek(), Some([b'"' | b'}', ..])) => return Shape::Pretty,
            b"{" if !is_cut => {}
            [b'{', ..] => match own::is_record(line) {
                Some(true) => return Shape::Own,
                Some(false) => return Shape::Eve,
                // A line longer than the prefix is most likely an event.
                None if is_cut => return Shape::Eve,
                None => {}
            },
            // One whole list among other lines is a line that holds no object.
            [b'[', ..] if lines.peek().is_some() && is_whole(line) => {}
            [b'[', rest @ ..] if matches!(trim(rest).first(), None | Some(b'{' | b'[' | b']')) => {
                return Shape::Array;
            }
            _ => match list::read(line) {
                Entry::Address(_) | Entry::Network => return Shape::List,
                Entry::Comment => comments = true,
                Entry::Bad => {}
            },
        }
    }
    if comments { Shape::List } else { Shape::Unknown }
}

/// Whether it is one JSON text.
fn is_whole(line: &[u8]) -> bool {
    let mut walker = Walker::new(line);
    walker.value().is_ok() && walker.peek().is_none()
}

/// Without what is dropped around a line.
pub(super) fn trim(line: &[u8]) -> &[u8] {
    trim_end(trim_start(line))
}

pub(super) fn trim_start(mut line: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = line
        && is_padding(*first)
    {
        line = rest;
    }
    line
}

pub(super) fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., last] = line
        && is_padding(*last)
    {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Shape) {
        assert_eq!(shape(text.as_bytes(), true), expected, "{text}");
    }

    #[test]
    fn the_first_line_that_decides() {
        check("", Shape::Unknown);
        check("\n\n{\"event_type\":\"stats\"}\n", Shape::Eve);
        check("\"event_type\":\"alert\"}\n{\"src_ip\":\"192.0.2.1\"}\n", Shape::Eve);
        check("{\"cut\n{\"src_ip\":\"192.0.2.1\"}\n", Shape::Eve);
        check("{\"ip\":\"192.0.2.1\",\"v\":1}\n", Shape::Own);
        check("# heading\nip\n192.0.2.1\n", Shape::List);
        check("192.0.2.0/24", Shape::List);
        check("[2001:db8::1]:443\n", Shape::List);
        check("# nothing\n", Shape::List);
        check("[{\"src_ip\":\"192.0.2.1\"}]", Shape::Array);
        check("[\n {\"src_ip\":\"192.0.2.1\"}]", Shape::Array);
        check("[]\n{\"src_ip\":\"192.0.2.1\"}\n", Shape::Eve);
        check("[1,{\"a\":2}]\n{\"src_ip\":\"192.0.2.1\"}\n", Shape::Eve);
        check("[]\n[]\n", Shape::Array);
        check("[{\"src_ip\":\"192.0.2.1\"},\n{\"src_ip\":\"192.0.2.2\"}]\n", Shape::Array);
        check("{\n{\"src_ip\":\"192.0.2.1\"}\n", Shape::Eve);
        check("{\n}\n", Shape::Pretty);
        check("{\n  \"src_ip\": \"192.0.2.1\"\n}\n", Shape::Pretty);
        check("lorem ipsum\ndolor\n", Shape::Unknown);
    }

    #[test]
    fn a_first_line_longer_than_the_prefix_is_an_event() {
        assert_eq!(shape(b"{\"payload\":\"aaaa", false), Shape::Eve);
        assert_eq!(shape(b"{", false), Shape::Eve);
    }
}
