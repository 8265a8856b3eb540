//! Knows the text in which a Linux describes itself for readers of cores (`VMCOREINFO`, `kernel/vmcore_info.c`): how it
//! begins in the page that holds it, what its lines say, and whether it is of the kernel that runs.
//!
//! A page of a program may look like such a text. The text is believed when the page tables that it names have the
//! upper half of a processor's, which a program does not know the place of.

use super::walk::Tables;

/// How the text begins.
const BEGINNING: &[u8] = b"OSRELEASE=";
const PAGE: u64 = 4096;
/// Where Linux maps its image from physical address 0 (`__START_KERNEL_map`), moved by `phys_base`.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// Texts that are looked at closely; a memory full of copies is not.
pub(crate) const MOST_TEXTS: usize = 16;

/// The text in a page that begins with one.
pub(crate) fn text(page: &[u8]) -> Option<&str> {
    page.starts_with(BEGINNING).then_some(())?;
    let text = page.get(..memchr::memchr(0, page).unwrap_or(page.len()))?;
    str::from_utf8(text).ok().filter(|text| text.is_ascii())
}

/// The value of a line `NAME=VALUE`.
pub(crate) fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
}

/// The page tables that the text names.
pub(crate) fn tables(text: &str) -> Option<Tables> {
    let hex = |name: &str| u64::from_str_radix(line(text, name)?, 16).ok();
    let root = hex("SYMBOL(init_top_pgt)").or_else(|| hex("SYMBOL(swapper_pg_dir)"))?;
    let base: i64 = line(text, "NUMBER(phys_base)")?.parse().ok()?;
    let levels = if line(text, "NUMBER(pgtable_l5_enabled)") == Some("1") { 5 } else { 4 };
    Some(Tables { root: root.wrapping_sub(IMAGE).wrapping_add_signed(base), levels })
}

/// Whether the kernel described is the one that `processors` run; `word` reads physical memory.
pub(crate) fn is_of(text: &str, processors: &[Tables], word: impl Fn(u64) -> Option<u64>) -> bool {
    let last = |root: u64| word(root.checked_add(PAGE - 8)?).filter(|entry| entry & 1 == 1).map(|entry| entry >> 12);
    let root = tables(text).map(|tables| tables.root).filter(|root| root.is_multiple_of(PAGE));
    let entry = root.and_then(last);
    entry.is_some() && processors.iter().any(|tables| last(tables.root) == entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "OSRELEASE=6.1.0\nNUMBER(phys_base)=-1048576\nSYMBOL(swapper_pg_dir)=ffffffff82a0a000\n";

    #[test]
    fn page_tables_are_found_in_the_words_of_linux() {
        assert_eq!(tables(TEXT), Some(Tables { root: 0x290_a000, levels: 4 }));
        assert_eq!(text(b"OSRELEASE=6\0rest"), Some("OSRELEASE=6"));
        assert_eq!(text(b"xOSRELEASE=6\0"), None);
        assert_eq!(text(b"OSRELEASE=\xc3\xa4\0"), None, "not ASCII");
    }

    #[test]
    fn a_text_is_of_the_kernel_whose_upper_half_its_tables_have() {
        let word = |paddr: u64| match paddr {
            0x290_aff8 | 0x1ff8 => Some(0x3000_0063),
            0x2ff8 => Some(0x4000_0063),
            0x3ff8 => Some(0x3000_0062),
            _ => None,
        };
        let of = |root: u64| is_of(TEXT, &[Tables { root, levels: 4 }], word);
        assert!(of(0x1000));
        assert!(!of(0x2000), "another half");
        assert!(!of(0x3000), "not present");
        assert!(!of(0x4000), "not captured");
        assert!(!is_of("OSRELEASE=6.1.0\n", &[Tables { root: 0x1000, levels: 4 }], word));
    }
}
