//! The vDSO: a small ELF library the kernel maps into every program, so that reading the clock needs no call.
//!
//! Two pages: a data page with the clock's parameters, then the image, whose code (assembled in the machine crate)
//! reads the page before it. The image is put together here: headers, a dynamic section with symbol table, strings,
//! hash and version definitions, then the code at [`machine::vdso::CODE_OFFSET`]. The sequence word in the data page is
//! odd while an update is under way.
//!
//! Every symbol has the version `LINUX_2.6`, as vdso(7) promises on x86-64: Go's runtime reads `DT_VERDEF` without
//! asking whether it is there.

use core::sync::atomic::{AtomicU32, Ordering};

use linux_abi::Errno;
use machine::frame::Frame;
use machine::sync::Once;

/// Pages it takes: data, image.
pub const PAGES: u64 = 2;

struct Pages {
    data: Frame,
    image: Frame,
}

static VDSO: Once<Pages> = Once::new();
static SEQUENCE: AtomicU32 = AtomicU32::new(0);

/// Builds both pages; without memory for them programs simply get no vDSO.
pub fn start() {
    let (Ok(data), Ok(image)) = (Frame::alloc_zeroed(), Frame::alloc_zeroed()) else { return };
    image.write(0, &build());
    // Set once at boot: there is nothing to lose.
    let _ = VDSO.set(Pages { data, image });
    update();
}

/// Page 0 (data) or 1 (image).
pub fn page(index: u64) -> Result<Frame, Errno> {
    let pages = VDSO.get().ok_or(Errno::ENXIO)?;
    match index {
        0 => Ok(pages.data.clone()),
        1 => Ok(pages.image.clone()),
        _ => Err(Errno::ENXIO),
    }
}

/// Whether there is one.
pub fn exists() -> bool {
    VDSO.get().is_some()
}

/// Writes the clock's parameters to the data page.
pub fn update() {
    let Some(pages) = VDSO.get() else { return };
    let params = machine::time::params();
    let odd = SEQUENCE.fetch_add(1, Ordering::AcqRel) + 1;
    pages.data.store_u32(0, odd | 1);
    pages.data.store_u64(8, params.base);
    pages.data.store_u64(16, u64::from(params.mult));
    pages.data.store_u64(24, u64::from(params.shift));
    pages.data.store_u64(32, super::wall_offset());
    SEQUENCE.fetch_add(1, Ordering::AcqRel);
    pages.data.store_u32(0, (odd | 1) + 1);
}

/// The image: everything is at its file offset, one page, loaded at 0.
fn build() -> [u8; 4096] {
    let mut image = Image { bytes: [0; 4096] };
    let code = machine::vdso::code();
    let names = machine::vdso::symbols();
    let code_at = machine::vdso::CODE_OFFSET;
    image.put(code_at, code);
    image.header();
    let (strings_at, mut string) = (STRINGS, 1);
    for (index, (name, offset, len)) in names.iter().enumerate() {
        let at = SYMBOLS + 24 * (index + 1);
        image.put(strings_at + string, name.as_bytes());
        image.word32(at, string as u32);
        // STB_GLOBAL, STT_FUNC; section index 1: anything but undefined.
        image.put(at + 4, &[0x12, 0, 1, 0]);
        image.word64(at + 8, (code_at + offset) as u64);
        image.word64(at + 16, *len as u64);
        string += name.len() + 1;
    }
    image.put(strings_at + string, SONAME);
    let soname = string;
    string += SONAME.len() + 1;
    image.put(strings_at + string, VERSION);
    image.versions(names.len(), soname, string);
    string += VERSION.len() + 1;
    // One bucket: a chain through all symbols.
    let symbols = names.len() as u32 + 1;
    for (at, word) in [1, symbols, 1].into_iter().chain(core::iter::once(0)).chain(2..symbols).chain([0]).enumerate() {
        image.word32(HASH + 4 * at, word);
    }
    let dynamic = [
        (DT_HASH, HASH),
        (DT_STRTAB, STRINGS),
        (DT_SYMTAB, SYMBOLS),
        (DT_STRSZ, string),
        (DT_SYMENT, 24),
        (DT_SONAME, soname),
        (DT_VERSYM, VERSYM),
        (DT_VERDEF, VERDEF),
        (DT_VERDEFNUM, 2),
        (0, 0),
    ];
    assert!(dynamic.len() == DYNAMIC_ENTRIES && strings_at + string <= code_at, "the vDSO's tables do not fit");
    for (at, (tag, value)) in dynamic.into_iter().enumerate() {
        image.word64(DYNAMIC + 16 * at, tag);
        image.word64(DYNAMIC + 16 * at + 8, value as u64);
    }
    image.bytes
}

