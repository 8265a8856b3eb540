//! Maps from addresses to the records of a case, each built when it is asked for the first time.

use kwab_format::record::{ImageKind, StackBounds, Vma};

use crate::intervals::{ByProcess, IntervalMap, Range};
use crate::model::{Case, Located};

/// How far code can lie from a printed frame when the dump does not say where the kernel is.
const NEAR_PRINTED: u64 = 8 << 20;
/// The mapping may be executed.
const EXECUTE: u32 = 4;
/// The mapping may be written.
const WRITE: u32 = 2;

/// The half-open range `start..end` with its number; `None` when it is empty.
fn range(start: u64, end: u64, number: usize) -> Option<Range> {
    Some((start, end.checked_sub(1)?, u32::try_from(number).ok()?))
}

impl<'a> Case<'a> {
    /// The first mapping that holds an address, among those of a process and those without one; `None` as the process
    /// means any.
    pub(super) fn vma_holding(&self, pid: Option<u32>, addr: u64) -> Option<&Located<Vma<'a>>> {
        let map = self.vmas_by_process();
        let number = if pid.is_none() { map.anywhere(addr) } else { map.seen_by(pid, addr) };
        self.vmas.get(number? as usize)
    }

    /// The first mapping of exactly this process that holds an address.
    pub(super) fn vma_owned(&self, pid: Option<u32>, addr: u64) -> Option<&Located<Vma<'a>>> {
        self.vmas.get(self.vmas_by_process().owned_by(pid, addr)? as usize)
    }

    /// The first mapping of a file that a program cannot write, as [`vma_holding`](Self::vma_holding) for one process.
    pub(super) fn file_holding(&self, pid: Option<u32>, addr: u64) -> Option<&Located<Vma<'a>>> {
        let is_file = |vma: &Vma<'_>| vma.path.is_some() && vma.prot.unwrap_or(0) & WRITE == 0;
        let map = self.lookup.files.get_or_init(|| self.mapped(is_file));
        self.vmas.get(map.seen_by(pid, addr)? as usize)
    }

    /// The first stack whose range or guard holds an address.
    pub(super) fn stack_holding(&self, addr: u64) -> Option<&Located<StackBounds<'a>>> {
        let map = self.lookup.stacks.get_or_init(|| {
            let numbered = self.stacks.iter().enumerate();
            IntervalMap::of(numbered.filter_map(|(number, stack)| {
                range(stack.low?.saturating_sub(stack.guard.unwrap_or(0)), stack.high?, number)
            }))
        });
        self.stacks.get(map.at(addr)? as usize)
    }

    /// Whether a process may execute code at an address, by its mappings.
    pub(super) fn is_executable(&self, pid: Option<u32>, addr: u64) -> bool {
        let allows = |vma: &Vma<'_>| vma.prot.unwrap_or(0) & EXECUTE != 0;
        let map = self.lookup.executable.get_or_init(|| self.mapped(allows));
        map.seen_by(pid, addr).is_some()
    }

    /// Whether the kernel may have code at an address: inside of its images, or near a frame that it printed when the
    /// dump names no image.
    pub(super) fn is_kernel_code(&self, addr: u64) -> bool {
        let map = self.lookup.kernel.get_or_init(|| {
            let kernel = |kind: Option<ImageKind>| matches!(kind, Some(ImageKind::KERNEL | ImageKind::MODULE));
            let mut images = self.images.iter().filter(|image| kernel(image.kind)).peekable();
            if images.peek().is_some() {
                return IntervalMap::of(images.filter_map(|image| range(image.start?, image.end?, 0)));
            }
            let printed = self.frames.iter().filter_map(|frame| frame.addr).filter(|addr| addr >> 63 == 1);
            let reach = NEAR_PRINTED - 1;
            IntervalMap::of(printed.map(|addr| (addr.saturating_sub(reach), addr.saturating_add(reach), 0)))
        });
        map.at(addr).is_some()
    }

    fn vmas_by_process(&self) -> &ByProcess {
        self.lookup.vmas.get_or_init(|| self.mapped(|_| true))
    }

    /// The mappings that `wanted` holds for.
    fn mapped(&self, wanted: impl Fn(&Vma<'_>) -> bool) -> ByProcess {
        let numbered = self.vmas.iter().enumerate().filter(|(_, vma)| wanted(vma));
        ByProcess::of(numbered.filter_map(|(number, vma)| Some((vma.pid, range(vma.start?, vma.end?, number)?))))
    }
}
