//! Puts the records of a dump on one clock: nanoseconds since boot.
//!
//! A record is stamped in nanoseconds, in ticks of the time-stamp counter, or in both. The nanoseconds of a record are
//! taken where it has them. Ticks are converted by the frequency that the dump states and by one record that has both;
//! without such a record the counter is taken to have begun with the clock, and [`Clock::is_assumed`] says so where the
//! dump has records of both sorts. Without a frequency a tick counts as a nanosecond.

use kwab_format::record::{Identity, Stamp};
use kwab_format::{AnyRecord, RawRecord, RecordType as _, SectionKind};

use crate::model::Dump;

/// What the nanoseconds of a [`Clock`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nanoseconds, as the records state them or as the stated frequency makes of ticks.
    Time,
    /// Ticks of a counter of unknown speed, each shown as a nanosecond.
    Ticks,
}

/// The clock of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    hertz: Option<u64>,
    /// Nanoseconds and ticks of one moment.
    anchor: (u64, u64),
    scale: Scale,
    assumed: bool,
    /// Whether a stamp lies before the beginning of the clock.
    contradicted: bool,
}

/// The latest time that a clock shows, what a signed 64-bit number holds: 292 years. Later stamps are no times.
pub const LATEST: u64 = i64::MAX as u64;

/// Kinds of section whose records are put on the clock.
const TIMED: &[SectionKind] = &[SectionKind::EVENTS, SectionKind::FLIGHT, SectionKind::SYSCALLS, SectionKind::CAUSE];

/// Whether records of this kind of section happened at a moment.
pub(super) fn is_timed(kind: SectionKind) -> bool {
    TIMED.contains(&kind)
}

impl Clock {
    /// The clock of the records that are loaded.
    #[must_use]
    pub fn of(dump: &Dump) -> Self {
        let sections = dump.loaded.iter().filter(|section| is_timed(section.kind));
        let records = sections.flat_map(|section| kwab_format::Records::new(&section.payload));
        Self::of_stamps(hertz(dump), records.filter_map(|raw| raw.decode().ok()).map(|record| stamp_of(&record)))
    }

    /// The clock by which these stamps were made, and the counter's frequency where it is known.
    pub fn of_stamps<'s>(hertz: Option<u64>, stamps: impl Iterator<Item = Stamp<'s>>) -> Self {
        let (mut in_time, mut in_ticks, mut anchor, mut earliest) = (false, false, None, u64::MAX);
        for stamp in stamps {
            match (stamp.ns, stamp.tsc) {
                (Some(ns), Some(tsc)) if anchor.is_none() => anchor = Some((ns, tsc)),
                (Some(_), None) => in_time = true,
                (None, Some(tsc)) => (in_ticks, earliest) = (true, earliest.min(tsc)),
                _ => {}
            }
        }
        let hertz = hertz.filter(|hertz| *hertz > 0);
        let scale = if hertz.is_some() || in_time || anchor.is_some() { Scale::Time } else { Scale::Ticks };
        let assumed = in_ticks && (in_time || anchor.is_some()) && (anchor.is_none() || hertz.is_none());
        let clock = Self { hertz, anchor: anchor.unwrap_or_default(), scale, assumed, contradicted: false };
        // A counter that shows less than it did when the clock began is not the one that the anchor tells of.
        let before = in_ticks && clock.since(earliest) < 0;
        Self { assumed: assumed || before, contradicted: before, ..clock }
    }

    /// When a record happened; `None` when its stamp has no time, or one that no clock shows.
    #[must_use]
    pub fn at(&self, stamp: &Stamp<'_>) -> Option<u64> {
        match (stamp.ns, stamp.tsc) {
            (Some(ns), _) => (ns <= LATEST).then_some(ns),
            (None, Some(tsc)) => self.at_tick(tsc),
            (None, None) => None,
        }
    }

    /// When the counter showed this; `None` for a time before the clock began, or one that no clock shows.
    #[must_use]
    pub fn at_tick(&self, tick: u64) -> Option<u64> {
        u64::try_from(self.since(tick)).ok().filter(|at| *at <= LATEST)
    }

    /// Nanoseconds from the beginning of the clock to when the counter showed this.
    fn since(&self, tick: u64) -> i128 {
        let (ns, base) = self.anchor;
        let ticks = i128::from(tick) - i128::from(base);
        i128::from(ns) + (ticks * 1_000_000_000).div_euclid(i128::from(self.hertz.unwrap_or(1_000_000_000)))
    }

    /// How long so many ticks are.
    #[must_use]
    pub fn span(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.hertz.unwrap_or(1_000_000_000));
        u64::try_from(ns).unwrap_or(LATEST).min(LATEST)
    }

    /// What its nanoseconds are.
    #[must_use]
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether records of two clocks stand beside each other without one that has both times, without a frequency, or
    /// with a stamp before the beginning of the clock.
    #[must_use]
    pub const fn is_assumed(&self) -> bool {
        self.assumed
    }

    /// What the clock is, in words.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match (self.scale, self.assumed) {
            (Scale::Time, false) => "nanoseconds since boot",
            (Scale::Time, true) if self.contradicted => {
                "nanoseconds since boot; the counter was set back: some of its stamps lie before the clock began"
            }
            (Scale::Time, true) => {
                "nanoseconds since boot; no record relates the counter to them, which is taken to begin with them"
            }
            (Scale::Ticks, _) => "ticks of a counter of unknown speed, each shown as a nanosecond",
        }
    }
}

