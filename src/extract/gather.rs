//! Joins batches, in order, into the whole.

use std::net::IpAddr;

use super::{
    Extraction, Options,
    batch::{Batch, NO_PROTO, NO_TIME, NONE, Record},
    counts::{Counts, MAX_PLACES},
    error::{ExtractError, Place, Warning},
    indicators::Indicators,
    recent::{LOCAL, Recent},
    scope::Scope,
    state::{ALERT, DEST, INBOUND, OUTBOUND, SRC, Sighting},
};
use crate::input::Input;

/// What is known so far, over all inputs.
pub(super) struct Gather<'o> {
    options: &'o Options,
    pub(super) indicators: Indicators,
    pub(super) counts: Counts,
    pub(super) warnings: Vec<Warning>,
    input: Input,
    /// The counts when this input began.
    before: Counts,
    /// Where its events are, if they look wrapped.
    wrapped: Option<String>,
    /// One bit an address: whether it is inside.
    inside: Vec<u64>,
    /// Numbers in the whole set of a batch's fresh addresses, protocols and signatures.
    ids: Vec<u32>,
    protos: Vec<Option<u8>>,
    signatures: Vec<Option<u32>>,
}

impl<'o> Gather<'o> {
    pub(super) fn new(options: &'o Options) -> Self {
        Self {
            options,
            indicators: Indicators::default(),
            counts: Counts::default(),
            warnings: Vec::new(),
            input: Input::Stdin,
            before: Counts::default(),
            wrapped: None,
            inside: Vec::new(),
            ids: Vec::new(),
            protos: Vec::new(),
            signatures: Vec::new(),
        }
    }

    /// Another input begins.
    pub(super) fn begin(&mut self, input: &Input, wrapped: Option<String>) {
        self.before = self.counts.clone();
        self.counts.files += 1;
        self.input = input.clone();
        self.wrapped = wrapped;
    }

    /// Lines are from this input from here on; it may have been read from before.
    pub(super) fn turn_to(&mut self, input: &Input) {
        if self.input != *input {
            self.input = input.clone();
        }
    }

    /// Joins what follows the last batch joined. `recent` is the memory of the parser that made it.
    pub(super) fn join(&mut self, batch: &mut Batch, recent: &mut Recent) -> Result<(), ExtractError> {
        let line = self.counts.lines - self.before.lines;
        self.ids.clear();
        for (local, fresh) in (0..).zip(&batch.fresh) {
            let id = self.insert(fresh.ip, line + u64::from(fresh.line))?;
            self.ids.push(id);
            if let Some(slot) = fresh.slot {
                recent.settle(slot, local, id);
            }
        }
        if self.options.context {
            self.join_context(batch);
        }
        for malformed in &batch.malformed {
            if self.counts.first_malformed.len() < MAX_PLACES {
                self.counts.first_malformed.push(Place { input: self.input.clone(), line: line + malformed });
            }
        }
        self.counts.add(&batch.counts);
        batch.clear();
        Ok(())
    }

    fn join_context(&mut self, batch: &Batch) {
        let contexts = &mut self.indicators.contexts;
        self.protos.clear();
        self.protos.extend(batch.protos.iter().map(|name| contexts.protos.number(name)));
        self.signatures.clear();
        self.signatures.extend(batch.signatures.iter().map(|raw| {
            let (id, name) = batch.raw(*raw);
            contexts.signatures.number_of_raw(id, name, raw.severity)
        }));
        for (at, record) in batch.records.iter().enumerate() {
            if let Some(ahead) = batch.records.get(at + AHEAD) {
                for id in [self.id(ahead.src), self.id(ahead.dest)].into_iter().flatten() {
                    self.indicators.contexts.prefetch(id);
                }
            }
            self.note(record);
        }
        for (number, seen) in &batch.seen {
            if let Some(id) = self.id(*number) {
                self.indicators.contexts.absorb(id, seen);
            }
        }
    }

    /// The number in the whole set.
    #[inline]
    fn id(&self, number: u32) -> Option<u32> {
        match number {
            NONE => None,
            _ if number & LOCAL != 0 => self.ids.get((number & !LOCAL) as usize).copied(),
            _ => Some(number),
        }
    }

