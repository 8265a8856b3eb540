//! A dump channel of any bytes, and one whose first slots hold the fuzzer's records: the dumps in it are cut out.
#![no_main]

use kwab::import::{Options, import_channel, is_channel};
use kwab_fuzz::dump_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let options = Options { source: "channel".into(), folder: None };
    let mut slots = dump_of(data);
    slots.resize(slots.len().next_multiple_of(4096), 0);
    slots.extend_from_slice(data);
    for bytes in [data, &slots] {
        let _ = is_channel(bytes);
        let _ = import_channel(bytes, &options);
    }
});
