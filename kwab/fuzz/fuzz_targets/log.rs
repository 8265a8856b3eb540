//! A log of any bytes: event lines of both dialects, panic and Linux text, armoured lines, anything between them.
//!
//! The import ends, and what it writes is nothing that breaks (no file is written without a folder).
#![no_main]

use kwab::import::{Options, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let options = Options { source: "log".into(), folder: None };
    let (report, _) = import(data, &options, &mut |_| {}).expect("memory does not fail");
    assert_eq!(report.bytes, data.len() as u64);
});
