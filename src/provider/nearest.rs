//! "Did you mean": the known name that a mistyped one comes closest to.

/// The name among `known` with the fewest edits to `typed`, when these are at most a third of its length (and at
/// least one is always allowed). Ties go to the first.
#[must_use]
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are nobody's typing error, and the distance is quadratic.
    const LONGEST: usize = 64;
    if typed.len() > LONGEST {
        return None;
    }
    let allowed = (typed.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(typed, name), name))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Edits between two texts; two neighbours swapped count as one (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let mut last = None;
    for (line, one) in left.chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, other) in right.iter().enumerate() {
            let same = usize::from(one != *other);
            let mut best = (row[column] + same).min(row[column + 1] + 1).min(next[column] + 1);
            if line > 0 && column > 0 && Some(*other) == last && right[column - 1] == one {
                best = best.min(before[column - 1] + 1);
            }
            next.push(best);
        }
        last = Some(one);
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["method", "base_url", "path", "query", "abuseipdb", "virustotal"];
        for (typed, meant) in [
            ("metod", Some("method")),
            ("baseurl", Some("base_url")),
            ("abuseidpb", Some("abuseipdb")),
            ("pth", Some("path")),
            ("shodan", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
