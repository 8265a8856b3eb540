//! Decides whether a section of memory is packed before it is written: by what either way has cost so far.
//!
//! Packing saves the channel bytes and costs the processor time, and which is dearer is known only on the machine that
//! dies. So both ways are tried by turns on the first sections; after that the cheaper one is taken. The other one is
//! tried again after a pause: soon at first, for a single section that was slow may have misled, and then less often.
//! Packing makes the smaller dump, so it is given up only where writing plain is clearly faster. Where the channel may
//! be too short for all that is still wanted, everything is packed whatever it costs: the loss of a part weighs more
//! than time.

/// What is done to a section before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing is done to it.
    Plain,
    /// It is packed.
    Packed,
}

/// What one way has cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Sections that were timed.
    samples: u32,
    /// Picoseconds a byte, near the lowest that was seen: what makes a section slower is mostly not the way's doing,
    /// and however slow one was, it counts as twice as slow.
    pace: u64,
}

impl Cost {
    /// The first section of a way is not counted: caches fill, an emulator translates.
    fn note(&mut self, pace: u64) {
        self.samples = self.samples.saturating_add(1);
        self.pace = match self.samples {
            1 => u64::MAX,
            _ if pace < self.pace => pace,
            _ => self.pace.saturating_add((pace - self.pace).min(self.pace) / SLOWNESS),
        };
    }
}

/// Chooses the way of each section; see the module.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    plain: Cost,
    packed: Cost,
    /// Sections since the dearer way was tried, and after how many it is tried again.
    since: u32,
    pause: u32,
}

/// Sections of each way before a choice: plain, packed. Plain once more, for a channel that was held up misleads.
const TRIALS: (u32, u32) = (3, 2);
/// Sections between two trials of writing plain where packing seems cheaper: at first, and at most. Of packing where
/// writing plain seems cheaper always the latter: to be wrong there costs bytes, and a trial costs time.
const PAUSE: (u32, u32) = (4, 64);
/// How slowly a pace follows slower sections.
const SLOWNESS: u64 = 4;
/// Sections shorter than this say nothing about a pace: a request has costs of its own.
const LEAST: usize = 16 << 10;

impl Packing {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        let unknown = Cost { samples: 0, pace: u64::MAX };
        Self { plain: unknown, packed: unknown, since: 0, pause: PAUSE.0 }
    }

    /// Notes that a section of `bytes` took `ns` to be packed, if it was, and written.
    pub fn note(&mut self, way: Way, bytes: usize, ns: u64) {
        if bytes < LEAST {
            return;
        }
        let before = self.cheaper();
        let cost = match way {
            Way::Plain => &mut self.plain,
            Way::Packed => &mut self.packed,
        };
        cost.note(ns.saturating_mul(1000) / bytes as u64);
        (self.since, self.pause) = match way == before {
            _ if before != self.cheaper() => (0, self.first_pause()),
            true => (self.since.saturating_add(1), self.pause),
            // The trial confirms the choice.
            false => (0, self.pause.saturating_mul(2).min(PAUSE.1)),
        };
    }

    /// The way of the next section. The channel has `room` bytes, if it is bounded, of which `needed` is the most that
    /// all memory still to be written takes when it is not packed.
    pub fn choose(&self, room: Option<u64>, needed: u64) -> Way {
        if room.is_some_and(|room| room < needed) {
            return Way::Packed;
        }
        if self.plain.samples < TRIALS.0 || self.packed.samples < TRIALS.1 {
            return if self.plain.samples <= self.packed.samples { Way::Plain } else { Way::Packed };
        }
        match (self.cheaper(), self.since >= self.pause) {
            (Way::Plain, false) | (Way::Packed, true) => Way::Plain,
            (Way::Packed, false) | (Way::Plain, true) => Way::Packed,
        }
    }

    fn first_pause(&self) -> u32 {
        if self.cheaper() == Way::Packed { PAUSE.0 } else { PAUSE.1 }
    }

    /// Packing, unless writing plain takes less than three quarters of its time.
    fn cheaper(&self) -> Way {
        if self.plain.pace < self.packed.pace / 4 * 3 { Way::Plain } else { Way::Packed }
    }
}

