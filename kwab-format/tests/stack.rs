//! The writer's use of stack is bounded and small: a kernel calls it on whatever is left of a stack that overflowed.
//!
//! The sink is where the writer is deepest but for leaf functions (CRC32, the packer), so the distance between a local
//! of the caller and a local of the sink is what the writer needs, give or take a leaf's frame.

mod support;

use kwab_format::record::{CanaryCheck, Reg, RegId, Registers, Text};
use kwab_format::*;
use support::HEADER;

/// Remembers the lowest address it was called at.
struct Depth {
    lowest: usize,
}

impl Sink for Depth {
    fn write(&mut self, _: &[u8]) -> Result<(), SinkError> {
        self.lowest = self.lowest.min(here());
        Ok(())
    }
}

/// An address in the frame of the caller, roughly.
#[inline(always)]
fn here() -> usize {
    let local = 0u8;
    (&raw const local).addr()
}

/// Bytes of stack between this function and the sink while a dump is written.
#[inline(never)]
fn depth(buf: &mut [u8], slots: &mut [IndexSlot], compression: Compression<'_>, regs: &[Reg<'_>]) -> usize {
    let top = here();
    let sink = Depth { lowest: usize::MAX };
    let mut writer = Writer::new(sink, buf, HEADER).with_index(slots).with_compression(compression);
    let _ = writer.begin_with(SectionKind::REGISTERS, Flags::COMPRESSED);
    let _ = writer.put(&Registers { regs: Some(List::new(regs)), ..Registers::default() });
    let _ = writer.begin(SectionKind::EVENTS);
    for i in 0..100 {
        let _ = writer.put(&CanaryCheck { found: Some(i), when: Some(b"pre_syscall"), ..CanaryCheck::default() });
        let _ = writer.put(&Text { bytes: Some(b"console"), ..Text::default() });
    }
    writer.skip(SectionKind::LOCKS, DropReason::LOCKED);
    let (sink, result) = writer.finish();
    assert_eq!(result, Ok(()));
    top - sink.lowest
}

#[test]
#[cfg_attr(miri, ignore = "Miri's addresses are no stack")]
fn writing_a_dump_takes_less_than_eight_kilobytes_of_stack() {
    let (mut buf, mut scratch, mut table) = (vec![0; 4096], vec![0; 4096], Box::new([0; lz4::TABLE_LEN]));
    let mut slots = [IndexSlot::default(); 16];
    let regs: Vec<_> = (0..40).map(|i| Reg::new(RegId(i), 0)).collect();
    let compression = Compression { table: &mut table, scratch: &mut scratch };
    let depth = depth(&mut buf, &mut slots, compression, &regs);
    println!("{depth} bytes of stack, {} of them the writer itself", size_of::<Writer<'_, Depth>>());
    assert!(depth < 8192, "{depth} bytes");
    assert!(size_of::<Writer<'_, Depth>>() < 2048);
}
