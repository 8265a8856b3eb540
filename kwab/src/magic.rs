//! Knows what a file is by how it begins: text, packed text, or something that is refused by its name.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use kwab_format::section::FILE_MAGIC;

/// Formats that are unpacked while they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// zlib (RFC 1950).
    Zlib,
    /// xz (its format's own document, 1.2.1).
    Xz,
}

impl Packing {
    /// The name of the format, as messages print it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Zlib => "zlib",
            Self::Xz => "xz",
        }
    }

    /// What makes the command read it.
    pub(crate) const fn for_dumps(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dc FILE | kwab inspect - reads it",
            Self::Zstd => "zstd -dc FILE | kwab inspect - reads it",
            Self::Zlib => "pigz -dcz FILE | kwab inspect - reads it",
            Self::Xz => "xz -dc FILE | kwab inspect - reads it",
        }
    }

    /// What makes something usable of it when there is no log in it.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dc FILE unpacks it",
            Self::Zstd => "zstd -dc FILE unpacks it",
            Self::Zlib => "pigz -dcz FILE unpacks it",
            Self::Xz => "xz -dc FILE unpacks it",
        }
    }
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text of one byte per ASCII character.
    Text,
    /// UTF-16 in this order of bytes.
    Utf16(&'static Encoding),
    /// A packed file.
    Packed(Packing),
    /// What another tool has recorded, and `exchange` makes dumps of.
    Recorded(&'static str),
    /// A known format, and what can be done with it.
    Other(&'static str, &'static str),
    /// Nothing known; how much of the beginning is text, in percent.
    Binary {
        /// Percent of text.
        text: usize,
    },
}

impl Kind {
    /// What it is, with its article.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Utf16(_) => "UTF-16 text".to_owned(),
            Self::Packed(packing) => format!("{} data", packing.name()),
            Self::Other(name, _) | Self::Recorded(name) => name.to_owned(),
            Self::Binary { text } => format!("binary data ({text} % of its beginning is text)"),
        }
    }

    /// The format of a log that is not plain text.
    pub(crate) const fn form(self) -> Option<&'static str> {
        match self {
            Self::Utf16(_) => Some("UTF-16"),
            Self::Packed(packing) => Some(packing.name()),
            Self::Text | Self::Recorded(_) | Self::Other(..) | Self::Binary { .. } => None,
        }
    }

    /// What can be done with it.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Other(_, advice) => advice,
            Self::Packed(packing) => packing.advice(),
            Self::Recorded(_) => "kwab import FILE makes a dump of it",
            Self::Text | Self::Utf16(_) | Self::Binary { .. } => "strings FILE | kwab import - reads the text in it",
        }
    }
}

/// Formats by their first bytes: offset, bytes, name, advice. Sources: file(1)'s magic and the formats' own documents.
const KNOWN: &[(usize, &[u8], &str, &str)] = &[
    (0, &FILE_MAGIC, "a kwab dump already", "kwab inspect shows it"),
    (0, b"BZh", "bzip2 data", "bzip2 -dc FILE | kwab import - reads it"),
    (0, b"\x04\x22\x4d\x18", "lz4 data", "lz4 -dc FILE | kwab import - reads it"),
    (0, b"PK\x03\x04", "a zip archive", "unzip -p FILE LOG | kwab import - reads it"),
    (257, b"ustar", "a tar archive", "tar -xOf FILE LOG | kwab import - reads it"),
    (0, b"070701", "an initramfs", "--backing and --symbols take it"),
    (0, b"070702", "an initramfs", "--backing and --symbols take it"),
    (0, b"DISKDUMP", "a dump of diskdump", "crash reads it"),
    (0, b"QFI\xfb", "a qcow2 disk image", "qemu-img convert -O raw makes a dump disk of it"),
    (0, b"\xff\xfe\0\0", "UTF-32 text", "iconv -f UTF-32 -t UTF-8 FILE | kwab import - reads it"),
    (0, b"\0\0\xfe\xff", "UTF-32 text", "iconv -f UTF-32 -t UTF-8 FILE | kwab import - reads it"),
];

/// How makedumpfile's files begin: kdump-compressed, and flattened.
pub(crate) const MAKEDUMPFILE: [&[u8]; 2] = [b"KDUMP   ", b"makedumpfile\0\0\0\0"];
/// Text that only logs have; where it stands, no share of other bytes makes the input something else.
const SIGNS: &[&[u8]] = &[b"DBG {", b"KW1:", b"Linux version ", b"Kernel panic", b"panicked at "];
/// The least percentage of text at the beginning of a log: a console on a noisy line is still one.
const LEAST_TEXT: usize = 70;

