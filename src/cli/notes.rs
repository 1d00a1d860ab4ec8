//! Terms that a provider's user must know: said once, at its first use.
//!
//! What was said is kept in the state folder, in `notes-told`: a line each of the provider and its terms, so that changed
//! terms are said anew. Where the folder cannot be written they are said at every run.

use super::voice;
use crate::enrich::LaneSpec;
use crate::output::write_whole;
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Longest file that is read; a line has some 100 bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Says the terms of those that are asked for the first time. Nobody has terms with a provider on loopback.
pub(super) fn say(lanes: &[LaneSpec], state: &Path) {
    let path = state.join("notes-told");
    let told = read(&path);
    let mut all = told.clone();
    for lane in lanes.iter().filter(|lane| !lane.definition.is_loopback()) {
        let definition = &lane.definition;
        let Some(licence) = &definition.licence else { continue };
        if all.insert(format!("{}\t{licence}", definition.name)) {
            voice::note(format!("{}: {licence} (said once)", definition.name));
        }
    }
    if all != told {
        let text: String = all.iter().map(|line| line.clone() + "\n").collect();
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state);
        if let Err(error) = made.and_then(|()| write_whole(&path, text.as_bytes(), 0o600)) {
            tracing::debug!("cannot keep what was said of the providers' terms: {error}");
        }
    }
}

fn read(path: &Path) -> BTreeSet<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path);
    let whole = file.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)).is_ok();
    if whole { text.lines().map(str::to_owned).collect() } else { BTreeSet::new() }
}
