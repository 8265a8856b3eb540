//! What another reader finds in the minidumps that are written: the crate `minidump`, which Mozilla's and others'
//! processors use, beside the numbers of the dump.

use std::collections::BTreeMap;

use kwab_format::List;
use kwab_format::record::{Memory, RegId};
use minidump::system_info::{Cpu, Os};
use minidump::{
    Minidump, MinidumpException, MinidumpMiscInfo, MinidumpModuleList, MinidumpSystemInfo, MinidumpThreadList,
    MinidumpThreadNames, Module as _,
};

use super::super::tests::{file, only, options, process_core};
use super::super::{Format, import_file};
use super::tests::sample;
use crate::export::minidump as export;
use crate::model::{Death, Dump};

/// Registers by the names that the reader has for them.
const REGISTERS: [(&str, RegId); 17] = [
    ("rax", RegId::RAX),
    ("rbx", RegId::RBX),
    ("rcx", RegId::RCX),
    ("rdx", RegId::RDX),
    ("rsi", RegId::RSI),
    ("rdi", RegId::RDI),
    ("rbp", RegId::RBP),
    ("rsp", RegId::RSP),
    ("rip", RegId::RIP),
    ("r8", RegId::R8),
    ("r9", RegId::R9),
    ("r10", RegId::R10),
    ("r11", RegId::R11),
    ("r12", RegId::R12),
    ("r13", RegId::R13),
    ("r14", RegId::R14),
    ("r15", RegId::R15),
];

/// Compares a minidump with the dump that it was made of.
fn is_the_same(dump: &Dump) {
    let mut bytes = Vec::new();
    let (case, death) = (dump.case(), Death::of(dump).expect("a death"));
    export(&case, &mut bytes).expect("of a process");
    let read = Minidump::read(bytes.as_slice()).expect("a minidump");
    let system = read.get_stream::<MinidumpSystemInfo>().expect("system");
    assert_eq!((system.os, system.cpu), (Os::Linux, Cpu::X86_64));
    let misc = read.get_stream::<MinidumpMiscInfo>().expect("misc");
    assert_eq!(misc.raw.process_id().copied(), death.pid);

    let exception = read.get_stream::<MinidumpException<'_>>().expect("exception");
    let record = &exception.raw.exception_record;
    assert_eq!((Some(record.exception_code), Some(exception.get_crashing_thread_id())), (death.signal, death.tid));
    assert_eq!(Some(exception.get_crash_address(Os::Linux, Cpu::X86_64)), death.fault_addr);

    let list = read.get_stream::<MinidumpThreadList<'_>>().expect("threads");
    let names = read.get_stream::<MinidumpThreadNames>().expect("names of threads");
    let mut threads = 0;
    for set in case.registers.iter().filter(|set| set.pid == death.pid) {
        let tid = set.tid.expect("whose");
        let thread = list.threads.iter().find(|thread| thread.raw.thread_id == tid).expect("the thread");
        let context = thread.context(&system, Some(&misc)).expect("its registers");
        let ours: BTreeMap<RegId, u64> =
            set.regs.iter().flat_map(List::iter).filter_map(|reg| Some((reg.id?, reg.value?))).collect();
        for (name, id) in REGISTERS {
            assert_eq!(context.get_register(name), ours.get(&id).copied(), "{name} of thread {tid}");
        }
        let comm = case.tasks.iter().find(|task| task.tid == Some(tid)).and_then(|task| task.comm);
        assert_eq!(names.get_name(tid).map(|name| name.into_owned().into_bytes()), comm.map(<[u8]>::to_vec), "{tid}");
        threads += 1;
    }
    assert_eq!((threads, list.threads.len()), (2, 2));

    let modules = read.get_stream::<MinidumpModuleList>().expect("modules");
    assert_eq!(modules.iter().count(), case.images.len());
    for image in &case.images {
        let (start, end) = (image.start.expect("an address"), image.end.expect("an end"));
        let module = modules.iter().find(|module| module.base_address() == start).expect("the module");
        assert_eq!(module.size(), end - start);
        assert_eq!(module.code_file().as_bytes(), image.path.unwrap_or_default());
        let id = image.build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        assert_eq!(module.code_identifier().map(|id| id.to_string()), id, "of {}", module.code_file());
    }

    let memory = read.get_memory().expect("memory");
    let mut compared = 0;
    for record in dump.records::<Memory<'_>>() {
        let (Some(start), Some(bytes)) = (record.vaddr, record.bytes.filter(|bytes| !bytes.is_empty())) else {
            continue;
        };
        // What two records have is in two ranges that touch.
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = start + (bytes.len() - rest.len()) as u64;
            let range = memory.memory_at_address(at).unwrap_or_else(|| panic!("nothing at {at:#x}"));
            let part = &range.bytes()[(at - range.base_address()) as usize..];
            let (same, behind) = rest.split_at(rest.len().min(part.len()));
            assert!(part.starts_with(same), "{at:#x} of {start:#x}");
            rest = behind;
        }
        compared += bytes.len();
    }
    assert!(compared > 4096, "{compared} bytes");
}

#[test]
fn the_crate_minidump_reads_the_threads_modules_and_memory_that_are_written() {
    is_the_same(&only(import_file(file(&process_core()), Format::ElfCore, &options()).expect("a core")).1);
    is_the_same(&only(import_file(file(&sample()), Format::Minidump, &options()).expect("a minidump")).1);
}
