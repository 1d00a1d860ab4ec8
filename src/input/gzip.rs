//! Gzip, member after member.
//!
//! Our own loop over flate2's single-member reader, since its `MultiGzDecoder` reads anything after the last member
//! as a damaged header: tape tools and block devices pad with zeros, which gzip(1) ignores too.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// A [`Read`] of what all members hold, in order.
pub(super) struct Gzip<R> {
    /// `None` once the stream has ended.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(source)) }
    }

    /// Whether another member follows. Zeros up to the end are padding; anything else is an error.
    fn next_member(source: &mut R) -> io::Result<bool> {
        let mut padded = false;
        loop {
            let bytes = match source.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match bytes {
                [] => return Ok(false),
                [0x1f, ..] if !padded => return Ok(true),
                _ => match bytes.iter().position(|&byte| byte != 0) {
                    None => {
                        padded = true;
                        let length = bytes.len();
                        source.consume(length);
                    }
                    Some(_) => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "data after the last gzip member",
                        ));
                    }
                },
            }
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            if let Some(member) = self.member.take() {
                let mut source = member.into_inner();
                if Self::next_member(&mut source)? {
                    self.member = Some(GzDecoder::new(source));
                }
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (String, Option<String>) {
        let mut text = String::new();
        let error = Gzip::new(bytes).read_to_string(&mut text).err().map(|error| error.to_string());
        (text, error)
    }

    #[test]
    fn members_follow_each_other_and_may_be_empty() {
        let bytes = [member("one "), member(""), member("two")].concat();
        assert_eq!(read(&bytes), ("one two".to_owned(), None));
    }

    #[test]
    fn zero_padding_is_ignored() {
        let bytes = [member("one"), vec![0; 70_000]].concat();
        assert_eq!(read(&bytes), ("one".to_owned(), None));
    }

    #[test]
    fn garbage_after_the_last_member_is_told() {
        let bytes = [member("one"), b"garbage".to_vec()].concat();
        assert_eq!(read(&bytes), ("one".to_owned(), Some("data after the last gzip member".to_owned())));
    }

    #[test]
    fn a_cut_member_gives_its_beginning_and_an_error() {
        let mut bytes = member(&"abc ".repeat(10_000));
        bytes.truncate(bytes.len() - 10);
        let (text, error) = read(&bytes);
        assert!(text.starts_with("abc "));
        assert!(error.is_some());
    }
}
