//! Packets in flight per sender, bounded by `SO_SNDBUF` (socket(7)).
//!
//! Every packet carries a [`Postage`], which counts at its sender until the packet is taken or thrown away. Packets
//! cost what Linux reckons for theirs, so a sender comes to its limit after as many.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering::Relaxed;

use machine::addr::PAGE_SIZE;

use super::Socket;

/// What one packet counts at its sender.
pub(super) struct Postage {
    sender: Weak<Socket>,
    cost: usize,
}

impl Postage {
    /// Counts a packet of `length` bytes at `sender`.
    pub(super) fn new(sender: &Arc<Socket>, length: usize) -> Self {
        let cost = cost(length);
        sender.on_the_way.fetch_add(cost, Relaxed);
        Self { sender: Arc::downgrade(sender), cost }
    }
}

impl Drop for Postage {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.upgrade() {
            sender.on_the_way.fetch_sub(self.cost, Relaxed);
            sender.writable.wake_all();
        }
    }
}

/// Bytes Linux keeps for a packet beside its contents: `struct sk_buff` and `struct skb_shared_info`.
const HEAD: usize = 256;
const TAIL: usize = 320;
/// Contents up to here are in one piece.
const ONE_PIECE: usize = 4 * PAGE_SIZE - TAIL;

/// What a packet of `length` bytes counts (`skb->truesize`).
const fn cost(length: usize) -> usize {
    if length <= ONE_PIECE {
        HEAD + (length.next_multiple_of(64) + TAIL).next_power_of_two()
    } else {
        HEAD + 4 * PAGE_SIZE + (length - ONE_PIECE).next_multiple_of(PAGE_SIZE)
    }
}
