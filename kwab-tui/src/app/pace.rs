//! Decides when the directories of the catalogue are looked at again.
//!
//! A look is due when something has changed in a watched directory, when a dump has to be seen the same twice, and when
//! the user has done something. Beside that, directories whose changes are told are looked at once a minute, for file
//! systems that tell only some changes (NFS); others ever less often, as long as nothing happens.

use super::Watched;

/// Milliseconds between looks.
const LOOK_AGAIN: u64 = 2_000;
/// The same while a dump that grows is followed, which is written every half second, and after a change.
const LOOK_SOON: u64 = 500;
/// The longest time between looks.
const LOOK_AT_LAST: u64 = 60_000;
/// How often the time between looks is doubled.
const MOST_DOUBLED: u32 = 5;

/// When the directories are looked at.
#[derive(Debug, Default)]
pub(super) struct Pace {
    is_looking: bool,
    /// The last moment that is known, in ms since the start.
    now: u64,
    /// When the last look ended; the first is due at once.
    looked: Option<u64>,
    is_live: bool,
    is_watched: bool,
    /// Something has been told to have changed since the last look began.
    is_changed: bool,
    /// Something has to be looked at again whether it changes or not.
    is_open: bool,
    /// The user has done something since the last look.
    is_touched: bool,
    /// Looks since the user has done something.
    calm: u32,
}

impl Pace {
    /// Whether a look has begun and not ended.
    pub(super) const fn is_looking(&self) -> bool {
        self.is_looking
    }

    /// A look begins.
    pub(super) const fn begin(&mut self) {
        self.is_looking = true;
        self.is_changed = false;
        self.is_touched = false;
    }

    /// A look has ended; `is_open` says whether what it found has to be looked at again.
    pub(super) fn end(&mut self, is_open: bool) {
        self.is_looking = false;
        self.is_open = is_open;
        self.looked = Some(self.now);
        self.calm = (self.calm + 1).min(MOST_DOUBLED);
    }

    /// The user has done something.
    pub(super) const fn touch(&mut self) {
        self.is_touched = true;
        self.calm = 0;
    }

    /// Something has changed.
    pub(super) const fn change(&mut self) {
        self.is_changed = true;
    }

    /// Takes whether changes are told.
    pub(super) fn watch(&mut self, watched: Watched) {
        self.is_watched = watched != Watched::InPart;
        self.is_changed |= watched == Watched::FromNow;
    }

    /// Looks more often while a dump that grows is followed, and at once when that begins.
    pub(super) const fn follow(&mut self, is_live: bool) {
        self.is_live = is_live;
        self.is_changed = true;
    }

    /// Whether it is time to look, `now` ms after the start.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        self.now = now;
        !self.is_looking && now >= self.due()
    }

    /// How long nothing has to be done if nothing happens.
    pub(super) fn patience(&self, now: u64) -> u64 {
        if self.is_looking { LOOK_AT_LAST } else { self.due().saturating_sub(now) }
    }

    fn due(&self) -> u64 {
        let every = match () {
            () if self.is_live || self.is_changed => LOOK_SOON,
            () if self.is_open || self.is_touched => LOOK_AGAIN,
            () if self.is_watched => LOOK_AT_LAST,
            () => (LOOK_AGAIN << self.calm.saturating_sub(1)).min(LOOK_AT_LAST),
        };
        self.looked.map_or(0, |looked| looked + every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments of the looks of an hour in which nothing happens but what `happens` does.
    fn looks(pace: &mut Pace, mut happens: impl FnMut(u64, &mut Pace)) -> Vec<u64> {
        let (mut now, mut looks) = (0, Vec::new());
        while now < 3_600_000 {
            happens(now, pace);
            if pace.is_due(now) {
                pace.begin();
                pace.end(false);
                looks.push(now);
            }
            now += pace.patience(now).clamp(1, 100);
        }
        looks
    }

    #[test]
    fn watched_directories_are_looked_at_once_a_minute_and_others_ever_less_often() {
        let mut watched = Pace::default();
        watched.watch(Watched::All);
        assert_eq!(looks(&mut watched, |_, _| ()).len(), 60);
        let others = looks(&mut Pace::default(), |_, _| ());
        assert_eq!(others[..6], [0, 2_000, 6_000, 14_000, 30_000, 62_000]);
        assert_eq!(others[others.len() - 1] - others[others.len() - 2], 32_000);
    }

    #[test]
    fn a_change_is_looked_at_soon_and_a_thousand_of_them_cost_two_looks_a_second() {
        let mut pace = Pace::default();
        pace.watch(Watched::All);
        let looks = looks(&mut pace, |now, pace| {
            if now < 10_000 {
                pace.change();
            }
        });
        assert_eq!(looks[..3], [0, 500, 1_000]);
        assert_eq!(looks.iter().filter(|at| **at < 10_000).count(), 20);
    }

    #[test]
    fn what_changed_before_directories_were_watched_is_looked_at() {
        let mut pace = Pace::default();
        assert!(pace.is_due(0));
        pace.begin();
        pace.watch(Watched::FromNow);
        pace.end(false);
        assert_eq!(pace.patience(0), LOOK_SOON);
    }
}
