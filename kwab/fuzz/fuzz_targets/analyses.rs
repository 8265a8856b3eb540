//! A dump with any records: inspect, triage, audit of memory and check of pages come to an end on it.
#![no_main]

use kwab::analysis::verify::{self, Backing};
use kwab::analysis::{Dump, audit, triage};
use kwab::model;
use kwab::report::inspect::{Options, inspect};
use kwab::symbols::Symbols;
use kwab_fuzz::dump_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = dump_of(data);
    let dump = Dump::open(bytes.clone()).expect("a sound dump");
    let (case, symbols, backing) = (dump.case(), Symbols::default(), Backing::none());
    let _ = triage(&case, &symbols, &backing, "fuzzed");
    let _ = (audit::audit(&case), audit::scope(&case));
    let _ = (verify::verify(&case, &backing), verify::verified(&case, &backing));
    let _ = case.losses();
    let file = model::DumpFile::from_bytes(bytes).expect("a sound dump");
    let dump = model::Dump::load(file, model::Depth::All);
    let _ = inspect(&dump, "fuzzed", Options::default());
});
