//! Checks the links of our Markdown pages: a file that is linked exists, and a heading that is named is in it.
//!
//! Links out of the workspace are not asked for; code, in blocks or in a line, has no links.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::paths;

/// Folders with pages of ours.
const FOLDERS: [&str; 11] = [
    "",
    "docs",
    "examples",
    "kernel",
    "kernel/abi",
    "kernel/logic",
    "kernel/machine",
    "kwab",
    "kwab-cli",
    "kwab-format",
    "kwab-tui",
];

/// Checks all pages; gives how many there are, and how many links they have.
pub fn check(root: &Path) -> Result<(usize, usize)> {
    check_folders(root, &FOLDERS)
}

/// Checks the pages in these folders of a tree, likewise.
pub fn check_folders(root: &Path, folders: &[&str]) -> Result<(usize, usize)> {
    let (mut pages, mut count, mut dead) = (0, 0, Vec::new());
    for folder in folders {
        let folder = root.join(folder);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "md")) {
            let text = paths::read(&entry.path())?;
            pages += 1;
            for (line, link) in targets(&text) {
                count += 1;
                if let Some(why) = dead_end(&folder, &entry.path(), link) {
                    dead.push(format!("{}:{line}: {link}: {why}", paths::shown(&entry.path())));
                }
            }
        }
    }
    ensure!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
    Ok((pages, count))
}

/// The targets of links and pictures inside the workspace, each with its line.
pub fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Every other piece between backticks is code.
        for piece in line.split('`').step_by(2).flat_map(|prose| prose.split("](").skip(1)) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.is_empty() {
                found.push((number + 1, target));
            }
        }
    }
    found
}

/// The path below the root that a link on a page of `folder` names.
pub fn below_root(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Why a link leads nowhere.
fn dead_end(folder: &Path, page: &Path, link: &str) -> Option<String> {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { folder.join(file) };
    if !target.exists() {
        return Some("no such file".to_owned());
    }
    let text = if heading.is_empty() { return None } else { paths::read(&target).ok()? };
    (!headings(&text).contains(heading)).then(|| "no such heading".to_owned())
}

/// The names by which headings are linked: small letters, blanks as hyphens, other signs left out.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let name = |title: &str| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    titles.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_and_out_of_the_workspace_do_not_count() {
        let text = "[a](b.md) `[c](d.md)` ![e](f.svg#g)\n```\n[h](i.md)\n```\n[j](https://k.example/l)";
        assert_eq!(targets(text), [(1, "b.md"), (1, "f.svg#g")]);
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        std::fs::write(&page, "# What it is\n\n## The `way` in, twice\n").unwrap();
        let why = |link: &str| dead_end(folder.path(), &page, link);
        assert_eq!((why("page.md"), why("#what-it-is"), why("page.md#the-way-in-twice")), (None, None, None));
        assert_eq!(why("gone.md").as_deref(), Some("no such file"));
        assert_eq!(why("#gone").as_deref(), Some("no such heading"));
    }
}
