//! An ELF file of any bytes as a source of symbols: headers, segments, symbol tables, notes, unwind tables.
#![no_main]

use std::sync::Arc;

use kwab::symbols::{Image, ImageBytes, IndexCache, Probe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = ImageBytes::Memory { name: "fuzzed".into(), bytes: Arc::from(data) };
    let Ok(image) = Image::from_bytes(bytes, &IndexCache::none()) else { return };
    let (low, high) = image.link_range();
    let middle = low / 2 + high / 2;
    let mut out = [0; 64];
    for link in [0, low, middle, high.wrapping_sub(1), high, u64::MAX] {
        let _ = image.is_code(link);
        let _ = image.locate(link, Probe::Exact);
        let _ = image.read(link, &mut out);
    }
    let _ = (image.build_id(), image.head(&mut out), image.loaded().count());
    let _ = image.unwind_tables().map(|tables| tables.len());
});
