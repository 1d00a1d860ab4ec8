//! Where records go, in which form, and in which order.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::fields::{Field, default_fields};
use super::file::{AppendFile, WholeFile};
use super::form::{Form, Renderer};
use super::record::{Record, Status};
use super::sort::{Reorder, Sort};

/// Where records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File {
        /// Its path. One that is there and no regular file (`/dev/null`, a named pipe) is written to directly.
        path: PathBuf,
        /// Whether the file is added to, rather than replaced at the end.
        append: bool,
    },
}

/// How records are written.
#[derive(Debug, Clone)]
pub struct Options {
    /// The form.
    pub form: Form,
    /// The order.
    pub sort: Sort,
    /// The columns of a table, CSV or TSV.
    pub fields: Vec<Field>,
    /// Columns of the terminal, for a table.
    pub terminal: usize,
    /// Whether a table is coloured.
    pub color: bool,
    /// Whether skipped addresses are written; a table only ever counts them.
    pub skipped: bool,
    /// Whether addresses in a table, CSV or TSV are written so that nothing makes a link of them: `203.0.113[.]7`.
    pub defanged: bool,
}

impl Options {
    /// NDJSON as answered, skipped addresses among it.
    #[must_use]
    pub fn new(form: Form) -> Self {
        Self {
            form,
            sort: Sort::Done,
            fields: default_fields(),
            terminal: 100,
            color: false,
            skipped: true,
            defanged: false,
        }
    }
}

/// Whether standard output takes colour, by its terminal, `NO_COLOR`, `CLICOLOR_FORCE` and `TERM`.
#[must_use]
pub fn stdout_takes_color() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Takes records and writes them: each in one write(2), at once, whole.
///
/// One buffer is used again for every record. After an error nothing more should be written; [`Sink::keep_partial`]
/// says where the records so far are.
#[derive(Debug)]
pub struct Sink {
    out: Out,
    renderer: Renderer,
    reorder: Option<Reorder>,
    buffer: Vec<u8>,
    with_skipped: bool,
    taken: u64,
    skipped: u64,
}

impl Sink {
    /// Opens the target; a heading is written at once.
    ///
    /// # Errors
    ///
    /// Where the file, or the unfinished one beside it, cannot be created or opened, or the heading not be written.
    pub fn open(target: &Target, options: &Options) -> Result<Self, OutputError> {
        match target {
            Target::Stdout => Self::start(Place::Stdout, "standard output".to_owned(), options),
            Target::File { path, append } => {
                let name = path.display().to_string();
                let place = Place::open(path, *append && options.form.can_append())
                    .map_err(|source| OutputError::Open { target: name.clone(), source })?;
                Self::start(place, name, options)
            }
        }
    }

    /// Writes to anything; `target` names it in errors.
    ///
    /// # Errors
    ///
    /// Where the heading cannot be written.
    pub fn to_writer(
        writer: Box<dyn Write + Send>,
        target: &str,
        options: &Options,
    ) -> Result<Self, OutputError> {
        Self::start(Place::Writer(writer), target.to_owned(), options)
    }

    fn start(place: Place, target: String, options: &Options) -> Result<Self, OutputError> {
        let headed = matches!(&place, Place::Append(file) if !file.is_empty());
        let renderer = Renderer::new(options);
        let mut sink = Self {
            out: Out { place, target, commas: renderer.is_list(), records: 0 },
            renderer,
            reorder: options.sort.buffers().then(Reorder::default),
            // A record with three providers and its context has 1.5 kB (CLI.md §1.4, measured).
            buffer: Vec::with_capacity(4096),
            with_skipped: options.skipped,
            taken: 0,
            skipped: 0,
        };
        if !headed {
            sink.renderer.head(&mut sink.buffer);
            sink.out.bytes(&sink.buffer)?;
        }
        Ok(sink)
    }

