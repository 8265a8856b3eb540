//! Decides the order of a POSIX message queue (mq_overview(7)): the highest priority first, within one the oldest.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Priorities are below this (`MQ_PRIO_MAX`).
pub const PRIORITIES: u32 = 32_768;

/// Messages that wait, at most so many of at most so many bytes.
#[derive(Debug)]
pub struct Messages {
    /// By falling priority; within one in order of arrival.
    waiting: Vec<Level>,
    len: usize,
    most: usize,
    longest: usize,
}

/// Messages of one priority; never empty.
#[derive(Debug)]
struct Level {
    priority: u32,
    messages: VecDeque<Vec<u8>>,
}

/// Why a message was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The queue holds its maximum number of messages.
    Full,
    /// It exceeds the queue's maximum message length.
    TooLong,
    /// The message could not be allocated.
    NoMemory,
}

impl Messages {
    /// An empty queue of at most `most` messages, each of at most `longest` bytes.
    pub const fn new(most: usize, longest: usize) -> Self {
        Self { waiting: Vec::new(), len: 0, most, longest }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is room for none.
    pub fn is_full(&self) -> bool {
        self.len >= self.most
    }

    /// How many may wait.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes a message may have.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.waiting.iter().flat_map(|level| &level.messages).map(Vec::len).sum()
    }

    /// Puts a message behind those of its priority and gives it back if it is refused.
    pub fn push(&mut self, priority: u32, message: Vec<u8>) -> Result<(), (Refused, Vec<u8>)> {
        if message.len() > self.longest {
            return Err((Refused::TooLong, message));
        }
        if self.is_full() {
            return Err((Refused::Full, message));
        }
        let at = self.waiting.partition_point(|level| level.priority > priority);
        if self.waiting.get(at).is_none_or(|level| level.priority != priority) {
            if self.waiting.try_reserve(1).is_err() {
                return Err((Refused::NoMemory, message));
            }
            self.waiting.insert(at, Level { priority, messages: VecDeque::new() });
        }
        let level = &mut self.waiting[at];
        if level.messages.try_reserve(1).is_err() {
            if level.messages.is_empty() {
                self.waiting.remove(at);
            }
            return Err((Refused::NoMemory, message));
        }
        level.messages.push_back(message);
        self.len += 1;
        Ok(())
    }

    /// Takes the message that is next, with its priority.
    pub fn pop(&mut self) -> Option<(u32, Vec<u8>)> {
        let level = self.waiting.first_mut()?;
        let priority = level.priority;
        let message = level.messages.pop_front()?;
        if level.messages.is_empty() {
            self.waiting.remove(0);
        }
        self.len -= 1;
        Some((priority, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_highest_priority_is_received_first_and_within_one_the_oldest() {
        let mut queue = Messages::new(8, 4);
        for (priority, byte) in [(1, 1), (9, 2), (1, 3), (0, 4), (9, 5)] {
            queue.push(priority, vec![byte]).unwrap();
        }
        assert_eq!((queue.len(), queue.bytes()), (5, 5));
        let order: Vec<(u32, u8)> = core::iter::from_fn(|| queue.pop()).map(|(p, m)| (p, m[0])).collect();
        assert_eq!(order, [(9, 2), (9, 5), (1, 1), (1, 3), (0, 4)]);
        assert!(queue.is_empty() && queue.pop().is_none());
    }

    #[test]
    fn a_refused_message_comes_back_and_changes_nothing() {
        let mut queue = Messages::new(1, 4);
        assert_eq!(queue.push(0, vec![0; 5]), Err((Refused::TooLong, vec![0; 5])));
        queue.push(3, vec![1; 4]).unwrap();
        assert!(queue.is_full());
        assert_eq!(queue.push(7, vec![2]), Err((Refused::Full, vec![2])));
        assert_eq!(queue.pop(), Some((3, vec![1; 4])));
        queue.push(7, vec![2]).unwrap();
        assert_eq!((queue.most(), queue.longest(), queue.len()), (1, 4, 1));
    }
}
