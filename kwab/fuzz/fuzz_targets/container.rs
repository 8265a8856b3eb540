//! A log of any bytes as files hold it: compressed, the parts of pstore, the journal's forms.
//!
//! The import ends, and what is packed beyond its bound is refused rather than unpacked.
#![no_main]

use kwab::import::{LogInput, Options, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = LogInput::open(data) else { return };
    let options = Options { source: "log".into(), folder: None };
    let _ = import(input, &options, &mut |_| {});
});
