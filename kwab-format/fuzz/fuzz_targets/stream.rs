//! A channel of any bytes: dumps are found in order, without overlap, and each can be walked.
//!
//! The bytes also decide how sound dumps are cut, repeated and overwritten within the channel.
#![no_main]

use kwab_format::stream::{Dumps, slot_is_used};
use kwab_format::{Item, Reader};
use libfuzzer_sys::fuzz_target;

const DUMPS: [&[u8]; 2] = [
    include_bytes!("../../vectors/dumps/smallest.kwab"),
    include_bytes!("../../vectors/dumps/packed-and-indexed.kwab"),
];

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&channel(data));
    let _ = slot_is_used(data);
});

fn check(channel: &[u8]) {
    let mut end = 0;
    for found in Dumps::new(channel) {
        assert!(found.offset >= end, "dumps overlap");
        end = found.offset + found.bytes.len();
        assert!(end <= channel.len() && !found.bytes.is_empty());
        let reader = Reader::new(found.bytes).expect("what is found can be opened");
        assert_eq!(reader.dump_id(), Some(found.dump_id));
        for item in reader.sections() {
            if let Item::Section(section) = item {
                assert_eq!(section.header.dump_id, found.dump_id);
            }
        }
    }
}

/// Four bytes an instruction: which dump, from where, how much of it, and where it goes; or noise.
fn channel(data: &[u8]) -> Vec<u8> {
    let mut channel = Vec::new();
    for op in data.as_chunks::<4>().0 {
        let [what, from, len, place] = *op;
        let piece = match what % 4 {
            3 => op.as_slice(),
            which => {
                let dump = DUMPS[usize::from(which & 1)];
                let from = usize::from(from) * dump.len() / 256;
                &dump[from..(from + usize::from(len) * 3).min(dump.len())]
            }
        };
        if what & 128 == 0 {
            channel.extend_from_slice(piece);
        } else {
            let at = usize::from(place) * channel.len() / 256;
            let end = (at + piece.len()).min(channel.len());
            channel.splice(at..end, piece.iter().copied());
        }
    }
    channel
}
