//! Text that others wrote, made safe to show on a terminal.

use std::borrow::Cow;

/// Stands for every character that was taken out.
const REPLACEMENT: char = '\u{fffd}';

/// The text with everything replaced that moves a cursor, changes a colour, breaks a line, hides itself or turns the
/// direction of writing: control characters (C0, DEL, C1), bidirectional marks and overrides, line and paragraph
/// separators, zero-width characters, and Unicode's tag characters. One character stays one character.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_harmless(c) { c } else { REPLACEMENT }).collect())
}

const fn is_harmless(c: char) -> bool {
    !c.is_ascii_control()
        && !matches!(c,
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Columns that a terminal gives to the text: 2 for the wide letters of East Asia and pictographs, 0 for combining
/// marks, 1 for the rest. The common ranges of Unicode's East Asian Width; a rare letter outside them moves what
/// follows it by a column, and no more.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

pub(super) const fn char_width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_and_overrides_do_nothing_any_more() {
        assert_eq!(harmless("\u{1b}[2Jred\u{7}\r\n"), "\u{fffd}[2Jred\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(harmless("gpj\u{202e}exe"), "gpj\u{fffd}exe");
        assert_eq!(harmless("\u{9b}31m"), "\u{fffd}31m");
        assert!(matches!(harmless("Fédération 株式会社"), Cow::Borrowed(_)));
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(width("株式"), 4);
        assert_eq!(width("e\u{301}"), 1);
    }

    proptest! {
        #[test]
        fn never_a_control_character(text in any::<String>()) {
            let shown = harmless(&text);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert_eq!(shown.chars().count(), text.chars().count());
        }
    }
}
