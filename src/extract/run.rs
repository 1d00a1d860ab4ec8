//! Drives the reading of inputs, on one thread or on several.
//!
//! A plain file is read in pieces: whoever is free takes the next one, parses it, waits for its turn and joins it. A
//! stream (a pipe, a compressed file) is read and decompressed on a thread of its own while this one parses. Either
//! way batches are joined in the order of the input.

use std::{
    num::NonZero,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use super::{
    ExtractError, Extraction, Options, Warning,
    gather::Gather,
    parser::{Parser, Reading},
    reading, wrap,
};
use crate::input::{Blocks, Input, InputError, Owned, Piece, Plain, Source};

/// Buffers on their way between the thread that reads and the one that parses: enough to ride out a hiccup.
const IN_FLIGHT: usize = 4;

/// A run over inputs, one after another.
pub(super) struct Run<'o> {
    options: &'o Options,
    cancel: &'o AtomicBool,
    threads: usize,
    parser: Parser<'o>,
    gather: Gather<'o>,
}

/// Whose piece is next to be joined. Held only while joining.
struct Turn<'g, 'o> {
    piece: u64,
    gather: &'g mut Gather<'o>,
    failed: Option<ExtractError>,
    /// Set together with `failed`, and where a thread panicked.
    is_over: bool,
}

/// What the threads that read a file in pieces share.
struct Shared<'g, 'o> {
    turn: Mutex<Turn<'g, 'o>>,
    turned: Condvar,
    next: AtomicU64,
    bytes: AtomicU64,
}

impl<'o> Run<'o> {
    pub(super) fn new(options: &'o Options, cancel: &'o AtomicBool) -> Self {
        let threads = match options.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        let (parser, gather) = (Parser::new(options, Reading::Eve), Gather::new(options));
        Self { options, cancel, threads, parser, gather }
    }

    pub(super) fn finish(self) -> Result<Extraction, ExtractError> {
        self.gather.finish()
    }

    /// Reads one input to its end.
    pub(super) fn read(&mut self, source: Source, input: &Input) -> Result<(), ExtractError> {
        let mut blocks = Blocks::new(source, self.options.max_line)?;
        let reading = reading(&blocks, input, self.options.format)?;
        self.parser.begin(reading);
        let is_plain = reading == Reading::Eve && self.options.event_path.is_none();
        self.gather.begin(input, if is_plain { wrap::recognise(blocks.prefix()) } else { None });
        match blocks.plain() {
            // A list is read faster than it takes to hand it around, and would fill the batches with addresses.
            Some((plain, mark)) if self.threads > 1 && reading != Reading::List => {
                self.gather.counts.bytes += mark as u64;
                drop(blocks);
                self.read_pieces(&plain, input, reading)?;
            }
            _ => {
                if self.threads > 1 && !blocks.prefix_is_all() {
                    self.read_behind(&mut blocks)?;
                } else {
                    self.read_here(&mut blocks)?;
                }
                self.gather.counts.bytes += blocks.bytes;
                if let Some(cause) = blocks.damage {
                    self.gather.counts.damaged += 1;
                    let (input, bytes) = (input.clone(), blocks.bytes);
                    self.gather.warnings.push(Warning::Damaged { input, bytes, cause });
                }
            }
        }
        self.gather.end()
    }

    /// On this thread alone.
    fn read_here(&mut self, blocks: &mut Blocks) -> Result<(), ExtractError> {
        while let Some(piece) = blocks.next()? {
            is_cancelled(self.cancel)?;
            parse(&mut self.parser, &piece);
            self.gather.join(&mut self.parser.batch, &mut self.parser.recent)?;
        }
        Ok(())
    }

