//! The bounded LZ4 packer and unpacker agree with the reference implementation in Rust, and never overrun.

mod support;

use kwab_format::record::Memory;
use kwab_format::*;
use proptest::prelude::*;
use support::*;

/// Bytes with runs, repeats and noise, as memory has.
fn memory() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (any::<u8>(), 0..300usize).prop_map(|(b, n)| vec![b; n]),
        proptest::collection::vec(any::<u8>(), 0..60),
        (proptest::collection::vec(any::<u8>(), 1..9), 1..40usize).prop_map(|(word, n)| word.repeat(n)),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut table = [0; lz4::TABLE_LEN];
    let mut out = vec![0; bytes.len() + bytes.len() / 255 + 16];
    let len = lz4::compress(bytes, &mut out, &mut table).expect("LZ4's worst case fits");
    out.truncate(len);
    out
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_packed_here_unpacks_there_and_here(bytes in memory()) {
        let packed = pack(&bytes);
        prop_assert_eq!(&lz4_flex::block::decompress(&packed, bytes.len()).expect("valid LZ4"), &bytes);
        let mut out = vec![0; bytes.len()];
        prop_assert_eq!(lz4::decompress(&packed, &mut out), Some(bytes.len()));
        prop_assert_eq!(out, bytes);
    }

    #[test]
    fn what_is_packed_there_unpacks_here(bytes in memory()) {
        let packed = lz4_flex::block::compress(&bytes);
        let mut out = vec![0; bytes.len()];
        prop_assert_eq!(lz4::decompress(&packed, &mut out), Some(bytes.len()));
        prop_assert_eq!(out, bytes);
    }

    #[test]
    fn nonsense_and_short_buffers_fail_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), room in 0..300usize,
    ) {
        let mut out = vec![0; room];
        if let Some(len) = lz4::decompress(&bytes, &mut out) {
            prop_assert!(len <= room);
        }
        let mut table = [0; lz4::TABLE_LEN];
        if let Some(len) = lz4::compress(&bytes, &mut out, &mut table) {
            prop_assert!(len <= room);
        }
    }
}

#[test]
fn pages_that_compress_are_packed_and_pages_that_do_not_are_left_alone() {
    let zeros = [0u8; 4096];
    let noise: Vec<u8> = (0..4096u32)
        .map(|i| (i.wrapping_mul(0x9E37_79B1) ^ i.wrapping_mul(0x85EB_CA6B) >> 7) as u8 ^ ((i * i) >> 3) as u8)
        .collect();
    let (mut buf, mut scratch, mut table) = (vec![0; 8192], vec![0; 8192], [0; lz4::TABLE_LEN]);
    let compression = Compression { table: &mut table, scratch: &mut scratch };
    let mut writer = Writer::new(Collect::default(), &mut buf, HEADER).with_compression(compression);
    for bytes in [&zeros[..], &noise] {
        writer.begin_with(SectionKind::MEMORY, Flags::COMPRESSED).unwrap();
        writer.put(&Memory { bytes: Some(bytes), ..Memory::default() }).unwrap();
    }
    let (sink, result) = writer.finish();
    result.unwrap();
    let (good, bad) = read(&sink.0);
    assert_eq!(bad, []);
    assert!(good[0].header.flags.contains(Flags::COMPRESSED) && good[0].payload.len() < 100);
    assert!(!good[1].header.flags.contains(Flags::COMPRESSED));
    for (section, bytes) in good.iter().zip([&zeros[..], &noise]) {
        let mut scratch = vec![0; section.unpacked_len()];
        let records = section.unpack(&mut scratch).unwrap();
        assert_eq!(
            only_record(records).decode(),
            Ok(AnyRecord::Memory(Memory { bytes: Some(bytes), ..Memory::default() }))
        );
    }
}
