//! Carries the figures of `testing/RESULTS.md` into the README: its table of judges, and what the exam found.
//!
//! The README's rows say in words what is missing; their figures are those of the page, so that the two cannot differ.
//! A row of which the page has no figures stays.

use anyhow::{Context as _, Result};

use super::section;

/// The marks around what the exam found.
const BEGIN: &str = "<!-- exam: rendered by cargo xtask results -->\n";
const END: &str = "<!-- end of exam -->";

/// The README with the figures of a page of results.
///
/// # Errors
/// The marks of the exam are not in the README.
pub fn carried(readme: &str, page: &str) -> Result<String> {
    let lines = readme.split_inclusive('\n').map(|line| row(line, page).unwrap_or_else(|| line.to_owned()));
    let readme: String = lines.collect();
    let Some(found) = exam(page) else { return Ok(readme) };
    let marked = readme.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = marked.with_context(|| format!("README.md has no {} before an {END}", BEGIN.trim_end()))?;
    Ok(format!("{before}{BEGIN}{found}\n{END}{after}"))
}

/// What the last exam found, and when.
fn exam(page: &str) -> Option<String> {
    let mut lines = section(page, "Exam of the toolchain")?.lines().filter(|line| !line.is_empty()).skip(1);
    let date = lines.next()?.split(", ").nth(1)?;
    let summary = lines.next().filter(|line| line.ends_with('.'))?;
    Some(format!("On {date} {summary}"))
}

/// A row of the table with its two cells of figures, when the line is one and the page has them.
fn row(line: &str, page: &str) -> Option<String> {
    let mut cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
    let (here, linux) = figures(cells.first()?, page)?;
    if cells.len() != 4 {
        return None;
    }
    cells[1] = &here;
    cells[2] = &linux;
    Some(format!("| {}", cells.join(" | ")))
}

/// What a judge counted here and on Linux.
fn figures(name: &str, page: &str) -> Option<(String, String)> {
    let suite = |title: &str, verb: &str| {
        let cells = numbers(section(page, title)?, "")?;
        Some((format!("{} of {}{verb}", grouped(cells[1]), grouped(cells[0])), grouped(cells[2])))
    };
    match name {
        "contracts" => {
            let cells = numbers(section(page, "Contracts")?, "all")?;
            Some((format!("{} of {} as Linux", grouped(cells[1]), grouped(cells[0])), grouped(cells[0])))
        }
        "BusyBox's testsuite" | "Open POSIX Test Suite" => suite(name, " pass"),
        "Debian's programs, Go, Rust and Perl among them" => suite("Debian's dynamic programs", ""),
        "benchmarks, instructions" => {
            let (all, kernels) = means(section(page, "Benchmarks in guest instructions")?)?;
            let kernels = kernels?;
            let here = format!("geometric mean {all} of Linux; {kernels} of what happens in the kernels alone");
            Some((here, "1".to_owned()))
        }
        "benchmarks, wall time" => {
            let (all, _) = means(section(page, "Benchmarks in wall time, nanoseconds")?)?;
            Some((format!("geometric mean {all} of Linux"), "1".to_owned()))
        }
        _ => None,
    }
}

/// The numbers of the first row of a section whose first cell is `first`, or a number when that is empty.
fn numbers(section: &str, first: &str) -> Option<Vec<u64>> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut rows = rows.map(|row| row.split(" | ").collect::<Vec<&str>>());
    let is_number = |cell: &str| cell.parse::<u64>().is_ok();
    let cells = rows.find(|cells| if first.is_empty() { is_number(cells[0]) } else { cells[0] == first })?;
    let found: Vec<u64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
    (found.len() > 2).then_some(found)
}

/// The geometric mean of all benchmarks of a section, and that of the kernels alone when it has one.
fn means(section: &str) -> Option<(&str, Option<&str>)> {
    let mut found = section.split("geometric mean ").skip(1).filter_map(|rest| rest.split(' ').next());
    Some((found.next()?, found.next()))
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn the_readme_has_the_figures_of_the_page_of_results() {
        let of = |name: &str| paths::read(&paths::root().join(name)).unwrap();
        let (readme, page) = (of("README.md"), of("testing/RESULTS.md"));
        let should = carried(&readme, &page).unwrap();
        for (is, should) in readme.lines().zip(should.lines()) {
            assert_eq!(is, should, "`cargo xtask results` writes it");
        }
    }

    #[test]
    fn figures_of_a_row_are_replaced_and_its_words_stay() {
        let page = "\n## Contracts\n\n| area | contracts | as Linux | known | failures |\n|---|---:|\n\
                    | vm | 52 | 51 | 1 | 0 |\n| all | 1510 | 1490 | 20 | 0 |\n\n## Next\n";
        let row = "| contracts | 1 of 2 as Linux | 2 | sockets (9) |\n";
        assert_eq!(carried(row, page).unwrap(), "| contracts | 1,490 of 1,510 as Linux | 1,510 | sockets (9) |\n");
        let other = "| contracts | a table of another shape |\n| memory | 0.20 | 1 | thread |\nwords\n";
        assert_eq!(carried(other, page).unwrap(), other);
    }

    #[test]
    fn the_summary_of_the_exam_stands_between_its_marks() {
        let page =
            "\n## Exam of the toolchain\n\n`cargo xtask exam --repeat 3`, 2026-11-25, kernel.\n\n2 of 2 are named.\n";
        let readme = format!("a\n{BEGIN}old\n{END}\nb\n");
        let wanted = format!("a\n{BEGIN}On 2026-11-25 2 of 2 are named.\n{END}\nb\n");
        assert_eq!(carried(&readme, page).unwrap(), wanted);
        assert!(carried("no marks", page).is_err());
    }
}
