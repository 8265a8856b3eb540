//! Reads the log that a Linux keeps in its memory (`kernel/printk/printk_ringbuffer.h`, since 5.10).
//!
//! Descriptors name the text of a record by logical positions in a ring; the lower bits of the first one say the slot
//! of the descriptor, those of a position the place in the ring of texts, where a word with the descriptor's number
//! stands before each text. `VMCOREINFO` says where and how long everything is.

use super::super::space::Space;

/// Descriptors, and bytes of texts, as powers of two: `log_buf_len` is at most 1 GiB, usual are 2^17.
const MOST_COUNT_BITS: u64 = 22;
const MOST_SIZE_BITS: u64 = 26;
/// Bytes of a log that any core may have.
const LEAST: u64 = 64 << 10;
/// States of a descriptor in its two upper bits: 1 is written, 2 final.
const STATE: u32 = 62;
/// The level and the facility of a record.
const LEVEL: u8 = 7;

/// Where members lie, as `VMCOREINFO` says.
struct Layout<'t> {
    told: &'t dyn Fn(&str) -> Option<u64>,
}

impl Layout<'_> {
    fn offset(&self, member: &str) -> Option<u64> {
        (self.told)(&format!("OFFSET({member})"))
    }

    fn size(&self, name: &str) -> Option<u64> {
        (self.told)(&format!("SIZE({name})"))
    }
}

/// The log as lines with level and seconds since boot: `<4>[    1.234567] text`.
pub(super) fn read(space: &Space<'_>, told: impl Fn(&str) -> Option<u64>) -> Option<Vec<u8>> {
    let layout = Layout { told: &told };
    let ring = space.word(told("SYMBOL(prb)")?)?;
    let descriptors = ring.wrapping_add(layout.offset("printk_ringbuffer.desc_ring")?);
    let texts = ring.wrapping_add(layout.offset("printk_ringbuffer.text_data_ring")?);
    let count_bits = space.half(descriptors.wrapping_add(layout.offset("prb_desc_ring.count_bits")?))?;
    let size_bits = space.half(texts.wrapping_add(layout.offset("prb_data_ring.size_bits")?))?;
    if u64::from(count_bits) > MOST_COUNT_BITS || u64::from(size_bits) > MOST_SIZE_BITS {
        return None;
    }
    // Time and level stand before each line of a text.
    let most = space.held() / 4 + LEAST;
    let (count, size) = (1_u64 << count_bits, 1_u64 << size_bits);
    let of = |member: &str| space.word(descriptors.wrapping_add(layout.offset(member)?));
    let records = Records {
        descs: of("prb_desc_ring.descs")?,
        infos: of("prb_desc_ring.infos")?,
        desc: layout.size("prb_desc")?,
        info: layout.size("printk_info")?,
        state: layout.offset("prb_desc.state_var")?,
        begin: layout.offset("prb_desc.text_blk_lpos")?.wrapping_add(layout.offset("prb_data_blk_lpos.begin")?),
        next: layout.offset("prb_desc.text_blk_lpos")?.wrapping_add(layout.offset("prb_data_blk_lpos.next")?),
        when: layout.offset("printk_info.ts_nsec")?,
        length: layout.offset("printk_info.text_len")?,
        data: space.word(texts.wrapping_add(layout.offset("prb_data_ring.data")?))?,
        size,
    };
    let (tail, head) = (of("prb_desc_ring.tail_id")?, of("prb_desc_ring.head_id")?);
    let mut log = Vec::new();
    let mut room = size;
    for number in (0..=head.wrapping_sub(tail) & ((1 << STATE) - 1)).take(count as usize) {
        let id = tail.wrapping_add(number) & ((1 << STATE) - 1);
        let Some((line, taken)) = records.line(space, id, id & (count - 1)) else { continue };
        // Records that claim the same text are not as many as they say.
        let Some(left) = room.checked_sub(taken) else { break };
        room = left;
        if (log.len() + line.len()) as u64 > most {
            break;
        }
        log.extend_from_slice(&line);
    }
    Some(log)
}

/// Where the parts of a record are.
struct Records {
    descs: u64,
    infos: u64,
    desc: u64,
    info: u64,
    state: u64,
    begin: u64,
    next: u64,
    when: u64,
    length: u64,
    data: u64,
    size: u64,
}

impl Records {
    /// The lines of record `id` in `slot`, and the bytes of its text; `None` when it is not finished or written over.
    fn line(&self, space: &Space<'_>, id: u64, slot: u64) -> Option<(Vec<u8>, u64)> {
        let (desc, info) = (
            self.descs.checked_add(slot.checked_mul(self.desc)?)?,
            self.infos.checked_add(slot.checked_mul(self.info)?)?,
        );
        let state = space.word(desc.wrapping_add(self.state))?;
        if !matches!(state >> STATE, 1 | 2) || state & ((1 << STATE) - 1) != id {
            return None;
        }
        let (begin, next) = (space.word(desc.wrapping_add(self.begin))?, space.word(desc.wrapping_add(self.next))?);
        let length_at = info.wrapping_add(self.length);
        let length = u64::from(space.half(length_at)? as u16);
        let level = {
            let mut flags = [0; 2];
            // Behind the length: facility, then flags and level in one byte.
            space.fill(length_at.wrapping_add(2), &mut flags)?;
            flags[1] >> 5 & LEVEL
        };
        // An odd position says that there is no text.
        let mut text = Vec::new();
        if begin & 1 == 0 && length > 0 {
            // A text that does not fit behind its begin stands at the begin of the ring.
            let (first, last) = (begin / self.size, next / self.size);
            let at = if first == last { begin % self.size } else { 0 } + 8;
            let length = length.min(self.size.checked_sub(at)?);
            text = space.bytes(self.data.checked_add(at)?, usize::try_from(length).ok()?)?;
        }
        let ns = space.word(info.wrapping_add(self.when))?;
        let head = format!("<{level}>[{:5}.{:06}] ", ns / 1_000_000_000, ns / 1000 % 1_000_000);
        let mut lines = Vec::with_capacity(head.len() + text.len() + 1);
        for line in text.split(|byte| *byte == b'\n') {
            lines.extend_from_slice(head.as_bytes());
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        let taken = text.len() as u64 + 8;
        Some((lines, taken))
    }
}
