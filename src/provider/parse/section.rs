//! Tables of a definition, read key by key; faults are gathered on the way.

use std::{cell::RefCell, collections::BTreeSet, num::NonZeroU32};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::provider::{DefinitionError, FilterError, faults::Place, nearest};

/// One file while it is read.
pub(super) struct Reader<'t> {
    file: String,
    text: &'t str,
    faults: RefCell<Vec<DefinitionError>>,
}

/// One table of it.
pub(super) struct Section<'r, 't> {
    reader: &'r Reader<'t>,
    /// `""` for the root.
    name: &'static str,
    table: &'r DeTable<'t>,
    /// Byte offset of the table's beginning.
    start: usize,
    /// The same table of the definition that this one extends: what is not said here is taken from there.
    base: Option<Box<Section<'r, 't>>>,
}

impl<'t> Reader<'t> {
    pub(super) const fn new(file: String, text: &'t str) -> Self {
        Self { file, text, faults: RefCell::new(Vec::new()) }
    }

    pub(super) fn into_faults(self) -> Vec<DefinitionError> {
        self.faults.into_inner()
    }

    /// Takes the faults that were found in a base: what this file says of it did not fit.
    pub(super) fn take_over(&self, base: &Reader<'_>) {
        self.faults.borrow_mut().append(&mut base.faults.borrow_mut());
    }

    /// The whole document, or the parser's faults.
    pub(super) fn table(&self) -> Option<DeTable<'t>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table.into_inner()),
            Err(error) => {
                let line = error.span().map(|span| self.line(span.start));
                let why = error.message().lines().collect::<Vec<_>>().join(", ");
                self.push(DefinitionError::Syntax { place: self.place(line), why });
                None
            }
        }
    }

    pub(super) fn root<'r>(
        &'r self,
        table: &'r DeTable<'t>,
        base: Option<Section<'r, 't>>,
    ) -> Section<'r, 't> {
        Section { reader: self, name: "", table, start: 0, base: base.map(Box::new) }
    }

    pub(super) fn fault_at(&self, line: Option<usize>, key: &str, why: &str) {
        self.push(DefinitionError::Value {
            place: self.place(line),
            key: key.to_owned(),
            why: why.to_owned(),
        });
    }

    /// The filter's own line, as a line of the file.
    pub(super) fn filter_fault(&self, section: &Section<'_, 't>, key: &str, source: FilterError) {
        let start = section.span(key);
        let inner = match &source {
            FilterError::Syntax { line, .. } | FilterError::Undefined { line, .. } => *line,
            _ => 1,
        };
        // A line break right after three quotes is not part of the text.
        let opens =
            self.text.get(start..start + 4).is_some_and(|quotes| quotes == "'''\n" || quotes == "\"\"\"\n");
        let line = self.line(start) + usize::from(opens) + inner - 1;
        self.push(DefinitionError::Filter { place: self.place(Some(line)), source });
    }

    fn push(&self, fault: DefinitionError) {
        self.faults.borrow_mut().push(fault);
    }

    fn place(&self, line: Option<usize>) -> Place {
        Place { file: self.file.clone(), line }
    }

    fn line(&self, offset: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.text.as_bytes()[..offset.min(self.text.len())]).count() + 1
    }
}

