//! A dump with any records: inspect, triage, audit of memory and check of pages come to an end on it.
#![no_main]

use kwab::analysis::verify::{self, Backing};
use kwab::analysis::{audit, triage};
use kwab::model::{Depth, Dump, DumpFile};
use kwab::report::inspect::{Options, inspect};
use kwab::symbols::Symbols;
use kwab_fuzz::dump_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = DumpFile::from_bytes(dump_of(data)).expect("a sound dump");
    let dump = Dump::load(file, Depth::All);
    let (case, symbols, backing) = (dump.case(), Symbols::default(), Backing::none());
    let _ = triage(&case, &symbols, &backing, "fuzzed");
    let _ = (audit::audit(&case), audit::scope(&case));
    let _ = (verify::verify(&case, &backing), verify::verified(&case, &backing));
    let _ = case.losses();
    let _ = inspect(&dump, "fuzzed", Options::default());
});