impl Default for Packing {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections of a whole buffer written one after the other where a byte costs so many picoseconds: how many of them
    /// plain, and the nanoseconds of all.
    fn written(packing: &mut Packing, sections: u32, (plain, packed): (u64, u64)) -> (u32, u64) {
        let mut sum = (0, 0);
        for _ in 0..sections {
            let way = packing.choose(None, 0);
            let ns = if way == Way::Plain { plain << 16 } else { packed << 16 } / 1000;
            packing.note(way, 1 << 16, ns);
            sum = (sum.0 + u32::from(way == Way::Plain), sum.1 + ns);
        }
        sum
    }

    #[test]
    fn the_faster_way_is_taken_after_two_trials_of_each() {
        let (plain, ns) = written(&mut Packing::new(), 60, (6_000, 30_000));
        assert_eq!(plain, 58);
        assert!(ns < (60 << 16) * 6 * 12 / 10, "{ns} ns");
        // The same where the channel is slow.
        assert!(written(&mut Packing::new(), 60, (30_000, 6_000)).0 <= 8);
    }

    #[test]
    fn packing_is_kept_where_plain_is_not_clearly_faster() {
        assert!(written(&mut Packing::new(), 60, (9_000, 10_000)).0 <= 8);
    }

    #[test]
    fn a_channel_that_may_be_too_short_packs_whatever_it_costs() {
        let (mut packing, mut room, mut packed) = (Packing::new(), 50 << 16, 0);
        for left in (1..=60).rev() {
            let way = packing.choose(Some(room), left << 16);
            // Packing halves them.
            room -= if way == Way::Packed { 1 << 15 } else { 1 << 16 };
            packed += u64::from(way == Way::Packed);
            packing.note(way, 1 << 16, 1 << 20);
        }
        assert!(packed >= 20, "{packed} packed, {room} bytes left");
        let packing = Packing::new();
        assert_eq!(packing.choose(Some((59 << 16) - 1), 59 << 16), Way::Packed);
        assert_eq!(packing.choose(Some(59 << 16), 59 << 16), Way::Plain);
    }

    #[test]
    fn the_first_section_of_a_way_and_short_ones_say_nothing() {
        let mut packing = Packing::new();
        for (way, ns) in
            [(Way::Plain, 90 << 16), (Way::Packed, 20 << 16), (Way::Plain, 5 << 16), (Way::Packed, 20 << 16)]
        {
            packing.note(way, 100, 1 << 40);
            packing.note(way, 1 << 16, ns);
        }
        assert_eq!(packing.choose(None, 0), Way::Plain);
    }

    #[test]
    fn one_slow_section_changes_nothing_and_a_channel_that_became_slow_is_found() {
        let mut packing = Packing::new();
        written(&mut packing, 20, (6_000, 30_000));
        packing.note(Way::Plain, 1 << 16, 10_000_000);
        assert_eq!(packing.choose(None, 0), Way::Plain);
        let (plain, _) = written(&mut packing, 60, (300_000, 30_000));
        assert!(plain < 10, "{plain} sections plain");
    }

    #[test]
    fn the_dearer_way_is_tried_once_in_a_while() {
        let mut packing = Packing::new();
        assert!(written(&mut packing, 60, (30_000, 10_000)).0 <= 8);
        // The channel has become fast: found at a later trial.
        let (plain, _) = written(&mut packing, 200, (2_000, 10_000));
        assert!((100..200).contains(&plain), "{plain} sections plain");
    }

    #[test]
    fn trials_that_the_host_held_up_mislead_for_few_sections() {
        let mut packing = Packing::new();
        for (way, ns) in [(Way::Plain, 6), (Way::Packed, 30), (Way::Plain, 150), (Way::Packed, 30), (Way::Plain, 90)] {
            packing.note(way, 1 << 16, ns << 16);
        }
        assert_eq!(packing.choose(None, 0), Way::Packed);
        let (plain, _) = written(&mut packing, 60, (6_000, 30_000));
        assert!(plain > 48, "{plain} sections plain");
    }
}