    #[inline]
    fn note(&mut self, record: &Record) {
        let (src, dest) = (self.id(record.src), self.id(record.dest));
        let (src_inside, dest_inside) = (self.is_inside(src), self.is_inside(dest));
        let contexts = &mut self.indicators.contexts;
        let known = |at: u32, all: &[Option<u32>]| all.get(at as usize).copied().flatten();
        let sighting = Sighting {
            flags: if record.is_alert { ALERT } else { 0 },
            time: (record.time != NO_TIME).then_some(record.time),
            peer: None,
            port: record.port,
            proto: if record.proto == NO_PROTO {
                None
            } else {
                self.protos.get(usize::from(record.proto)).copied().flatten()
            },
            severity: record.severity,
            signature: if record.signature == NONE {
                None
            } else {
                known(record.signature, &self.signatures)
            },
        };
        if let Some(src) = src
            && dest == Some(src)
        {
            let flags = sighting.flags | SRC | DEST;
            contexts.note(src, &Sighting { flags, ..sighting });
            return;
        }
        if let Some(src) = src {
            let direction = if dest_inside && !src_inside { INBOUND } else { 0 };
            let flags = sighting.flags | SRC | direction;
            contexts.note(src, &Sighting { flags, peer: dest, ..sighting });
        }
        if let Some(dest) = dest {
            let direction = if src_inside && !dest_inside { OUTBOUND } else { 0 };
            let flags = sighting.flags | DEST | direction;
            contexts.note(dest, &Sighting { flags, peer: src, ..sighting });
        }
    }

    #[inline]
    fn is_inside(&self, id: Option<u32>) -> bool {
        id.is_some_and(|id| self.inside.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1))
    }

    #[inline]
    fn insert(&mut self, ip: IpAddr, line: u64) -> Result<u32, ExtractError> {
        let (id, is_new) = self.indicators.addresses.insert(ip);
        if is_new {
            if self.indicators.len() > self.options.max_unique {
                let at = Place { input: self.input.clone(), line };
                return Err(ExtractError::TooManyUnique { max: self.options.max_unique, at });
            }
            let is_inside =
                Scope::of(ip).is_internal() || self.options.home_net.iter().any(|net| net.contains(&ip));
            if id.is_multiple_of(64) {
                self.inside.push(0);
            }
            if let Some(word) = self.inside.last_mut() {
                *word |= u64::from(is_inside) << (id % 64);
            }
        }
        Ok(id)
    }

    /// The input has ended.
    pub(super) fn end(&mut self) -> Result<(), ExtractError> {
        let taken = |counts: &Counts| counts.events - counts.filtered;
        let events = taken(&self.counts) - taken(&self.before);
        if events > 0 && self.counts.no_ip_key - self.before.no_ip_key == events {
            let input = self.input.clone();
            match self.wrapped.take() {
                Some(path) => return Err(ExtractError::Wrapped { input, path }),
                None => self.warnings.push(Warning::NoKeys { input, events }),
            }
        }
        Ok(())
    }

    /// The verdict on the whole, once all inputs are read.
    pub(super) fn finish(mut self) -> Result<Extraction, ExtractError> {
        let counts = &self.counts;
        // What a writer has not finished says nothing against the file.
        let (malformed, lines) = (counts.malformed - counts.cut + counts.not_object, counts.nonblank());
        let share = if lines == 0 { 0.0 } else { ratio(malformed, lines) };
        let is_nothing_read = counts.is_empty() && malformed > 0;
        // Whoever asks for less than the default means it for small inputs too.
        let floor = if self.options.max_malformed < super::MAX_MALFORMED { 1 } else { FLOOR };
        if is_nothing_read || (malformed >= floor && share > self.options.max_malformed) {
            let (max, first) = (self.options.max_malformed, self.counts.first_malformed);
            return Err(ExtractError::TooManyMalformed { malformed, lines, share, max, first });
        }
        let damage = self.warnings.iter().position(|warning| matches!(warning, Warning::Damaged { .. }));
        if let Some(at) = damage.filter(|_| counts.lines == 0)
            && let Warning::Damaged { input, cause, bytes: _ } = self.warnings.swap_remove(at)
        {
            return Err(ExtractError::Damaged { input, cause });
        }
        self.warn();
        self.indicators.seal();
        Ok(Extraction { indicators: self.indicators, counts: self.counts, warnings: self.warnings })
    }

    fn warn(&mut self) {
        let counts = &self.counts;
        if counts.malformed > 0 {
            let (count, lines, first) = (counts.malformed, counts.nonblank(), counts.first_malformed.clone());
            self.warnings.push(Warning::Malformed { count, lines, first });
        }
        for (count, warning) in [
            (counts.not_object, Warning::NotObject { count: counts.not_object }),
            (counts.bad_ip, Warning::BadIp { count: counts.bad_ip }),
            (counts.networks, Warning::Networks { count: counts.networks }),
        ] {
            if count > 0 {
                self.warnings.push(warning);
            }
        }
    }
}

/// How many records ahead their states are fetched: 200,000 of them are far larger than the cache.
const AHEAD: usize = 8;

/// Fewer malformed lines than this fail no run that read something: of a log rotated in mid-line, or a list with a
/// heading, one or two bad lines may be half of all there is.
const FLOOR: u64 = 10;

#[expect(clippy::cast_precision_loss, reason = "a share to a few digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
