//! Extraction that goes on as logs grow.

use std::{ops::Range, path::PathBuf};

use super::{
    Counts, ExtractError, Extraction, Indicators, Options, Warning, detect,
    detect::Shape,
    gather::Gather,
    indicators::to_id,
    parser::{Parser, Reading},
    run::parse,
    wrap,
};
use crate::input::{Follow, Input, InputError, Piece};

/// Follows one or several logs of Suricata. Plain files only; each may be rotated, cut back, or not there yet.
///
/// Look with [`Follower::poll`] as often as news are wanted; a few times a second costs next to nothing, and rotations
/// must not come faster than looks. Never waits itself.
pub struct Follower<'o> {
    files: Vec<File>,
    options: &'o Options,
    parser: Parser<'o>,
    gather: Gather<'o>,
    told: Told,
    /// The last look left something.
    is_behind: bool,
}

/// One log.
struct File {
    input: Input,
    follow: Follow,
    /// Its beginning was looked at.
    is_known: bool,
    /// Where its events are, if they look wrapped.
    wrapped: Option<String>,
}

/// What warnings were last told of.
#[derive(Default)]
struct Told {
    cuts: u64,
    malformed: u64,
    not_object: u64,
    bad_ip: u64,
}

impl<'o> Follower<'o> {
    /// Starts at the beginning of each file. The options' filters and bounds hold, `format` does not: a log that is
    /// followed is eve.json.
    ///
    /// # Errors
    /// A file that is there, and is no log that could be followed: compressed, a list, one JSON array.
    pub fn new(paths: &[PathBuf], options: &'o Options) -> Result<Self, ExtractError> {
        let file = |path: &PathBuf| File {
            input: Input::File(path.clone()),
            follow: Follow::new(path, options.max_line),
            is_known: false,
            wrapped: None,
        };
        let mut follower = Self {
            files: paths.iter().map(file).collect(),
            options,
            parser: Parser::new(options, Reading::Eve),
            gather: Gather::new(options),
            told: Told::default(),
            is_behind: false,
        };
        follower.gather.counts.files = paths.len() as u64;
        follower.get_to_know()?;
        Ok(follower)
    }

    /// Reads the whole lines there are by now. Gives the numbers of the addresses that are new since the last look.
    ///
    /// Where there is very much it stops on its way, and [`Follower::is_behind`] says so: look again at once.
    ///
    /// # Errors
    /// See [`ExtractError`]. The share of malformed lines is not looked at before [`Follower::finish`].
    pub fn poll(&mut self) -> Result<Range<u32>, ExtractError> {
        self.get_to_know()?;
        let mut is_behind = false;
        let found = self.look(|follow, take| {
            is_behind |= !follow.poll(take)?;
            Ok(())
        })?;
        self.is_behind = is_behind;
        self.are_events()?;
        self.tell();
        Ok(found)
    }

