//! Names that many addresses share, kept once: signatures and protocols.

use std::{collections::HashMap, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{indicators::to_id, json::string_text};

/// Longest signature name kept, in bytes. Suricata's own rules stay below 200; a line could hold a megabyte.
const MAX_NAME: usize = 256;

/// Distinct signatures kept in a run. The full ET Open set has about 45,000 enabled rules; what comes beyond the
/// bound still counts as an alert with its severity, but is not named.
const MAX_SIGNATURES: usize = 65_536;

/// The signatures of a run, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    all: Vec<Known>,
    /// By id and name.
    numbers: HashTable<u32>,
    /// By the raw values in the line, so that a repeat costs no unescaping. Bounded like `all`.
    raw: HashTable<Raw>,
    hasher: RandomState,
}

/// A signature.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: Option<u64>,
    pub(super) name: Box<str>,
    /// The name as a JSON string, since many addresses show it.
    pub(super) json: Box<str>,
    /// Of the first alert with it; 255 is none.
    severity: u8,
}

#[derive(Debug)]
struct Raw {
    id: Box<[u8]>,
    name: Box<[u8]>,
    number: u32,
}

impl Signatures {
    /// The number of a signature from the raw values of `signature_id` and `signature`. `None` where there is no
    /// name, or no room.
    pub(super) fn number_of_raw(&mut self, id: &[u8], name: &[u8], severity: u8) -> Option<u32> {
        let hash = self.hasher.hash_one((id, name));
        if let Some(raw) = self.raw.find(hash, |raw| *raw.name == *name && *raw.id == *id) {
            return Some(raw.number);
        }
        let number = self.number(super::event::unsigned(id), &string_text(name)?, severity)?;
        if self.raw.len() < MAX_SIGNATURES && id.len() + name.len() <= MAX_NAME {
            let hasher = &self.hasher;
            let raw = Raw { id: id.into(), name: name.into(), number };
            self.raw.insert_unique(hash, raw, |raw| hasher.hash_one((&*raw.id, &*raw.name)));
        }
        Some(number)
    }

    /// The number of a signature.
    pub(super) fn number(&mut self, id: Option<u64>, name: &str, severity: u8) -> Option<u32> {
        let name = cut(name);
        let (hasher, all) = (&self.hasher, &self.all);
        let is_it = |number: &u32| {
            all.get(*number as usize).is_some_and(|known| known.id == id && *known.name == *name)
        };
        let hash = hasher.hash_one((id, name));
        if let Some(number) = self.numbers.find(hash, is_it) {
            return Some(*number);
        }
        if all.len() >= MAX_SIGNATURES {
            return None;
        }
        let number = to_id(all.len());
        self.numbers.insert_unique(hash, number, |number| {
            hasher.hash_one(all.get(*number as usize).map_or((None, ""), |known| (known.id, &known.name)))
        });
        let json = serde_json::Value::from(name).to_string().into();
        self.all.push(Known { id, name: name.into(), json, severity });
        Some(number)
    }

    /// 255 where there is none.
    pub(super) fn severity(&self, number: u32) -> u8 {
        self.all.get(number as usize).map_or(u8::MAX, |known| known.severity)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Known> {
        self.all.get(number as usize)
    }
}

/// At most [`MAX_NAME`] bytes, whole characters.
fn cut(name: &str) -> &str {
    let end = (0..=MAX_NAME).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    if name.len() <= MAX_NAME { name } else { name.get(..end).unwrap_or_default() }
}

/// Protocol names, numbered from 0. Suricata knows some 20; beyond 255, or 16 bytes, none is kept.
#[derive(Debug, Default)]
pub(super) struct Names {
    all: Vec<Box<str>>,
    numbers: HashMap<Box<[u8]>, u8, RandomState>,
}

impl Names {
    pub(super) fn number(&mut self, name: &[u8]) -> Option<u8> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u8::try_from(self.all.len()).ok().filter(|number| *number < u8::MAX)?;
        let text = std::str::from_utf8(name).ok().filter(|text| (1..=16).contains(&text.len()))?;
        self.all.push(text.into());
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    pub(super) fn name(&self, number: u8) -> Option<&str> {
        self.all.get(usize::from(number)).map(|name| &**name)
    }
}