struct Image {
    bytes: [u8; 4096],
}

impl Image {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn word32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn word64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// The version of each symbol, and both definitions: the image itself (index 1, named as it) and [`VERSION`] (index
    /// 2).
    fn versions(&mut self, symbols: usize, soname: usize, version: usize) {
        for symbol in 1..=symbols {
            self.put(VERSYM + 2 * symbol, &2_u16.to_le_bytes());
        }
        let definitions = [(VER_FLG_BASE, SONAME, soname, VERDEF_BYTES), (0, VERSION, version, 0)];
        for (index, (flags, name, name_at, next)) in definitions.into_iter().enumerate() {
            let at = VERDEF + VERDEF_BYTES * index;
            // vd_version, vd_flags, vd_ndx, vd_cnt.
            for (n, half) in [1, flags, index as u16 + 1, 1].into_iter().enumerate() {
                self.put(at + 2 * n, &half.to_le_bytes());
            }
            // vd_hash, vd_aux, vd_next; then the one auxiliary entry: vda_name, vda_next.
            for (n, word) in [elf_hash(name), 20, next as u32, name_at as u32, 0].into_iter().enumerate() {
                self.word32(at + 8 + 4 * n, word);
            }
        }
    }

    /// ELF header and two program headers: one load segment, one dynamic.
    fn header(&mut self) {
        self.put(0, b"\x7fELF\x02\x01\x01");
        self.put(16, &3u16.to_le_bytes());
        self.put(18, &kernel_logic::elf::EM_X86_64.to_le_bytes());
        self.word32(20, 1);
        self.word64(32, 64);
        self.put(52, &64u16.to_le_bytes());
        self.put(54, &56u16.to_le_bytes());
        self.put(56, &2u16.to_le_bytes());
        self.put(58, &64u16.to_le_bytes());
        for (at, kind, flags, offset, len) in
            [(64, 1, 5, 0, 4096), (120, 2, 4, DYNAMIC as u64, 16 * DYNAMIC_ENTRIES as u64)]
        {
            self.word32(at, kind);
            self.word32(at + 4, flags);
            for (n, value) in [offset, offset, offset, len, len, if kind == 1 { 4096 } else { 8 }].iter().enumerate() {
                self.word64(at + 8 + 8 * n, *value);
            }
        }
    }
}

/// The hash of a name in symbol and version tables (System V ABI, "Hash Table").
fn elf_hash(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |hash, &byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

const SONAME: &[u8] = b"linux-vdso.so.1";
/// The version of all symbols (vdso(7), "x86-64 functions").
const VERSION: &[u8] = b"LINUX_2.6";
/// File offsets, below the code: program headers end at 0xb0.
const DYNAMIC: usize = 0xb0;
const DYNAMIC_ENTRIES: usize = 10;
const SYMBOLS: usize = 0x150;
const VERSYM: usize = 0x1c8;
const VERDEF: usize = 0x1d8;
/// An `Elf64_Verdef` with its one `Elf64_Verdaux`.
const VERDEF_BYTES: usize = 28;
const HASH: usize = 0x240;
const STRINGS: usize = 0x2a0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_SONAME: u64 = 14;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERDEFNUM: u64 = 0x6fff_fffd;
const VER_FLG_BASE: u16 = 1;