    /// With a thread that reads ahead.
    fn read_behind(&mut self, blocks: &mut Blocks) -> Result<(), ExtractError> {
        thread::scope(|scope| {
            let (full, pieces) = mpsc::sync_channel(IN_FLIGHT);
            let (empty, spares) = mpsc::channel::<Vec<u8>>();
            scope.spawn(move || {
                loop {
                    let spare = spares.try_recv().unwrap_or_default();
                    let piece = blocks.next_owned(spare).transpose();
                    // The other end is gone where it failed or was cancelled.
                    if piece.is_none_or(|piece: Result<Owned, InputError>| full.send(piece).is_err()) {
                        return;
                    }
                }
            });
            for piece in pieces {
                is_cancelled(self.cancel)?;
                match piece? {
                    Owned::TooLong => self.parser.too_long(),
                    Owned::Lines(buffer, range) => {
                        let text = buffer.get(range.start..).unwrap_or_default();
                        self.parser.block(text, range.len());
                        // Nobody waits for it where the reader is done.
                        drop(empty.send(buffer));
                    }
                }
                self.gather.join(&mut self.parser.batch, &mut self.parser.recent)?;
            }
            Ok(())
        })
    }

    /// On several threads, this one among them.
    fn read_pieces(&mut self, plain: &Plain, input: &Input, reading: Reading) -> Result<(), ExtractError> {
        let turn = Turn { piece: 0, gather: &mut self.gather, failed: None, is_over: false };
        let shared = Shared {
            turn: Mutex::new(turn),
            turned: Condvar::new(),
            next: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let (options, cancel) = (self.options, self.cancel);
        let helpers = (self.threads - 1).min(usize::try_from(plain.pieces()).unwrap_or(usize::MAX));
        thread::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|| {
                    let mut parser = Parser::new(options, reading);
                    shared.work(plain, input, options, cancel, &mut parser);
                });
            }
            shared.work(plain, input, options, cancel, &mut self.parser);
        });
        let bytes = shared.bytes.into_inner();
        let turn = shared.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = turn.failed {
            return Err(error);
        }
        turn.gather.counts.bytes += bytes;
        Ok(())
    }
}

impl<'g, 'o> Shared<'g, 'o> {
    /// Takes pieces until there are no more, or another thread failed.
    fn work(
        &self,
        plain: &Plain,
        input: &Input,
        options: &Options,
        cancel: &AtomicBool,
        parser: &mut Parser<'o>,
    ) {
        let _guard = Guard(self);
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= plain.pieces() {
                return;
            }
            let source = Source::bare(input, Box::new(plain.piece(piece)));
            let parsed = self.parse(&mut Blocks::bare(source, options.max_line), cancel, parser);
            let Some(mut turn) = self.wait_for(piece) else { return };
            let joined = parsed.and_then(|()| turn.gather.join(&mut parser.batch, &mut parser.recent));
            turn.piece += 1;
            if let Err(error) = joined {
                turn.failed = Some(error);
                turn.is_over = true;
            }
            drop(turn);
            self.turned.notify_all();
        }
    }

    fn parse(
        &self,
        blocks: &mut Blocks,
        cancel: &AtomicBool,
        parser: &mut Parser<'_>,
    ) -> Result<(), ExtractError> {
        while let Some(piece) = blocks.next()? {
            is_cancelled(cancel)?;
            parse(parser, &piece);
        }
        self.bytes.fetch_add(blocks.bytes, Ordering::Relaxed);
        Ok(())
    }

    /// `None` where there will be no turn.
    fn wait_for(&self, piece: u64) -> Option<MutexGuard<'_, Turn<'g, 'o>>> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |turn: &mut Turn<'_, '_>| turn.piece != piece && !turn.is_over;
        let turn = self.turned.wait_while(turn, waits).unwrap_or_else(PoisonError::into_inner);
        (!turn.is_over).then_some(turn)
    }
}

/// Frees those who wait for a thread that panicked; the scope passes the panic on.
struct Guard<'a, 'g, 'o>(&'a Shared<'g, 'o>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.turn.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
            self.0.turned.notify_all();
        }
    }
}

pub(super) fn parse(parser: &mut Parser<'_>, piece: &Piece<'_>) {
    match piece {
        Piece::Lines(text, length) => parser.block(text, *length),
        Piece::TooLong => parser.too_long(),
    }
}

fn is_cancelled(cancel: &AtomicBool) -> Result<(), ExtractError> {
    if cancel.load(Ordering::Relaxed) { Err(ExtractError::Cancelled) } else { Ok(()) }
}
