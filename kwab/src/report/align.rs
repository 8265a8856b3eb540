//! Puts the rows of two lists beside each other: the longest runs that are the same in both decide, nothing is
//! reordered.
//!
//! Rows are compared by what they mean, not by what they measured: [`shape`] of a text leaves out its numbers, so that
//! the same call at another address is the same row. Lists of any length take time in proportion to their length: rows
//! that occur once in both are found first, and between them only blocks of `BLOCK` rows are compared each with each.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::intervals::work;

/// Rows of each side that are compared each with each.
const BLOCK: usize = 384;

/// A line of two lists beside each other; a side without a row is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// The row of the first list.
    pub left: Option<u32>,
    /// The row of the second.
    pub right: Option<u32>,
}

/// What identifies a row: a number that is the same for the same text.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A text without its numbers: words that begin with a digit, and long ones of hexadecimal digits, are all alike.
#[must_use]
pub fn shape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| is_word(letter) != is_word(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let hexadecimal = word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if first.is_ascii_digit() || hexadecimal {
            out.push('#');
        } else {
            out.push_str(word);
        }
        rest = behind;
    }
    out
}

/// Aligns two lists of [`fingerprint`]s. Every row is in the result once, those of each side in their order; `go_on` is
/// asked now and then, and `None` is its no.
pub fn align(left: &[u64], right: &[u64], go_on: &mut dyn FnMut() -> bool) -> Option<Vec<Beside>> {
    let mut aligned = Alignment { left, right, out: Vec::with_capacity(left.len().max(right.len())) };
    let anchors = anchors(left, right);
    let (mut from_left, mut from_right) = (0, 0);
    for (at_left, at_right) in anchors.into_iter().chain([(left.len(), right.len())]) {
        if !aligned.between((from_left, at_left), (from_right, at_right), go_on) {
            return None;
        }
        if at_left < left.len() {
            aligned.push(Some(at_left), Some(at_right));
        }
        (from_left, from_right) = (at_left + 1, at_right + 1);
    }
    Some(aligned.out)
}

/// Rows that occur once in both, as many as follow each other in both.
fn anchors(left: &[u64], right: &[u64]) -> Vec<(usize, usize)> {
    let once = |rows: &[u64]| {
        let mut seen: HashMap<u64, Option<usize>> = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            seen.entry(*row).and_modify(|index| *index = None).or_insert(Some(at));
        }
        seen
    };
    let in_right = once(right);
    let mut pairs: Vec<(usize, usize)> =
        once(left).into_iter().filter_map(|(row, at)| Some((at?, (*in_right.get(&row)?)?))).collect();
    pairs.sort_unstable();
    increasing(&pairs)
}

/// The longest part of `pairs` whose second numbers increase.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let rank = ends.partition_point(|end| pairs[*end].1 < pair.1);
        if let Some(previous) = rank.checked_sub(1).and_then(|previous| ends.get(previous)) {
            before[at] = *previous;
        }
        if rank == ends.len() { ends.push(at) } else { ends[rank] = at }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(pair) = pairs.get(at) {
        chain.push(*pair);
        at = before[at];
    }
    chain.reverse();
    chain
}

struct Alignment<'r> {
    left: &'r [u64],
    right: &'r [u64],
    out: Vec<Beside>,
}

impl Alignment<'_> {
    fn push(&mut self, left: Option<usize>, right: Option<usize>) {
        let number = |at: Option<usize>| at.and_then(|at| u32::try_from(at).ok());
        self.out.push(Beside { left: number(left), right: number(right) });
    }

    /// Aligns what lies between two anchors, block by block; says whether it may go on.
    fn between(&mut self, left: (usize, usize), right: (usize, usize), go_on: &mut dyn FnMut() -> bool) -> bool {
        let (mut at, mut other) = (left.0, right.0);
        loop {
            while at < left.1 && other < right.1 && self.left[at] == self.right[other] {
                self.push(Some(at), Some(other));
                (at, other) = (at + 1, other + 1);
            }
            if at == left.1 || other == right.1 {
                (at..left.1).for_each(|row| self.push(Some(row), None));
                (other..right.1).for_each(|row| self.push(None, Some(row)));
                return true;
            }
            if !go_on() {
                return false;
            }
            let (end, other_end) = (left.1.min(at + BLOCK), right.1.min(other + BLOCK));
            (at, other) = self.block((at, end), (other, other_end), end == left.1 && other_end == right.1);
        }
    }

    /// Compares a block each with each; gives where the next one begins.
    fn block(&mut self, left: (usize, usize), right: (usize, usize), last: bool) -> (usize, usize) {
        let common = common(&self.left[left.0..left.1], &self.right[right.0..right.1]);
        let (mut at, mut other) = (left.0, right.0);
        for (here, there) in common {
            self.gap((at, left.0 + here), (other, right.0 + there));
            self.push(Some(left.0 + here), Some(right.0 + there));
            (at, other) = (left.0 + here + 1, right.0 + there + 1);
        }
        // What follows the last match is compared again with the next block, unless that would hardly get on.
        if last || at + other - left.0 - right.0 < BLOCK / 2 {
            self.gap((at, left.1), (other, right.1));
            return (left.1, right.1);
        }
        (at, other)
    }

    fn gap(&mut self, left: (usize, usize), right: (usize, usize)) {
        (left.0..left.1).for_each(|row| self.push(Some(row), None));
        (right.0..right.1).for_each(|row| self.push(None, Some(row)));
    }
}

