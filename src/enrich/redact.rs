//! Keeps our key out of what a provider says: one that echoes requests would carry it into records and messages.

use crate::provider::Reading;

/// Stands where a key stood.
const MASK: &str = "********";
/// A shorter key is in too many words to be masked; no provider's is.
const SHORTEST: usize = 4;

/// Masks the key in every text of a reading, in upper or lower case: a host name comes back in lower case.
pub(super) fn reading(reading: &mut Reading, key: &str) {
    let answer = match reading {
        Reading::Failure(failure) => return text(&mut failure.message, key),
        Reading::Answer(answer) => answer,
    };
    let lists = [&mut answer.tags, &mut answer.hostnames, &mut answer.vulns];
    lists.into_iter().flatten().for_each(|one| text(one, key));
    let single = [
        &mut answer.first_seen,
        &mut answer.last_seen,
        &mut answer.country,
        &mut answer.as_org,
        &mut answer.reference,
    ];
    single.into_iter().flatten().for_each(|one| text(one, key));
}

/// Enough to tell a proxy's page from an API that has changed.
const SHOWN_CHARS: usize = 400;

/// How a body begins, for a person, without the key.
pub(super) fn start(body: &[u8], key: &str) -> String {
    let mut start = String::from_utf8_lossy(body).into_owned();
    text(&mut start, key);
    start.chars().take(SHOWN_CHARS).collect()
}

/// Masks the key in one text.
fn text(text: &mut String, key: &str) {
    let at = |text: &str| {
        let (text, key) = (text.as_bytes(), key.as_bytes());
        text.windows(key.len()).position(|window| window.eq_ignore_ascii_case(key))
    };
    if key.len() < SHORTEST || !key.is_ascii() {
        return;
    }
    // A window that equals an ASCII key begins and ends at character boundaries.
    while let Some(at) = at(text) {
        text.replace_range(at..at + key.len(), MASK);
    }
}

/// A reply's body without the key.
pub(super) fn body(raw: Box<[u8]>, key: &str) -> Box<[u8]> {
    let key = key.as_bytes();
    if key.is_empty() || memchr::memmem::find(&raw, key).is_none() {
        return raw;
    }
    let mut clean = Vec::with_capacity(raw.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(&raw, key) {
        clean.extend_from_slice(raw.get(from..at).unwrap_or_default());
        clean.extend_from_slice(MASK.as_bytes());
        from = at + key.len();
    }
    clean.extend_from_slice(raw.get(from..).unwrap_or_default());
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tester's server sent the key back in a redirect's host name, in an error's text and in a tag.
    #[test]
    fn an_echoed_key_is_masked_in_any_case() {
        let mut said = "redirects to evil-sekret77.example, not to SEKRET77".to_owned();
        text(&mut said, "seKret77");
        assert_eq!(said, "redirects to evil-********.example, not to ********");
        assert_eq!(&*body(b"a seKret77 b seKret77".as_slice().into(), "seKret77"), b"a ******** b ********");
    }

    #[test]
    fn a_body_is_shown_without_the_key_even_where_it_is_cut() {
        let echoed = format!("{}sekret77 and more", "x".repeat(SHOWN_CHARS - 10));
        assert_eq!(
            start(echoed.as_bytes(), "sekret77"),
            format!("{}********", "x".repeat(SHOWN_CHARS - 10)) + " a"
        );
        assert_eq!(start(b"<html>\xff", "sekret77"), "<html>\u{fffd}");
    }

    proptest! {
        #[test]
        fn no_key_is_left_and_nothing_panics(mut said in "\\PC{0,40}", key in "[a-c]{0,6}") {
            text(&mut said, &key);
            prop_assert!(key.len() < SHORTEST || !said.to_ascii_lowercase().contains(&key));
        }
    }
}
