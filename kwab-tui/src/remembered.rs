//! Keeps where the user was: of each dump the tab and the selected rows, and how the room is shared.
//!
//! The file is `kwab/tui-state.toml` in the user's directory for state; `KWAB_TUI_STATE` names another, and an empty
//! one none. It is read once at the start, and written at the end over what other sessions have written meanwhile.
//! What it has wrong counts as nothing remembered.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::target::Slot;

/// Dumps that are remembered; the one that was looked at longest ago is forgotten first.
const MOST: usize = 200;
/// The longest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Where the user was in a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The list that was shown.
    pub slot: Option<Slot>,
    /// The selected row of each list that was looked at.
    pub rows: BTreeMap<Slot, usize>,
}

/// How the room of the screen is shared between the list and its detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panes {
    /// Whether the detail is shown.
    pub detail: bool,
    /// Tenths of the room that the detail has more, or less, than it is given by itself.
    pub share: i16,
}

impl Default for Panes {
    fn default() -> Self {
        Self { detail: true, share: 0 }
    }
}

/// Everything that is kept from one run to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// How the room was shared.
    pub panes: Panes,
    /// Dumps by their absolute path, the one looked at last at the end.
    places: Vec<(String, Place)>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    panes: Panes,
    #[serde(default)]
    dump: Vec<StoredPlace>,
}

#[derive(Serialize, Deserialize)]
struct StoredPlace {
    path: String,
    #[serde(default)]
    tab: String,
    #[serde(default)]
    rows: BTreeMap<String, u64>,
}

impl Remembered {
    /// Reads what [`text`](Self::text) wrote; `None` when it cannot be understood.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let stored: Stored = toml::from_str(text).ok()?;
        let slot = |name: &str| Slot::ALL.iter().copied().find(|slot| slot.name() == name);
        let place = |stored: StoredPlace| {
            let row = |(name, row): (String, u64)| Some((slot(&name)?, usize::try_from(row).ok()?));
            let rows = stored.rows.into_iter().filter_map(row).collect();
            (stored.path, Place { slot: slot(&stored.tab), rows })
        };
        let places = stored.dump.into_iter().map(place).collect();
        Some(Self { panes: stored.panes, places })
    }

    /// All of it as a file.
    #[must_use]
    pub fn text(&self) -> String {
        let dump = self.places.iter().map(|(path, place)| StoredPlace {
            path: path.clone(),
            tab: place.slot.map(Slot::name).unwrap_or_default().to_string(),
            rows: place.rows.iter().map(|(slot, row)| (slot.name().to_string(), *row as u64)).collect(),
        });
        toml::to_string(&Stored { panes: self.panes, dump: dump.collect() }).unwrap_or_default()
    }

    /// Where the user was in a dump.
    #[must_use]
    pub fn place(&self, dump: &Path) -> Option<&Place> {
        let name = name_of(dump);
        self.places.iter().find(|(known, _)| *known == name).map(|(_, place)| place)
    }

    /// Takes where the user is in a dump now.
    pub fn put(&mut self, dump: &Path, place: Place) {
        self.put_named(name_of(dump), place);
    }

    fn put_named(&mut self, name: String, place: Place) {
        self.places.retain(|(known, _)| *known != name);
        self.places.push((name, place));
        let over = self.places.len().saturating_sub(MOST);
        self.places.drain(..over);
    }

    /// The same over what another session has written since: its places stay where this one has none.
    #[must_use]
    fn over(self, other: Self) -> Self {
        let mut all = Self { panes: self.panes, places: other.places };
        for (name, place) in self.places {
            all.put_named(name, place);
        }
        all
    }
}

/// The file of the user, unless nothing is to be remembered.
#[must_use]
pub fn path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KWAB_TUI_STATE") {
        return Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty());
    }
    let base = std::env::var_os("XDG_STATE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| home().map(|home| home.join(".local/state")))?;
    Some(base.join("kwab").join("tui-state.toml"))
}

/// Reads the user's file. Anything but a regular file of moderate length is left alone: a FIFO would never end.
#[must_use]
pub fn load() -> Remembered {
    path().and_then(|path| read(&path)).unwrap_or_default()
}

fn read(path: &Path) -> Option<Remembered> {
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Remembered::parse(&text)
}

/// Writes the user's file. What fails costs only the memory: the program ends as it would have.
pub fn save(now: Remembered) {
    let Some(path) = path() else { return };
    let now = match read(&path) {
        Some(other) => now.over(other),
        None => now,
    };
    let folder = kwab::output::folder_of(&path);
    if std::fs::create_dir_all(folder).is_ok() {
        drop(kwab::output::replace_own(&path, now.text().as_bytes()));
    }
}

/// A dump by its absolute path.
fn name_of(dump: &Path) -> String {
    std::path::absolute(dump).unwrap_or_else(|_| dump.to_path_buf()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(row: usize) -> Place {
        Place { slot: Some(Slot::Pages), rows: [(Slot::Pages, row), (Slot::Log, 3)].into() }
    }

    #[test]
    fn what_is_remembered_survives_its_file_also_under_a_hostile_name() {
        let mut all = Remembered { panes: Panes { detail: false, share: -2 }, ..Remembered::default() };
        all.put(Path::new("/a/\"b\n[[dump]]\u{1b}.kwab#2"), place(7));
        assert_eq!(Remembered::parse(&all.text()), Some(all));
        assert_eq!(Remembered::parse("dump = 3"), None);
        let strange = "[[dump]]\npath = \"/x\"\ntab = \"nowhere\"\n[dump.rows]\nlog = 4\nnothing = 1\n";
        let read = Remembered::parse(strange).unwrap();
        assert_eq!(read.place(Path::new("/x")), Some(&Place { slot: None, rows: [(Slot::Log, 4)].into() }));
    }

    #[test]
    fn the_dump_looked_at_longest_ago_is_forgotten_and_those_of_another_session_stay() {
        let mut mine = Remembered::default();
        (0..MOST + 3).for_each(|number| mine.put(Path::new(&format!("/{number}")), place(number)));
        assert!(mine.place(Path::new("/2")).is_none() && mine.place(Path::new("/3")).is_some());
        let (mut first, mut second) = (Remembered::default(), Remembered::default());
        first.put(Path::new("/a"), place(1));
        second.put(Path::new("/a"), place(2));
        second.put(Path::new("/b"), place(3));
        let both = first.over(second);
        assert_eq!((both.place(Path::new("/a")), both.place(Path::new("/b"))), (Some(&place(1)), Some(&place(3))));
    }
}
