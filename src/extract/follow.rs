//! Extraction that goes on as logs grow.

use std::{ops::Range, path::PathBuf};

use super::{
    Counts, ExtractError, Extraction, Indicators, Options, Warning,
    gather::Gather,
    indicators::to_id,
    parser::{Parser, Reading},
    run::parse,
};
use crate::input::{Follow, Input, Piece};

/// Follows one or several logs of Suricata. Plain files only; each may be rotated, cut back, or not there yet.
///
/// Look with [`Follower::poll`] as often as news are wanted; a few times a second costs next to nothing, and rotations
/// must not come faster than looks. Never waits itself.
pub struct Follower<'o> {
    files: Vec<(Input, Follow)>,
    parser: Parser<'o>,
    gather: Gather<'o>,
    cuts: u64,
}

impl<'o> Follower<'o> {
    /// Starts at the beginning of each file. The options' filters and bounds hold, `format` does not: a log that is
    /// followed is eve.json.
    #[must_use]
    pub fn new(paths: &[PathBuf], options: &'o Options) -> Self {
        let follow = |path: &PathBuf| (Input::File(path.clone()), Follow::new(path, options.max_line));
        Self {
            files: paths.iter().map(follow).collect(),
            parser: Parser::new(options, Reading::Eve),
            gather: Gather::new(options),
            cuts: 0,
        }
    }

    /// Reads all whole lines there are by now. Gives the numbers of the addresses that are new since the last look.
    ///
    /// # Errors
    /// See [`ExtractError`]. The share of malformed lines is not looked at before [`Follower::finish`].
    pub fn poll(&mut self) -> Result<Range<u32>, ExtractError> {
        self.look(|follow, take| follow.poll(take))
    }

    fn look(
        &mut self,
        look: impl Fn(&mut Follow, &mut dyn FnMut(&Piece<'_>)) -> Result<(), crate::input::InputError>,
    ) -> Result<Range<u32>, ExtractError> {
        let before = to_id(self.gather.indicators.len());
        for (input, follow) in &mut self.files {
            self.gather.turn_to(input);
            let (parser, gather, mut joined) = (&mut self.parser, &mut self.gather, Ok(()));
            look(follow, &mut |piece| {
                parse(parser, piece);
                if joined.is_ok() {
                    joined = gather.join(&mut parser.batch, &mut parser.recent);
                }
            })?;
            joined?;
        }
        let cuts: u64 = self.files.iter().map(|(_, follow)| follow.cuts).sum();
        if cuts > self.cuts {
            self.cuts = cuts;
            self.gather.warnings.push(Warning::CutBack { cuts });
        }
        Ok(before..to_id(self.gather.indicators.len()))
    }

    /// What was found so far.
    #[must_use]
    pub fn indicators(&self) -> &Indicators {
        &self.gather.indicators
    }

    /// What was read so far. `bytes` stays 0, and the lines of all files count as one input's.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.gather.counts
    }

    /// What a person should hear of, since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.gather.warnings)
    }

    /// Whether a file has grown since the last look.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.files.iter().any(|(_, follow)| follow.is_behind())
    }

    /// Reads what is left, half lines too, and sums up.
    ///
    /// # Errors
    /// As [`super::extract`].
    pub fn finish(mut self) -> Result<Extraction, ExtractError> {
        self.poll()?;
        self.look(|follow, take| follow.finish(take))?;
        self.gather.finish()
    }
}
