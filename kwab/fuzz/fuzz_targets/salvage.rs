//! A dump of any bytes is checked and salvaged: what is salvaged is a sound dump, and checking it finds nothing.
#![no_main]

use kwab::model::DumpFile;
use kwab::report::check::check;
use kwab::report::salvage::salvage;
use kwab_fuzz::dump_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut damaged = dump_of(data);
    // The last bytes of the input say where the sound dump is damaged.
    if let [.., a, b, c] = *data {
        let at = usize::from(a) << 8 | usize::from(b);
        if let Some(byte) = damaged.get_mut(at) {
            *byte ^= c;
        }
    }
    for bytes in [data, &damaged] {
        let Ok(mut file) = DumpFile::from_bytes(bytes.to_vec()) else { continue };
        let _ = check(&mut file, "fuzzed");
        let mut out = Vec::new();
        if salvage(&file, "fuzzed", &mut out).is_ok() {
            let again = DumpFile::from_bytes(out).expect("what is salvaged is a dump");
            let left: Vec<_> = again.defects.iter().map(ToString::to_string).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
});
