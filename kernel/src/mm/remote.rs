//! Access to another process's memory, page by page (process_vm_readv(2), `/proc/<pid>/mem`).

use kernel_logic::vma::PAGE;
use machine::addr::UserPage;
use machine::frame::Frame;
use machine::trap::Access;

use super::{AddressSpace, Map, page_down};

impl AddressSpace {
    /// Copies from `addr` on into `to`; how many bytes could be, up to the first page that may not be read.
    pub fn read_remote(&self, addr: u64, to: &mut [u8]) -> usize {
        self.each_page(addr, to.len(), Access::Read, |frame, offset, done, len| {
            frame.read(offset, &mut to[done..done + len]);
        })
    }

    /// Copies `from` to `addr` on; how many bytes could be.
    pub fn write_remote(&self, addr: u64, from: &[u8]) -> usize {
        self.each_page(addr, from.len(), Access::Write, |frame, offset, done, len| {
            frame.write(offset, &from[done..done + len]);
        })
    }

    fn each_page(
        &self,
        addr: u64,
        len: usize,
        access: Access,
        mut copy: impl FnMut(&Frame, usize, usize, usize),
    ) -> usize {
        let mut done = 0;
        while done < len {
            let at = addr.wrapping_add(done as u64);
            let Some(page) = UserPage::new(page_down(at)) else { break };
            let offset = (at % PAGE) as usize;
            let part = (PAGE as usize - offset).min(len - done);
            // Nothing may come between the fault, which gives the page the rights, and the copy: a page thrown away in
            // between could leave a frame of the page cache there, which a private mapping must not write.
            let mut map = self.lock();
            let Some(frame) = self.frame_with(&mut map, at, page, access) else { break };
            copy(&frame, offset, done, part);
            drop(map);
            done += part;
        }
        done
    }

    /// The frame at `page` once its leaf grants `access`: `None` if the range does not, or memory runs out.
    fn frame_with(&self, map: &mut Map, at: u64, page: UserPage, access: Access) -> Option<Frame> {
        // The fault checks the range's rights even when the page is there.
        self.fault_locked(map, at, page, access).ok()?;
        let (frame, leaf) = self.space.frame(page)?;
        let granted = match access {
            Access::Read => leaf.prot.read,
            Access::Write => leaf.prot.write,
            Access::Execute => leaf.prot.exec,
        };
        granted.then_some(frame)
    }
}
