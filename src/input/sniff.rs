//! Names what is no text from its first bytes.

/// Share of control characters above which a beginning is no text, in percent. Random bytes have 10.5 %
/// (27 of 256 values, NUL left out), a log has none but colour escapes, which are not counted.
const BINARY_PERCENT: usize = 4;

/// Below this many bytes the share says nothing.
const ENOUGH: usize = 64;

/// Magic numbers with the offset at which they stand.
const MAGIC: [(usize, &[u8], &str); 19] = [
    (0, b"\x1f\x8b", "gzip inside a compressed file"),
    (0, b"\x28\xb5\x2f\xfd", "zstd inside a compressed file"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"PK\x05\x06", "a zip archive"),
    (0, b"\xfd7zXZ\0", "an xz file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\x04\x22\x4d\x18", "an lz4 file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "an executable"),
    (0, b"MZ\x90\0", "an executable"),
    (0, b"\xd4\xc3\xb2\xa1", "a packet capture"),
    (0, b"\xa1\xb2\xc3\xd4", "a packet capture"),
    (0, b"\x4d\x3c\xb2\xa1", "a packet capture"),
    (0, b"\x0a\x0d\x0d\x0a", "a packet capture"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"%PDF-", "a PDF document"),
];

/// What `start`, the beginning of the decompressed bytes, is if it is no text.
pub(super) fn binary(start: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| start.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((_, _, what)) = MAGIC.iter().find(|(offset, magic, _)| at(*offset, magic)) {
        return Some(what);
    }
    // NULs are left out of both sides: copytruncate leaves holes of them in logs that are fine.
    let bytes = start.iter().filter(|&&byte| byte != 0).count();
    let controls = start.iter().filter(|&&byte| is_odd_control(byte)).count();
    (bytes >= ENOUGH && controls * 100 > bytes * BINARY_PERCENT).then_some("a binary file")
}

fn is_odd_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, 0 | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x1b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_it_knows() {
        assert_eq!(binary(b"PK\x03\x04 and more"), Some("a zip archive"));
        let mut tar = vec![b'a'; 600];
        tar.splice(257..262, *b"ustar");
        assert_eq!(binary(&tar), Some("a tar archive"));
        let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(binary(&noise), Some("a binary file"));
    }

    #[test]
    fn text_passes_even_with_holes_and_colour() {
        assert_eq!(binary(b""), None);
        assert_eq!(binary(b"{\"src_ip\":\"192.0.2.1\"}\n"), None);
        assert_eq!(binary(&[vec![0; 4000], b"{\"a\":1}".repeat(20)].concat()), None);
        assert_eq!(
            binary("\u{1b}[31mred\u{1b}[0m plain text, é and more, to pass the floor\n".as_bytes()),
            None
        );
    }
}
