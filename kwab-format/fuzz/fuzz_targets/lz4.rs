//! Any bytes unpack within their buffer or fail; any bytes that are packed unpack to themselves.
#![no_main]

use kwab_format::lz4::{TABLE_LEN, compress, decompress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut out = [0xEE; 600];
    let room = data.first().map_or(0, |b| usize::from(*b) * 2);
    if let Some(len) = decompress(data, &mut out[..room]) {
        assert!(len <= room);
    }
    assert!(out[room..].iter().all(|b| *b == 0xEE));
    let mut table = [0; TABLE_LEN];
    // Doubling makes matches likely.
    let twice = [data, data].concat();
    let mut packed = vec![0; twice.len() + twice.len() / 255 + 16];
    let len = compress(&twice, &mut packed, &mut table).expect("LZ4's worst case fits");
    let mut back = vec![0; twice.len()];
    assert_eq!(decompress(&packed[..len], &mut back), Some(twice.len()));
    assert_eq!(back, twice);
    let _ = compress(data, &mut packed[..room.min(twice.len())], &mut table);
});
