//! DWARF and symbol tables of any bytes inside an ELF file that is sound, so that the fuzzer is not held up by its
//! headers.
#![no_main]

use std::sync::Arc;

use kwab::symbols::{Image, ImageBytes, IndexCache, Probe};
use kwab_fuzz::Input;
use libfuzzer_sys::fuzz_target;

/// Names of the sections that the input gives, in its order.
const NAMES: [&str; 10] = [
    ".debug_abbrev",
    ".debug_info",
    ".debug_line",
    ".debug_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_line_str",
    ".debug_addr",
    ".eh_frame",
    ".strtab",
];
const TEXT: u64 = 0x40_1000;

fuzz_target!(|data: &[u8]| {
    let bytes = ImageBytes::Memory { name: "fuzzed".into(), bytes: Arc::from(elf(&mut Input(data))) };
    let Ok(image) = Image::from_bytes(bytes, &IndexCache::none()) else { return };
    for link in [0, TEXT, TEXT + 1, TEXT + 0x10, TEXT + 0x80, TEXT + 0xFFF, u64::MAX] {
        for probe in [Probe::Exact, Probe::Return] {
            let _ = image.locate(link, probe);
        }
    }
    let _ = image.unwind_tables().map(|tables| tables.len());
});

/// A 64-bit executable with one loaded segment, the sections of the input, and a symbol table.
fn elf(input: &mut Input<'_>) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut bodies: Vec<(u32, u32, u64, &[u8], u32)> = Vec::new();
    for name in NAMES {
        let (kind, link) = if name == ".strtab" { (3, 0) } else { (1, 0) };
        bodies.push((add_name(&mut names, name), kind, 0, input.piece(), link));
    }
    let strtab = bodies.len() as u32;
    bodies.push((add_name(&mut names, ".symtab"), 2, 0, input.piece(), strtab));
    let shstrtab = add_name(&mut names, ".shstrtab");
    let mut out = vec![0; 64 + 56];
    let mut headers = vec![0; 64];
    for (name, kind, addr, body, link) in &bodies {
        section(&mut headers, *name, *kind, *addr, (out.len() as u64, body.len() as u64), *link);
        out.extend_from_slice(body);
    }
    section(&mut headers, shstrtab, 3, 0, (out.len() as u64, names.len() as u64), 0);
    out.extend(&names);
    let table = out.len() as u64;
    out.extend(headers);
    let count = bodies.len() as u16 + 2;
    out[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let header = [
        &[2, 0, 62, 0, 1, 0, 0, 0][..],
        &TEXT.to_le_bytes(),
        &64u64.to_le_bytes(),
        &table.to_le_bytes(),
        &[0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0],
        &count.to_le_bytes(),
        &(count - 1).to_le_bytes(),
    ]
    .concat();
    out[16..64].copy_from_slice(&header);
    let length = out.len() as u64;
    let numbers = [0, TEXT, TEXT, length, length.max(0x1000), 4096].map(u64::to_le_bytes);
    out[64..120].copy_from_slice(&[&[1, 0, 0, 0, 5, 0, 0, 0][..], &numbers.concat()].concat());
    out
}

fn add_name(names: &mut Vec<u8>, name: &str) -> u32 {
    let at = names.len() as u32;
    names.extend(name.as_bytes());
    names.push(0);
    at
}

fn section(headers: &mut Vec<u8>, name: u32, kind: u32, addr: u64, (offset, size): (u64, u64), link: u32) {
    headers.extend(name.to_le_bytes());
    headers.extend(kind.to_le_bytes());
    headers.extend(0u64.to_le_bytes());
    headers.extend(addr.to_le_bytes());
    headers.extend(offset.to_le_bytes());
    headers.extend(size.to_le_bytes());
    headers.extend(link.to_le_bytes());
    headers.extend(1u32.to_le_bytes());
    headers.extend(1u64.to_le_bytes());
    headers.extend((if kind == 2 { 24u64 } else { 0 }).to_le_bytes());
}
