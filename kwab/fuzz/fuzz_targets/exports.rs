//! A dump with any records in every exported form: JSON, core file, trace, folded stacks.
#![no_main]

use std::convert::Infallible;

use kwab::causes::Causes;
use kwab::export::{chrome_trace, core_stacks, elf_core, folded, perfetto_trace, span_tree};
use kwab::memory::Ram;
use kwab::model::{Depth, Dump, DumpFile, json, line, stream};
use kwab::symbols::Symbols;
use kwab_fuzz::dump_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = DumpFile::from_bytes(dump_of(data)).expect("a sound dump");
    let rows = stream::for_each(
        &file,
        |_| true,
        |_, raw| {
            let _ = serde_json::to_string(&json::object(raw)).expect("an object of text and numbers");
            let _ = raw.decode().map(|record| line::summary(&record, raw));
            Ok::<(), Infallible>(())
        },
    );
    let _ = rows;
    let dump = Dump::load(file, Depth::All);
    let (case, symbols) = (dump.case(), Symbols::default());
    let mut out = Vec::new();
    let _ = elf_core(&case, &Ram::of(&dump), &symbols, &mut out);
    let _ = core_stacks(&case, &symbols);
    out.clear();
    chrome_trace(&dump, &mut out).expect("memory does not fail");
    let _: serde_json::Value = serde_json::from_slice(&out).expect("a trace is JSON");
    out.clear();
    perfetto_trace(&dump, &Causes::of(&dump), &mut out).expect("memory does not fail");
    out.clear();
    let _ = folded(&dump, &symbols, &mut out);
    let _ = span_tree(&dump);
});
