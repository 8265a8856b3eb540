//! Decides which dying programs get a piece of the space for process dumps.
//!
//! Pieces are filled in order and never overwritten, so the first dumps of a fault are kept. Ordinary users cannot use
//! up what the dumps of system services need: one user gets at most a quarter of the pieces in one boot, all ordinary
//! users together at most half. What is refused is counted, and each reason is announced once.

/// Most pieces that one space is cut into.
pub const MOST_PIECES: usize = 32;

/// User id of the superuser, to which no share applies.
const ROOT: u32 = 0;

/// The pieces of one space.
#[derive(Debug)]
pub struct Pieces {
    total: usize,
    next: usize,
    ordinary: usize,
    users: [User; MOST_PIECES / 2],
    refused: u64,
    said: Said,
}

/// An ordinary user who has filled pieces.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    uid: u32,
    filled: usize,
    said: bool,
}

/// Which of the announcements that concern more than one user were made.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    full: bool,
    ordinary: bool,
}

/// Why a program gets no piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Every piece is filled.
    Full,
    /// Its user has filled its share, this many pieces.
    User(usize),
    /// All ordinary users together have filled their share, this many pieces.
    Ordinary(usize),
}

/// Why a dump is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that was reached.
    pub reason: Reason,
    /// Whether it is the first for that reason (for [`Reason::User`]: of that user), and so to be announced.
    pub first: bool,
}

impl Pieces {
    /// `total` pieces (at most [`MOST_PIECES`]) of which the first `kept` hold dumps of earlier boots.
    #[must_use]
    pub const fn new(total: usize, kept: usize) -> Self {
        let none = User { uid: 0, filled: 0, said: false };
        let said = Said { full: false, ordinary: false };
        let total = if total > MOST_PIECES { MOST_PIECES } else { total };
        Self { total, next: kept, ordinary: 0, users: [none; MOST_PIECES / 2], refused: 0, said }
    }

    /// The number of the piece that a program of real user `uid` fills.
    pub fn take(&mut self, uid: u32) -> Result<usize, Refusal> {
        let admitted = self.admit(uid);
        match admitted {
            Ok(_) => self.next += 1,
            Err(_) => self.refused += 1,
        }
        admitted
    }

    /// How many dumps were refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn admit(&mut self, uid: u32) -> Result<usize, Refusal> {
        if self.next >= self.total {
            return Err(Refusal { reason: Reason::Full, first: !core::mem::replace(&mut self.said.full, true) });
        }
        if uid == ROOT {
            return Ok(self.next);
        }
        let (most_of_one, most_of_all) = ((self.total / 4).max(1), self.total / 2);
        if let Some(user) = self.users.iter_mut().find(|user| user.filled > 0 && user.uid == uid)
            && user.filled >= most_of_one
        {
            let first = !core::mem::replace(&mut user.said, true);
            return Err(Refusal { reason: Reason::User(user.filled), first });
        }
        if self.ordinary >= most_of_all {
            let first = !core::mem::replace(&mut self.said.ordinary, true);
            return Err(Refusal { reason: Reason::Ordinary(self.ordinary), first });
        }
        let known = self.users.iter().position(|user| user.filled > 0 && user.uid == uid);
        // A user without a row fills a piece for it, so there are never more rows than ordinary users may fill pieces.
        let row = known.or_else(|| self.users.iter().position(|user| user.filled == 0));
        if let Some(user) = row.and_then(|row| self.users.get_mut(row)) {
            user.uid = uid;
            user.filled += 1;
        }
        self.ordinary += 1;
        Ok(self.next)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn one_user_that_crashes_for_ever_leaves_three_quarters_to_others() {
        let mut pieces = Pieces::new(32, 0);
        let taken: Vec<_> = (0..100).map_while(|_| pieces.take(1000).ok()).collect();
        assert_eq!(taken, (0..8).collect::<Vec<_>>());
        assert_eq!(pieces.take(1000), Err(Refusal { reason: Reason::User(8), first: false }));
        assert_eq!(pieces.take(0), Ok(8));
        assert_eq!(pieces.take(1001), Ok(9));
        assert_eq!(pieces.refused(), 2);
    }

    #[test]
    fn many_ordinary_users_together_leave_half_to_root() {
        let mut pieces = Pieces::new(32, 0);
        let taken = (1..100).filter(|uid| pieces.take(*uid).is_ok()).count();
        assert_eq!(taken, 16);
        assert_eq!((0..100).filter(|_| pieces.take(0).is_ok()).count(), 16);
        assert_eq!(pieces.take(0), Err(Refusal { reason: Reason::Full, first: false }));
    }

    #[test]
    fn each_reason_is_announced_once() {
        let mut pieces = Pieces::new(8, 0);
        let first = |outcome: Result<usize, Refusal>| outcome.err().map(|refusal| (refusal.reason, refusal.first));
        assert_eq!((pieces.take(7), pieces.take(7)), (Ok(0), Ok(1)));
        assert_eq!(first(pieces.take(7)), Some((Reason::User(2), true)));
        assert_eq!(first(pieces.take(7)), Some((Reason::User(2), false)));
        assert_eq!((pieces.take(8), pieces.take(9)), (Ok(2), Ok(3)));
        assert_eq!(first(pieces.take(8)), Some((Reason::Ordinary(4), true)));
        assert_eq!(first(pieces.take(9)), Some((Reason::Ordinary(4), false)));
        assert!((0..4).all(|_| pieces.take(0).is_ok()));
        assert_eq!(first(pieces.take(0)), Some((Reason::Full, true)));
        assert_eq!(first(pieces.take(7)), Some((Reason::Full, false)));
    }

    #[test]
    fn dumps_of_earlier_boots_are_kept_and_count_for_no_user() {
        let mut pieces = Pieces::new(4, 3);
        assert_eq!(pieces.take(5), Ok(3));
        assert!(pieces.take(0).is_err());
    }
}