    /// Writes one record now, whatever order was asked for.
    ///
    /// # Errors
    ///
    /// See [`OutputError`]; a closed pipe is one of them.
    pub fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        self.render(record)?;
        self.out.record(&self.buffer)
    }

    /// Writes one record in its turn: `position` counts from 0 without gaps, in the order of the [`Sort`] the sink was
    /// opened with. Where that is as answered, the record is written at once.
    ///
    /// # Errors
    ///
    /// See [`OutputError`]; a closed pipe is one of them.
    pub fn write_at(&mut self, record: &Record, position: u64) -> Result<(), OutputError> {
        self.render(record)?;
        match &mut self.reorder {
            Some(reorder) => reorder.take(position, &self.buffer, |line| self.out.record(line)),
            None => self.out.record(&self.buffer),
        }
    }

    /// Fills the buffer. A record that is not shown leaves it empty, and still takes its turn.
    fn render(&mut self, record: &Record) -> Result<(), OutputError> {
        self.buffer.clear();
        if record.status == Status::Skipped {
            self.skipped += 1;
            if !self.with_skipped {
                return Ok(());
            }
        }
        self.renderer
            .record(record, &mut self.buffer)
            .map_err(|error| OutputError::writing(&self.out.target, error.into()))?;
        self.taken += u64::from(!self.buffer.is_empty());
        Ok(())
    }

    /// Records written, or waiting for their turn.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.taken
    }

    /// Skipped records taken, shown or not.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Writes what still waits for its turn, makes a file durable, and moves it into place.
    ///
    /// # Errors
    ///
    /// See [`OutputError`]. The file is then unfinished: ask [`Sink::keep_partial`].
    pub fn finish(&mut self) -> Result<(), OutputError> {
        self.write_rest()?;
        match &mut self.out.place {
            Place::Whole(file) => file.publish(),
            Place::Append(file) => {
                file.sync().map_err(|source| OutputError::writing(&self.out.target, source))
            }
            Place::Stdout | Place::Writer(_) => Ok(()),
        }
    }

    fn write_rest(&mut self) -> Result<(), OutputError> {
        if let Some(reorder) = &mut self.reorder {
            reorder.rest(|line| self.out.record(line))?;
        }
        self.out.bytes(self.renderer.foot())
    }

    /// The end of a run that was stopped or failed: writes what waits as far as that goes, leaves the unfinished file
    /// where it is, and says where. None for other targets, which have had everything at once, and for a file without
    /// a record, which is removed.
    pub fn keep_partial(&mut self) -> Option<PathBuf> {
        // The run already ends for a reason of its own; a second fault here adds nothing to it.
        let _ = self.write_rest();
        match &self.out.place {
            Place::Whole(file) => file.keep(self.out.records > 0),
            Place::Append(file) => {
                let _ = file.sync();
                None
            }
            Place::Stdout | Place::Writer(_) => None,
        }
    }

    /// The unfinished file beside the target, while there is one.
    #[must_use]
    pub fn partial(&self) -> Option<&Path> {
        match &self.out.place {
            Place::Whole(file) => Some(file.partial()),
            Place::Stdout | Place::Append(_) | Place::Writer(_) => None,
        }
    }
}

/// Where bytes go, and how many records went.
#[derive(Debug)]
struct Out {
    place: Place,
    target: String,
    commas: bool,
    records: u64,
}

impl Out {
    /// One rendered record in its turn; an empty one is not shown. An array's first element loses its comma.
    fn record(&mut self, line: &[u8]) -> Result<(), OutputError> {
        let first = self.commas && self.records == 0;
        self.records += u64::from(!line.is_empty());
        self.bytes(if first { line.strip_prefix(b",").unwrap_or(line) } else { line })
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.place.append(bytes).map_err(|source| OutputError::writing(&self.target, source))
    }
}

enum Place {
    Stdout,
    Whole(WholeFile),
    Append(AppendFile),
    Writer(Box<dyn Write + Send>),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdout => "Stdout",
            Self::Whole(_) => "Whole",
            Self::Append(_) => "Append",
            Self::Writer(_) => "Writer",
        })
    }
}

impl Place {
    fn open(path: &Path, append: bool) -> io::Result<Self> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = std::fs::OpenOptions::new().write(true).open(path)?;
            return Ok(Self::Writer(Box::new(file)));
        }
        if append {
            AppendFile::open(path).map(Self::Append)
        } else {
            WholeFile::create(path).map(Self::Whole)
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            // Rust's standard output is buffered by line, and passes whole lines on in one write(2) when, as here, its
            // buffer is empty.
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()
            }
            Self::Whole(file) => file.append(bytes),
            Self::Append(file) => file.append(bytes),
            Self::Writer(writer) => {
                writer.write_all(bytes)?;
                writer.flush()
            }
        }
    }
}

#[cfg(test)]
mod tests;
