//! User address spaces: page tables that own the frames they map.
//!
//! A mapping holds one [`Frame`](crate::frame::Frame) reference. Intermediate entries are permissive, leaves are
//! restrictive. All operations take `&self` and an internal lock, so they are sound whatever the kernel's own locking;
//! each is atomic to the others. Changes that take rights away flush this processor's TLB, and shoot down the TLBs of
//! others running the space, before the frames are released: one flush per call, so pass ranges. A thread whose space
//! it is (see [`crate::thread::Thread::set_space`]) keeps it alive; a processor runs a space only through a thread.
//!
//! A leaf may be *held*: it owns a frame but grants nothing (`PROT_NONE` over touched pages).

pub use crate::mapping::{ForkMode, Leaf, MapError, NumberedFrame, Prot, Removed, Walk};
pub use crate::x86_64::memory::space::{UserSpace, huge_leaves, losses_here};