/// When and where a record happened. What a log printed of a recorder without a base counts from the recorder's own.
pub(super) fn stamp_of<'r>(record: &AnyRecord<'r>) -> Stamp<'r> {
    let stamp = record.stamp();
    match record {
        AnyRecord::FlightEvent(event) => Stamp { tsc: stamp.tsc.or(event.delta_ticks), ..stamp },
        _ => stamp,
    }
}

/// Ticks of the time-stamp counter per second, when the dump says so.
#[must_use]
pub fn hertz(dump: &Dump) -> Option<u64> {
    let stated = |raw: RawRecord<'_>| match raw.decode().ok()? {
        AnyRecord::Identity(identity) => identity.tsc_hz,
        AnyRecord::SpanProfile(profile) => profile.tsc_freq_hz,
        AnyRecord::SyscallProfile(profile) => profile.tsc_freq_hz,
        _ => None,
    };
    let telling = [Identity::KIND, kwab_format::record::SpanProfile::KIND, kwab_format::record::SyscallProfile::KIND];
    let records = dump.loaded.iter().flat_map(|section| kwab_format::Records::new(&section.payload));
    records.filter(|raw| telling.contains(&raw.kind)).find_map(stated).filter(|hertz| *hertz > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(ns: Option<u64>, tsc: Option<u64>) -> Stamp<'static> {
        Stamp { ns, tsc, ..Stamp::default() }
    }

    #[test]
    fn ticks_are_put_beside_nanoseconds_by_a_record_that_has_both() {
        let stamps = [stamp(Some(5_000), None), stamp(Some(1_000), Some(40_000)), stamp(None, Some(50_000))];
        let clock = Clock::of_stamps(Some(2_000_000_000), stamps.into_iter());
        assert_eq!((clock.scale(), clock.is_assumed()), (Scale::Time, false));
        assert_eq!(stamps.map(|stamp| clock.at(&stamp)), [Some(5_000), Some(1_000), Some(6_000)]);
        assert_eq!((clock.at_tick(38_000), clock.at_tick(37_999)), (Some(0), None), "before the clock began");
        assert_eq!(clock.span(4_000), 2_000);
    }

    #[test]
    fn two_clocks_that_nothing_relates_are_said_to_be_assumed() {
        let stamps = [stamp(Some(7), None), stamp(None, Some(3_000))];
        let clock = Clock::of_stamps(Some(1_000_000), stamps.into_iter());
        assert!(clock.is_assumed() && clock.words().contains("no record relates"), "{clock:?}");
        assert_eq!(clock.at(&stamps[1]), Some(3_000_000));
        let unknown = Clock::of_stamps(None, [stamp(None, Some(9))].into_iter());
        assert_eq!((unknown.scale(), unknown.is_assumed(), unknown.at_tick(9)), (Scale::Ticks, false, Some(9)));
    }

    #[test]
    fn a_counter_that_shows_less_than_when_the_clock_began_makes_it_assumed() {
        let stamps = [stamp(Some(1_000), Some(40_000)), stamp(None, Some(7)), stamp(None, Some(50_000))];
        let clock = Clock::of_stamps(Some(1_000_000_000), stamps.into_iter());
        assert_eq!(stamps.map(|stamp| clock.at(&stamp)), [Some(1_000), None, Some(11_000)]);
        assert!(clock.is_assumed() && clock.words().contains("before the clock began"), "{clock:?}");
        // Half a nanosecond before the beginning is before it.
        let clock = Clock::of_stamps(Some(2_000_000_000), [stamp(Some(0), Some(9))].into_iter());
        assert_eq!((clock.is_assumed(), clock.at_tick(8), clock.at_tick(9)), (false, None, Some(0)));
    }

    #[test]
    fn numbers_that_no_clock_shows_are_no_times() {
        let extreme = [stamp(Some(u64::MAX), Some(0)), stamp(None, Some(u64::MAX)), stamp(Some(u64::MAX), None)];
        for hertz in [None, Some(0), Some(1), Some(u64::MAX)] {
            let clock = Clock::of_stamps(hertz, extreme.into_iter());
            assert_eq!(clock.at(&extreme[2]), None);
            let _ = (clock.at(&extreme[1]), clock.at_tick(0), clock.span(u64::MAX));
        }
    }
}