impl<'r, 't> Section<'r, 't> {
    /// Refuses all other keys, each with its line and the key that was probably meant.
    pub(super) fn only(&self, known: &[&str]) {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                self.reader.push(DefinitionError::UnknownKey {
                    place: self.reader.place(Some(self.reader.line(key.span().start))),
                    key: self.path(name),
                    nearest: nearest(name, known.iter().copied()).map(|near| self.path(near)),
                });
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key) || self.base.as_ref().is_some_and(|base| base.has(key))
    }

    /// All keys, sorted, those of the base too.
    pub(super) fn keys(&self) -> BTreeSet<&str> {
        let mut keys: BTreeSet<&str> = self.table.keys().map(|key| key.get_ref().as_ref()).collect();
        keys.extend(self.base.iter().flat_map(|base| base.keys()));
        keys
    }

    /// Whether the key is said here, not in the base.
    pub(super) fn has_own(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A text that must be there and not be empty.
    pub(super) fn text(&self, key: &str) -> Option<&'r str> {
        if !self.has(key) {
            self.missing(key, "it must be there");
        }
        self.optional(key)
    }

    /// A text that may be absent; if there, it is not empty.
    pub(super) fn optional(&self, key: &str) -> Option<&'r str> {
        let text = self.value(key)?.as_str().map(str::trim_end);
        match text {
            Some(text) if !text.is_empty() => Some(text),
            _ => {
                self.fault(key, "must be a text, and not an empty one");
                None
            }
        }
    }

    /// A text that may be absent, with the spaces it ends in: `Bearer ` before a key.
    pub(super) fn verbatim(&self, key: &str) -> Option<&'r str> {
        self.optional(key).and_then(|_| self.value(key)?.as_str())
    }

    /// Whether a text stands there and is this one; faults are left to whoever reads it.
    pub(super) fn optional_is(&self, key: &str, text: &str) -> bool {
        self.value(key).and_then(DeValue::as_str) == Some(text)
    }

    /// One of some words, which must be there.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            self.fault(key, &format!("is `{text}`, and must be one of {words}"));
        }
        found
    }

    /// A list of texts that must be there.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<&'r str>> {
        let Some(value) = self.value(key) else {
            self.missing(key, "it must be a list of texts");
            return None;
        };
        let texts =
            value.as_array().and_then(|values| values.iter().map(|value| value.get_ref().as_str()).collect());
        if texts.is_none() {
            self.fault(key, "must be a list of texts");
        }
        texts
    }

    /// A whole number within bounds that begin above 0, which must be there.
    pub(super) fn number(&self, key: &str, least: u32, most: u32) -> Option<NonZeroU32> {
        self.bounded(key, least.max(1), most).and_then(NonZeroU32::new)
    }

    /// A whole number within bounds, which must be there.
    pub(super) fn bounded(&self, key: &str, least: u32, most: u32) -> Option<u32> {
        let number = self
            .value(key)
            .and_then(DeValue::as_integer)
            .and_then(|integer| u32::from_str_radix(integer.as_str(), integer.radix()).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.fault(key, &format!("must be a whole number from {least} to {most}"));
        }
        number
    }

    /// True or false; false where nothing is said.
    pub(super) fn flag(&self, key: &str) -> bool {
        match self.value(key) {
            None => false,
            Some(value) => value.as_bool().unwrap_or_else(|| {
                self.fault(key, "must be true or false");
                false
            }),
        }
    }

    /// A table that must be there.
    pub(super) fn table(&self, key: &'static str) -> Option<Section<'r, 't>> {
        if !self.has(key) {
            self.missing(key, "it must be a table");
            return None;
        }
        let base = self.base.as_ref().filter(|base| base.has(key)).and_then(|base| base.table(key));
        let Some(value) = self.table.get(key) else { return base };
        let Some(table) = value.get_ref().as_table() else {
            self.fault(key, "must be a table");
            return None;
        };
        let start = value.span().start;
        Some(Section { reader: self.reader, name: key, table, start, base: base.map(Box::new) })
    }

    pub(super) fn fault(&self, key: &str, why: &str) {
        let line = self.reader.line(self.span(key));
        self.reader.fault_at(Some(line), &self.path(key), why);
    }

    pub(super) fn missing(&self, key: &str, why: &'static str) {
        let place = self.reader.place(Some(self.reader.line(self.start)));
        self.reader.push(DefinitionError::Missing { place, key: self.path(key), why });
    }

    /// Where a key's value begins, or else its table.
    fn span(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.start, |value| value.span().start)
    }

    fn value(&self, key: &str) -> Option<&'r DeValue<'t>> {
        self.table.get(key).map(Spanned::get_ref).or_else(|| self.base.as_ref()?.value(key))
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}
