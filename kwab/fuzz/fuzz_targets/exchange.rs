//! A file of another tool of any bytes: an ELF core, a minidump, a log of QEMU, a text of strace. The first byte says
//! which, so that no bytes go into looking like one.
//!
//! The import ends, and what it writes is in proportion to what it read.
#![no_main]

use std::io::Write as _;

use kwab::exchange::{Format, TextFormat, import_file, import_text};
use kwab::import::Options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((which, data)) = data.split_first() else { return };
    let options = Options { source: "fuzz".into(), folder: None };
    let format = match which {
        b'c' => Format::ElfCore,
        b'm' => Format::Minidump,
        other => {
            let format = if *other == b'q' { TextFormat::QemuTrace } else { TextFormat::Strace };
            import_text(data, data, format, &options, &mut |_| {}).expect("memory does not fail");
            return;
        }
    };
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(data).expect("room");
    if let Ok((report, _)) = import_file(file, format, &options) {
        assert_eq!(report.bytes, data.len() as u64);
    }
});
