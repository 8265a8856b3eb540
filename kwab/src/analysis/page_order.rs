//! Puts the pages of files in an order in which pages with the same end lie together, so that the page behind captured
//! bytes is found by bisection.
//!
//! Pages are compared from their last byte to their first. Captured bytes that reach to the end of a page are then a
//! prefix in that order, wherever in the page they begin: one order serves every offset.

use std::cmp::Ordering;

use super::space::PAGE;
use crate::intervals::work;

/// Bytes of a page.
const LENGTH: usize = PAGE as usize;
/// Pages with the same end that are looked at for the one that lies first in its file.
const MOST_ALIKE: usize = 64;

/// A page: the number of its file, and its number in the file.
type Page = (u32, u32);

/// The whole pages of files, ordered by content from the last byte to the first.
#[derive(Debug, Default)]
pub(super) struct PageOrder {
    all: Vec<Page>,
    /// The same for each file by itself.
    of_file: Vec<Vec<Page>>,
}

impl PageOrder {
    /// Orders the pages of `files`.
    pub(super) fn of(files: &[(String, Vec<u8>)]) -> Self {
        let numbered = (0_u32..).zip(files);
        let mut all: Vec<Page> = numbered
            .flat_map(|(file, (_, bytes))| {
                (0..bytes.len() / LENGTH).filter_map(move |page| Some((file, u32::try_from(page).ok()?)))
            })
            .collect();
        all.sort_by(|a, b| compare(page(files, *a), page(files, *b)).then(a.cmp(b)));
        let mut of_file = vec![Vec::new(); files.len()];
        for found in &all {
            of_file[found.0 as usize].push(*found);
        }
        Self { all, of_file }
    }

    /// A page that ends with `end`: of file `prefer` when it has one, else of any; of few that are alike the first.
    pub(super) fn ending_with(&self, files: &[(String, Vec<u8>)], end: &[u8], prefer: Option<usize>) -> Option<Page> {
        let own = prefer.and_then(|file| self.of_file.get(file)).and_then(|own| first(files, own, end));
        own.or_else(|| first(files, &self.all, end))
    }
}

/// The first of the pages in `order` that end with `end`.
fn first(files: &[(String, Vec<u8>)], order: &[Page], end: &[u8]) -> Option<Page> {
    let ending = |found: &Page| {
        let page = page(files, *found);
        &page[page.len().saturating_sub(end.len())..]
    };
    let from = order.partition_point(|found| compare(ending(found), end) == Ordering::Less);
    order[from..].iter().take(MOST_ALIKE).take_while(|found| ending(found) == end).min().copied()
}

fn page(files: &[(String, Vec<u8>)], (file, number): Page) -> &[u8] {
    let start = number as usize * LENGTH;
    files.get(file as usize).and_then(|(_, bytes)| bytes.get(start..start + LENGTH)).unwrap_or_default()
}

/// Compares two runs of bytes of the same length from the last byte to the first, eight at a time.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    work::count();
    let (mut left, mut right) = (left, right);
    while let (Some((more, word)), Some((other, other_word))) =
        (left.split_last_chunk::<8>(), right.split_last_chunk::<8>())
    {
        match u64::from_le_bytes(*word).cmp(&u64::from_le_bytes(*other_word)) {
            Ordering::Equal => (left, right) = (more, other),
            unequal => return unequal,
        }
    }
    left.iter().rev().cmp(right.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of pages that differ only in a few bytes, so that many ends are alike.
    fn files() -> Vec<(String, Vec<u8>)> {
        let page = |head: u8, tail: u8| {
            let mut page = vec![head; LENGTH];
            page[LENGTH - 100..].fill(tail);
            page
        };
        let file = |seed: u8| (0..40_u8).flat_map(|number| page(number.wrapping_mul(seed), number % 3)).collect();
        vec![("/a".to_owned(), file(7)), ("/b".to_owned(), file(11)), ("/short".to_owned(), vec![1; 100])]
    }

    #[test]
    fn a_page_is_found_by_its_end_of_any_length_and_the_preferred_file_wins() {
        let files = files();
        let order = PageOrder::of(&files);
        for (number, page) in files[1].1.chunks_exact(LENGTH).enumerate() {
            for length in [32, 99, 100, 101, 2000, LENGTH] {
                let end = &page[LENGTH - length..];
                let (file, found) = order.ending_with(&files, end, Some(1)).unwrap();
                assert_eq!(file, 1, "{number}, {length} bytes");
                assert!(self::page(&files, (file, found)).ends_with(end));
                assert!(found as usize <= number, "the first of those that are alike");
                let (anywhere, found) = order.ending_with(&files, end, None).unwrap();
                assert!(self::page(&files, (anywhere, found)).ends_with(end));
            }
        }
        assert_eq!(order.ending_with(&files, &[77; 64], Some(0)), None);
        assert_eq!(PageOrder::default().ending_with(&files, &[0; 64], Some(0)), None);
    }

    #[test]
    fn a_search_among_ten_thousand_pages_compares_thirty_of_them() {
        let bytes: Vec<u8> =
            (0..10_000_u32).flat_map(|number| [[0; LENGTH - 4].as_slice(), &number.to_be_bytes()].concat()).collect();
        let files = vec![("/large".to_owned(), bytes)];
        let order = PageOrder::of(&files);
        let mut end = [0; 64];
        end[60..].copy_from_slice(&7_777_u32.to_be_bytes());
        let (found, comparisons) = work::of(|| order.ending_with(&files, &end, None));
        assert_eq!(found, Some((0, 7_777)));
        assert!(comparisons <= 30, "{comparisons}");
    }
}