/// The longest common part of two short lists.
fn common(left: &[u64], right: &[u64]) -> Vec<(usize, usize)> {
    let wide = right.len() + 1;
    let mut longest = vec![0u16; (left.len() + 1) * wide];
    for at in (0..left.len()).rev() {
        for other in (0..right.len()).rev() {
            work::count();
            longest[at * wide + other] = if left[at] == right[other] {
                longest[(at + 1) * wide + other + 1] + 1
            } else {
                longest[(at + 1) * wide + other].max(longest[at * wide + other + 1])
            };
        }
    }
    let (mut at, mut other, mut pairs) = (0, 0, Vec::new());
    while at < left.len() && other < right.len() {
        if left[at] == right[other] {
            pairs.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if longest[(at + 1) * wide + other] >= longest[at * wide + other + 1] {
            at += 1;
        } else {
            other += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<u64> {
        text.split_whitespace().map(fingerprint).collect()
    }

    fn shown(left: &str, right: &str) -> String {
        let aligned = align(&of(left), &of(right), &mut || true).unwrap();
        let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
        let side = |rows: &[&str], at: Option<u32>| at.map_or("-".to_owned(), |at| rows[at as usize].to_owned());
        let lines = aligned.iter().map(|line| format!("{}{}", side(&left, line.left), side(&right, line.right)));
        lines.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_that_are_the_same_stand_beside_each_other() {
        assert_eq!(shown("a b c", "a b c"), "aa bb cc");
        assert_eq!(shown("a b c d", "a x c d"), "aa b- -x cc dd");
        assert_eq!(shown("r r r w r", "r r w r r"), "rr rr r- ww rr -r");
        assert_eq!(shown("a", "b"), "a- -b");
    }

    #[test]
    fn every_row_of_long_lists_is_there_once_and_in_order_however_often_it_repeats() {
        let mut seed = 7u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for alphabet in [1, 2, 5, 50, 1 << 30] {
            let left: Vec<u64> = (0..3000).map(|_| next(alphabet)).collect();
            // The other list lacks some rows and has others.
            let mut right: Vec<u64> = left.iter().copied().filter(|_| next(10) > 0).collect();
            right.splice(500..500, (0..700).map(|_| next(alphabet)).collect::<Vec<_>>());
            let aligned = align(&left, &right, &mut || true).unwrap();
            let rows: Vec<u32> = aligned.iter().filter_map(|line| line.left).collect();
            assert_eq!(rows, (0..left.len() as u32).collect::<Vec<_>>());
            let rows: Vec<u32> = aligned.iter().filter_map(|line| line.right).collect();
            assert_eq!(rows, (0..right.len() as u32).collect::<Vec<_>>());
            let both = aligned.iter().filter_map(|line| Some((line.left?, line.right?)));
            let both: Vec<(u32, u32)> = both.collect();
            assert!(both.iter().all(|(at, other)| left[*at as usize] == right[*other as usize]));
            assert!(both.len() > left.len() / 3, "{alphabet}: {} of {}", both.len(), left.len());
        }
        assert_eq!(align(&of("a b c"), &of("x y z"), &mut || false), None);
    }

    #[test]
    fn lists_that_share_no_order_cost_a_bounded_number_of_comparisons_per_row() {
        let rows = 12_000_u64;
        // Rows that repeat, so that none anchors the others; and two alphabets that have nothing in common.
        // Periods of the two lists, and what separates their alphabets.
        for (period, other, apart) in [(2, 4, 0), (50, 7, 0), (3, 3, 9)] {
            let left: Vec<u64> = (0..rows).map(|row| row % period).collect();
            let right: Vec<u64> = (0..rows).map(|row| apart + row * 3 % other).collect();
            let (aligned, comparisons) = work::of(|| align(&left, &right, &mut || true));
            assert!(aligned.is_some());
            assert!(comparisons <= 2 * rows * (2 * BLOCK as u64), "{comparisons} comparisons");
        }
    }

    #[test]
    fn the_shape_of_a_row_is_what_it_says_without_its_numbers() {
        assert_eq!(shape("read(3, 0x9ffffc40, 4096) = 1180"), "read(#, #, #) = #");
        assert_eq!(shape("malloc+0x4e x86_64 deadbeef01"), "malloc+# x86_64 #");
    }
}
