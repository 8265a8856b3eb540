//! What a call does beside its arguments and its result, as far as a comparison of runs or a diagnosis asks for it.

/// A set of properties of a system call. Waits come in pairs: a call that may sleep, and the calls without which the
/// wake-up it sleeps for does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// The value for calls of which an analysis asks no more than their row says.
    pub const NONE: Self = Self(0);
    /// Whether and how often a program makes it differs between sound runs: clocks, and waits of libraries.
    pub const VARIES: Self = Self(1);
    /// Its answer, or a part of it, is in memory of the caller.
    pub const FILLS_MEMORY: Self = Self(1 << 1);
    /// It changes what the caller may access from its first argument on, for as many bytes as its second says.
    pub const CHANGES_RANGE: Self = Self(1 << 2);
    /// It makes a descriptor that a thread then waits on.
    pub const MAKES_SOURCE: Self = Self(1 << 3);
    /// It waits for what such a descriptor gives.
    pub const READS_SOURCE: Self = Self(1 << 4);
    /// It may sleep until a signal comes.
    pub const AWAITS_SIGNAL: Self = Self(1 << 5);
    /// It sends a signal, arms what sends one, makes who sends one, or lets it through.
    pub const PREPARES_SIGNAL: Self = Self(1 << 6);
    /// It may sleep until another thread, a timer or the network acts on the same object.
    pub const AWAITS_PEER: Self = Self(1 << 7);
    /// It is such an action, or leads to one.
    pub const PREPARES_PEER: Self = Self(1 << 8);
    /// It may sleep on a futex word.
    pub const AWAITS_FUTEX: Self = Self(1 << 9);
    /// It wakes sleepers on futex words, makes threads that do, or makes the memory that words are in.
    pub const PREPARES_FUTEX: Self = Self(1 << 10);
    /// It may sleep until a child changes its state.
    pub const AWAITS_CHILD: Self = Self(1 << 11);
    /// It changes the state of a child.
    pub const PREPARES_CHILD: Self = Self(1 << 12);
    /// It sends a signal to the process or thread that its arguments name.
    pub const SENDS_SIGNAL: Self = Self(1 << 13);

    /// Each kind of wait with what prepares its wake-up.
    pub const WAITS: [(Self, Self); 4] = [
        (Self::AWAITS_SIGNAL, Self::PREPARES_SIGNAL),
        (Self::AWAITS_PEER, Self::PREPARES_PEER),
        (Self::AWAITS_FUTEX, Self::PREPARES_FUTEX),
        (Self::AWAITS_CHILD, Self::PREPARES_CHILD),
    ];

    /// Whether all properties of the other set are in this one.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The properties of both.
    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArgKind, TABLE, by_name};
    use super::*;

    #[test]
    fn every_wait_has_calls_that_sleep_and_calls_that_prepare_the_wake_up() {
        let some = |property| TABLE.iter().any(|call| call.traits.has(property));
        assert!(Traits::WAITS.iter().all(|(waits, prepares)| some(*waits) && some(*prepares)));
        let kinds = |name: &str| by_name(name).expect("known").traits;
        assert!(kinds("futex").has(Traits::AWAITS_FUTEX) && kinds("futex").has(Traits::PREPARES_FUTEX));
        assert!(!kinds("getpid").has(Traits::VARIES) && kinds("getpid") == Traits::NONE);
    }

    #[test]
    fn arguments_allow_what_the_properties_say() {
        for call in TABLE {
            let takes = |kind: fn(&ArgKind) -> bool| call.args.iter().any(|arg| kind(&arg.kind));
            let pointer = takes(|kind| matches!(kind, ArgKind::Ptr | ArgKind::Str))
                // An argument of fcntl(2), ioctl(2) and their like is a pointer or a number by the command.
                || takes(|kind| matches!(kind, ArgKind::Flags(_) | ArgKind::Hex | ArgKind::Long));
            assert!(!call.traits.has(Traits::FILLS_MEMORY) || pointer, "{}", call.name);
            assert!(
                !call.traits.has(Traits::SENDS_SIGNAL) || takes(|kind| matches!(kind, ArgKind::Signal)),
                "{}",
                call.name
            );
            let range = matches!(call.args, [first, second, ..]
                if matches!((first.kind, second.kind), (ArgKind::Ptr, ArgKind::Size)));
            assert!(!call.traits.has(Traits::CHANGES_RANGE) || range, "{}", call.name);
        }
    }
}