/// What these first bytes begin.
pub(crate) fn kind(head: &[u8]) -> Kind {
    if head.starts_with(b"\x1f\x8b") {
        return Kind::Packed(Packing::Gzip);
    }
    if head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Kind::Packed(Packing::Zstd);
    }
    if head.starts_with(b"\xfd7zXZ\0") {
        return Kind::Packed(Packing::Xz);
    }
    if head.starts_with(b"\x7fELF") {
        return elf(head);
    }
    if head.starts_with(b"MDMP") {
        return Kind::Recorded("a minidump");
    }
    if MAKEDUMPFILE.iter().any(|magic| head.starts_with(magic)) {
        return Kind::Recorded("a dump of makedumpfile");
    }
    let begins = |at: usize, bytes: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(bytes));
    if let Some((_, _, name, advice)) = KNOWN.iter().find(|(at, bytes, ..)| begins(*at, bytes)) {
        return Kind::Other(name, advice);
    }
    if let Some(encoding) = utf16(head) {
        return Kind::Utf16(encoding);
    }
    let text = percent_of_text(head);
    if text >= LEAST_TEXT || SIGNS.iter().any(|sign| memchr::memmem::find(head, sign).is_some()) {
        Kind::Text
    } else if is_zlib(head) {
        Kind::Packed(Packing::Zlib)
    } else {
        Kind::Binary { text }
    }
}

/// The two bytes of a zlib header: deflate with a window of 32 KiB, no dictionary, and a check that makes them a
/// multiple of 31 (RFC 1950, 2.2). They are a letter and a sign in some texts.
fn is_zlib(head: &[u8]) -> bool {
    const DICTIONARY: u8 = 0x20;
    let is_sum = |flags: u8| u16::from_be_bytes([0x78, flags]).is_multiple_of(31);
    matches!(head, [0x78, flags, _, ..] if flags & DICTIONARY == 0 && is_sum(*flags))
}

/// An ELF file, by its type (`e_type`, System V ABI, chapter 4).
fn elf(head: &[u8]) -> Kind {
    let big = head.get(5) == Some(&2);
    let kind = head.get(16..18).map(|bytes| u16::from_le_bytes([bytes[usize::from(big)], bytes[usize::from(!big)]]));
    match kind {
        Some(4) if big => Kind::Other("an ELF core file of a big-endian machine", "gdb and crash read it"),
        Some(4) => Kind::Recorded("an ELF core file"),
        _ => Kind::Other("an ELF image", "--symbols takes it"),
    }
}

/// UTF-16 by its mark, or by every second byte of what else would be ASCII.
fn utf16(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        [0xff, 0xfe, ..] => return Some(UTF_16LE),
        [0xfe, 0xff, ..] => return Some(UTF_16BE),
        _ => {}
    }
    let pairs: Vec<&[u8]> = head.chunks_exact(2).take(2048).collect();
    let is = |zero: usize| {
        let ascii = |pair: &&&[u8]| {
            pair[zero] == 0 && (pair[1 - zero].is_ascii_graphic() || pair[1 - zero].is_ascii_whitespace())
        };
        pairs.len() >= 8 && pairs.iter().filter(ascii).count() * 10 >= pairs.len() * 9
    };
    if is(1) {
        Some(UTF_16LE)
    } else if is(0) {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn percent_of_text(head: &[u8]) -> usize {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c | 0x1b);
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let valid = chunk.valid();
        valid.chars().map(|c| if c.is_ascii() { usize::from(plain(&(c as u8))) } else { c.len_utf8() }).sum::<usize>()
    };
    let text: usize = head.utf8_chunks().map(of_chunk).sum();
    text * 100 / head.len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_with_noise_are_text_and_other_files_have_their_names() {
        for log in
            [&b"[    0.000000] Linux version 6.1\r\n"[..], "grün \u{1b}[0m ok\n".as_bytes(), b"x", b"\n\0\0\0DBG {"]
        {
            assert_eq!(kind(log), Kind::Text, "{log:?}");
        }
        assert_eq!(kind(b"\x78\x9c\xf3\xcc\x53\xc8\x4d\x2d\x52\x04\0"), Kind::Packed(Packing::Zlib));
        assert_eq!(kind(b"x^2 + y^2 is what the kernel computes\n"), Kind::Text);
        let mut noisy = vec![0xf0; 40_000];
        assert!(matches!(kind(&noisy), Kind::Binary { text: 0 }));
        noisy.extend_from_slice(b"Kernel panic - not syncing");
        assert_eq!(kind(&noisy), Kind::Text);
        let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0".to_vec();
        assert_eq!(kind(&elf).name(), "an ELF core file");
        elf[5] = 2;
        assert_eq!(kind(&elf).name(), "an ELF image");
        (elf[16], elf[17]) = (0, 4);
        assert_eq!(kind(&elf).name(), "an ELF core file of a big-endian machine");
        assert_eq!(kind(b"a\0b\0c\0d\0e\0f\0g\0h\0\n\0"), Kind::Utf16(UTF_16LE));
        assert_eq!(kind(b"\0a\0b\0c\0d\0e\0f\0g\0h\0\n"), Kind::Utf16(UTF_16BE));
        assert_eq!(kind(&[0; 4096]).name(), "binary data (0 % of its beginning is text)");
    }
}