    fn look(
        &mut self,
        mut look: impl FnMut(&mut Follow, &mut dyn FnMut(&Piece<'_>)) -> Result<(), InputError>,
    ) -> Result<Range<u32>, ExtractError> {
        let before = to_id(self.gather.indicators.len());
        for File { input, follow, .. } in &mut self.files {
            self.gather.turn_to(input);
            let (parser, gather, mut joined, mut bytes) = (&mut self.parser, &mut self.gather, Ok(()), 0);
            look(follow, &mut |piece| {
                if let Piece::Lines(_, length) = piece {
                    bytes += *length as u64;
                }
                parse(parser, piece);
                if joined.is_ok() {
                    joined = gather.join(&mut parser.batch, &mut parser.recent);
                }
            })?;
            joined?;
            gather.counts.bytes += bytes;
        }
        Ok(before..to_id(self.gather.indicators.len()))
    }

    /// Looks at the beginning of files that were not there before.
    fn get_to_know(&mut self) -> Result<(), ExtractError> {
        for file in self.files.iter_mut().filter(|file| !file.is_known) {
            let Some(beginning) = file.follow.beginning()? else { continue };
            file.is_known = true;
            let input = file.input.clone();
            match detect::shape(&beginning, false) {
                Shape::Array => return Err(ExtractError::Array { input }),
                Shape::Pretty => return Err(ExtractError::Pretty { input }),
                Shape::List => return Err(InputError::NotFollowed { input, what: "a list" }.into()),
                Shape::Own => return Err(InputError::NotFollowed { input, what: "sift's own output" }.into()),
                Shape::Eve | Shape::Unknown => {}
            }
            if self.options.event_path.is_none() {
                file.wrapped = wrap::recognise(&beginning);
            }
        }
        Ok(())
    }

    /// Refuses what has only events inside other objects.
    fn are_events(&self) -> Result<(), ExtractError> {
        let counts = &self.gather.counts;
        let taken = counts.events - counts.filtered;
        let wrapped = self.files.iter().find_map(|file| Some((file, file.wrapped.as_ref()?)));
        match wrapped {
            Some((file, path)) if taken > 0 && counts.no_ip_key == taken => {
                Err(ExtractError::Wrapped { input: file.input.clone(), path: path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Warns of what was found odd: once, and again whenever it has doubled, so that a log full of it says little.
    fn tell(&mut self) {
        let (told, counts, warnings) = (&mut self.told, &self.gather.counts, &mut self.gather.warnings);
        let cuts = self.files.iter().map(|file| file.follow.cuts).sum();
        if cuts > told.cuts {
            told.cuts = cuts;
            warnings.push(Warning::CutBack { cuts });
        }
        if has_doubled(&mut told.malformed, counts.malformed) {
            let first = counts.first_malformed.clone();
            warnings.push(Warning::Malformed { count: counts.malformed, lines: counts.nonblank(), first });
        }
        if has_doubled(&mut told.not_object, counts.not_object) {
            warnings.push(Warning::NotObject { count: counts.not_object });
        }
        if has_doubled(&mut told.bad_ip, counts.bad_ip) {
            warnings.push(Warning::BadIp { count: counts.bad_ip });
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn indicators(&self) -> &Indicators {
        &self.gather.indicators
    }

    /// What was read so far. The lines of all files count as one input's.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.gather.counts
    }

    /// What a person should hear of, since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.gather.warnings)
    }

    /// Whether there is more to read than the last look took.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.is_behind || self.files.iter().any(|file| file.follow.is_behind())
    }

    /// Looks once more, takes half lines too unless there is still more before them, and sums up.
    ///
    /// # Errors
    /// As [`super::extract`].
    pub fn finish(mut self) -> Result<Extraction, ExtractError> {
        self.poll()?;
        if !self.is_behind {
            self.look(|follow, take| follow.finish(take))?;
        }
        self.sum_up()
    }

    /// Sums up what was read, and reads no more.
    ///
    /// # Errors
    /// As [`super::extract`].
    pub fn sum_up(mut self) -> Result<Extraction, ExtractError> {
        let counts = &self.gather.counts;
        let taken = counts.events - counts.filtered;
        if let [file] = self.files.as_slice()
            && taken > 0
            && counts.no_ip_key == taken
        {
            self.gather.warnings.push(Warning::NoKeys { input: file.input.clone(), events: taken });
        }
        let told = self.told;
        let mut extraction = self.gather.finish()?;
        extraction.warnings.retain(|warning| match warning {
            Warning::Malformed { count, .. } => *count > told.malformed,
            Warning::NotObject { count } => *count > told.not_object,
            Warning::BadIp { count } => *count > told.bad_ip,
            _ => true,
        });
        Ok(extraction)
    }
}

/// Whether it is twice what was told, or the first; it is told then.
fn has_doubled(told: &mut u64, count: u64) -> bool {
    let has = count > 0 && count >= told.saturating_mul(2);
    if has {
        *told = count;
    }
    has
}
