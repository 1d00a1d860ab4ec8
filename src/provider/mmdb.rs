//! MMDB files: country and network of an address, from a file on this machine.
//!
//! Read as MaxMind's GeoLite2, IPinfo, IPLocate and ip-location-db write them, which are four sets of names for the
//! same three facts. The whole file is read into memory rather than mapped: a mapped file that is replaced under a run
//! ends it with a signal.

use std::{
    fmt, io,
    net::IpAddr,
    path::{Path, PathBuf},
    time::SystemTime,
};

use maxminddb::Reader;
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Verdict};

/// Largest file that is read: GeoLite2-City, the largest that people use here, has some 60 MiB.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// One file.
pub struct Mmdb {
    path: PathBuf,
    reader: Reader<Vec<u8>>,
}

impl fmt::Debug for Mmdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mmdb").field("path", &self.path).field("kind", &self.kind()).finish_non_exhaustive()
    }
}

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MmdbError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is larger than any such file.
    #[error("{path} is larger than the 512 MiB an MMDB file may have")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is no MMDB file, or a damaged one.
    #[error("{path} is no MMDB file, or a damaged one")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In the reader's words.
        source: maxminddb::MaxMindDbError,
    },
}

/// The members that any of the four writers uses; the others are passed over without being decoded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    country: Value,
    registered_country: Value,
    country_code: Value,
    autonomous_system_number: Value,
    autonomous_system_organization: Value,
    asn: Value,
    as_name: Value,
    org: Value,
    name: Value,
}

impl Mmdb {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is no MMDB file.
    pub fn open(path: &Path) -> Result<Self, MmdbError> {
        use io::Read as _;
        let unreadable = |source| MmdbError::Read { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(MmdbError::TooLarge { path: path.to_owned() });
        }
        let damaged = |source| MmdbError::Damaged { path: path.to_owned(), source };
        Ok(Self { path: path.to_owned(), reader: Reader::from_source(bytes).map_err(damaged)? })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file calls itself, as in `GeoLite2-ASN`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.reader.metadata().database_type
    }

    /// When it was made: MaxMind's licence wants a file replaced within 30 days.
    #[must_use]
    pub fn built(&self) -> Option<SystemTime> {
        self.reader.metadata().build_time().ok()
    }

    /// Country, network and its organisation, as far as the file knows them; not found where it knows none. The verdict
    /// is always unknown.
    ///
    /// # Errors
    /// When the file turns out to be damaged at this place.
    pub fn answer(&self, ip: IpAddr) -> Result<Answer, MmdbError> {
        // A file of IPv4 alone has no place for IPv6, which is no damage.
        if ip.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return Ok(Answer::not_found());
        }
        let damaged = |source| MmdbError::Damaged { path: self.path.clone(), source };
        let found = self.reader.lookup(ip).map_err(damaged)?;
        Ok(found
            .decode::<Record>()
            .map_err(damaged)?
            .map_or_else(Answer::not_found, |record| record.answer()))
    }
}

impl Record {
    fn answer(&self) -> Answer {
        let codes = [
            self.country.get("iso_code"),
            Some(&self.country_code),
            Some(&self.country),
            self.registered_country.get("iso_code"),
        ];
        let organisations = [&self.autonomous_system_organization, &self.as_name, &self.org, &self.name];
        let country = codes.into_iter().flatten().find_map(super::filter::country);
        let asn = [&self.autonomous_system_number, &self.asn].into_iter().find_map(super::filter::asn);
        let as_org = organisations.into_iter().find_map(super::filter::organisation);
        let found = country.is_some() || asn.is_some() || as_org.is_some();
        Answer { verdict: Verdict::Unknown, found, country, asn, as_org, ..Answer::not_found() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mmdb").join(name)
    }

    #[test]
    fn each_writers_records_are_read() {
        for (name, ip, expected) in [
            ("geolite2_asn", "198.51.100.7", (None, Some(64_500), Some("Example Hosting B.V."))),
            ("geolite2_asn", "2001:db8::7", (None, Some(64_501), Some("EXAMPLE-V6"))),
            ("geolite2_country", "198.51.100.7", (Some("NL"), None, None)),
            ("geolite2_country", "203.0.113.7", (Some("DE"), None, None)),
            ("iplocate_asn", "198.51.100.7", (Some("NL"), Some(64_500), Some("Example Hosting B.V."))),
            ("iplocationdb_country", "198.51.100.7", (Some("NL"), None, None)),
            ("ipinfo_lite", "198.51.100.7", (Some("NL"), Some(64_500), Some("Example Hosting B.V."))),
            ("geolite2_asn", "203.0.113.200", (None, None, None)),
            ("geolite2_country", "2001:db9::7", (None, None, None)),
        ] {
            let mmdb = Mmdb::open(&file(&format!("{name}.mmdb"))).unwrap();
            let answer = mmdb.answer(ip.parse().unwrap()).unwrap();
            let got = (answer.country.as_deref(), answer.asn, answer.as_org.as_deref());
            assert_eq!(got, expected, "{name} {ip}");
            assert_eq!((answer.found, answer.verdict), (expected != (None, None, None), Verdict::Unknown));
        }
        let asn = Mmdb::open(&file("geolite2_asn.mmdb")).unwrap();
        assert_eq!(asn.kind(), "GeoLite2-ASN");
        assert!(asn.built().is_some());
    }

    #[test]
    fn what_is_no_mmdb_says_so() {
        let text = Mmdb::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap_err();
        assert!(text.to_string().ends_with("Cargo.toml is no MMDB file, or a damaged one"), "{text}");
        assert!(matches!(Mmdb::open(Path::new("/nonexistent/x.mmdb")), Err(MmdbError::Read { .. })));
    }

    /// A damaged file costs errors, never a panic or a wrong kind of answer.
    #[test]
    fn damage_is_an_error() {
        let whole = std::fs::read(file("geolite2_country.mmdb")).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            let Ok(reader) = Reader::from_source(bytes) else { continue };
            let mmdb = Mmdb { path: "damaged.mmdb".into(), reader };
            for ip in ["198.51.100.7", "203.0.113.7", "2001:db8::7"] {
                if let Ok(answer) = mmdb.answer(ip.parse().unwrap()) {
                    assert_eq!(answer.verdict, Verdict::Unknown);
                }
            }
        }
    }
}
