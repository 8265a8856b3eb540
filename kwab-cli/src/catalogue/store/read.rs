//! Answers from a store: its files and directories with their marks, dumps that are wanted, groups with their dumps.

use std::path::Path;

use kwab::report::catalogue::{CatalogueEntry, Finding, Group, Order, SCHEMA};
use kwab::report::signature;
use rusqlite::{OptionalExtension as _, Row as Columns, params};
use serde::ser::{Error as _, SerializeSeq as _, SerializeStruct as _};
use serde::{Serialize, Serializer};

use super::builds::Wanted;
use super::{Store, StoreError};
use crate::catalogue::row::Row;
use crate::catalogue::scan::{Found, Stamp, path_of};
use crate::failure::shown;

/// A dump by its file's number and its position there.
pub(crate) type Place = (i64, i64);

/// What [`read_row`] reads.
pub(super) const COLUMNS: &str = "file.path, file.modified_ns, number, kind, victim, cause, place, signature, process,
    source, kernel, rule, class, claim, score, proven, function, about, wall_ns, mono_ns, boot, pid, cpu, sound,
    defects, dump.bytes, build_id, commit_id, hypotheses";

/// The dumps of a group, oldest first.
pub(super) const ORDERED: &str = "FROM dump JOIN file ON file.id = dump.file WHERE bug = ?1
    ORDER BY undated, wall_ns, boot, mono_ns, path, position";

/// The query for the dump of a file's number and a position.
pub(super) fn one_dump() -> String {
    format!("SELECT {COLUMNS} FROM dump JOIN file ON file.id = dump.file WHERE dump.file = ?1 AND position = ?2")
}

/// How the files of a walk differ from those of a store.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Files of the walk that are new or have changed, as positions in it.
    pub changed: Vec<usize>,
    /// Names of the store that the walk has not.
    pub gone: Vec<Vec<u8>>,
    /// Files that are the same.
    pub kept: usize,
}

/// From this number of wanted dumps on all are read, in the order of their paths, instead of sorting the wanted ones.
const SORTED: i64 = 100_000;

impl Store {
    /// Whether the groups have been counted since the last change.
    pub(crate) fn is_settled(&self) -> Result<bool, StoreError> {
        self.ask(|at| at.query_row("SELECT settled FROM state", [], |row| row.get(0)).optional())
            .map(|settled| settled.unwrap_or(false))
    }

    /// How many files it had when it was settled.
    pub(crate) fn files(&self) -> Result<usize, StoreError> {
        self.ask(|at| at.query_row("SELECT files FROM state", [], |row| row.get::<_, i64>(0)))
            .map(|files| usize::try_from(files).unwrap_or(usize::MAX))
    }

    /// The directories that the last walk saw, with their marks.
    pub(crate) fn folders(&self) -> Result<Vec<Found>, StoreError> {
        self.ask(|at| {
            let mut query =
                at.prepare("SELECT path, mark, modified_ns, changed_ns, inode FROM folder ORDER BY path")?;
            query.query_map([], read_found)?.collect()
        })
    }

    /// Compares a walk with the files of the store.
    pub(crate) fn differences(&self, found: &[Found]) -> Result<Differences, StoreError> {
        self.ask(|at| {
            let mut all = Differences::default();
            let mut query = at.prepare("SELECT path, bytes, modified_ns, changed_ns, inode FROM file ORDER BY path")?;
            let mut known = query.query_map([], read_found)?;
            let mut next = known.next().transpose()?;
            for (index, file) in found.iter().enumerate() {
                let name = sorted(&file.name);
                while let Some(gone) = next.take_if(|known| sorted(&known.name) < name) {
                    all.gone.push(gone.name);
                    next = known.next().transpose()?;
                }
                match next.take_if(|known| known.name == file.name) {
                    Some(same) => {
                        next = known.next().transpose()?;
                        if same.stamp == file.stamp {
                            all.kept += 1;
                        } else {
                            all.changed.push(index);
                        }
                    }
                    None => all.changed.push(index),
                }
            }
            while let Some(gone) = next {
                all.gone.push(gone.name);
                next = known.next().transpose()?;
            }
            Ok(all)
        })
    }

    /// The wanted dumps of the files below `folder`, in the order of their paths.
    pub(crate) fn rows(
        &self,
        folder: &Path,
        wanted: &Wanted,
        mut each: impl FnMut(Found, Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.placed(folder, wanted, |file, _, row| each(file, row))
    }

    /// As [`Self::rows`], each with the group and the place that it has in this store.
    pub(crate) fn placed(
        &self,
        folder: &Path,
        wanted: &Wanted,
        mut each: impl FnMut(Found, (i64, Place), Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let chosen = self.chosen(wanted)?;
        let only = chosen.builds.as_ref().filter(|builds| builds.len() == 1).and_then(|builds| builds.first());
        let (signatures, bugs) = chosen.lists().unzip();
        let asked = params![wanted.since_ns, only, signatures, bugs];
        let condition = |plus: &str| {
            let since = if wanted.since_ns.is_some() { "happened_ns >= ?1" } else { "?1 IS NULL" };
            let build = if only.is_some() { "build = ?2" } else { "?2 IS NULL" };
            format!(
                "{plus}{since} AND {plus}{build} AND (?3 IS NULL
                OR signature IN (SELECT value FROM json_each(?3))
                OR alone IN (SELECT id FROM bug WHERE key IN (SELECT value FROM json_each(?4))))"
            )
        };
        // Few are found by the indexes and sorted; of many all are read in their order. A plus turns the indexes off.
        let count = format!("SELECT count(*) FROM (SELECT 1 FROM dump WHERE {} LIMIT {SORTED})", condition(""));
        let is_part = wanted.since_ns.is_some() || only.is_some();
        let is_few = is_part && self.ask(|at| at.query_row(&count, asked, |row| row.get::<_, i64>(0)))? < SORTED;
        let sql = format!(
            "SELECT {COLUMNS}, file.bytes, file.changed_ns, file.inode, bug, dump.file, position
            FROM dump {} JOIN file ON file.id = dump.file WHERE {} ORDER BY file.path, position",
            if is_few { "CROSS" } else { "" },
            condition(if is_few { "" } else { "+" })
        );
        let mut failed = None;
        self.ask(|at| {
            let mut query = at.prepare(&sql)?;
            let mut rows = query.query(asked)?;
            while let Some(columns) = rows.next()? {
                let row = read_row(columns, folder)?;
                if !chosen.has(&row) {
                    continue;
                }
                let stamp = Stamp {
                    bytes: whole(columns, 29)?,
                    modified_ns: row.modified_ns,
                    changed_ns: columns.get(30)?,
                    inode: whole(columns, 31)?,
                };
                let place = (columns.get(32)?, (columns.get(33)?, columns.get(34)?));
                if let Err(error) = each(Found { name: unsorted(columns.get(0)?), stamp }, place, row) {
                    failed = Some(error);
                    break;
                }
            }
            Ok(())
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Whether no log is put with a dump of the same death, so that each dump has the group that it has by itself.
    pub(crate) fn has_no_pairs(&self) -> Result<bool, StoreError> {
        const ANY: &str = "SELECT NOT EXISTS (SELECT 1 FROM dump WHERE weight = 0 OR bug <> alone)";
        self.ask(|at| at.query_row(ANY, [], |row| row.get(0)))
    }

    /// The groups in an order, and whether all of their dumps are sound.
    pub(crate) fn bugs(&self, folder: &Path, order: Order) -> Result<(Vec<i64>, bool), StoreError> {
        const ALL: &str = "SELECT id, rank, unsound FROM bug WHERE dumps > 0 ORDER BY rank, deaths DESC, key";
        let mut all: Vec<(i64, i64, i64)> = self.ask(|at| {
            let mut query = at.prepare(ALL)?;
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })?;
        let sound = all.iter().all(|(_, _, unsound)| *unsound == 0);
        if order == Order::Completeness {
            all.sort_by_key(|(_, rank, unsound)| (*rank, std::cmp::Reverse(*unsound)));
        }
        if matches!(order, Order::Count | Order::Completeness) {
            return Ok((all.into_iter().map(|(id, ..)| id).collect(), sound));
        }
        let with_groups = all.into_iter().map(|(id, rank, _)| Ok((rank, self.of(folder, &[id]).group(0, 1)?.0, id)));
        let mut groups = with_groups.collect::<Result<Vec<_>, StoreError>>()?;
        groups.sort_by(|(rank, a, _), (other, b, _)| rank.cmp(other).then_with(|| order.compare(a, b)));
        Ok((groups.into_iter().map(|(.., id)| id).collect(), sound))
    }

    /// Groups of all their dumps.
    pub(crate) const fn of<'s>(&'s self, folder: &'s Path, bugs: &'s [i64]) -> Whole<'s> {
        Whole { store: self, folder, bugs }
    }

    /// The dump at a place.
    pub(super) fn dump_at(&self, folder: &Path, (file, position): Place) -> Result<Option<Row>, StoreError> {
        self.ask(|at| {
            let mut query = at.prepare_cached(&one_dump())?;
            query.query_row([file, position], |row| read_row(row, folder)).optional()
        })
    }

    fn head(&self, folder: &Path, bug: i64) -> Result<Head, StoreError> {
        let dump = |(file, position): (Option<i64>, Option<i64>)| match file.zip(position) {
            Some(place) => self.dump_at(folder, place),
            None => Ok(None),
        };
        let (finding, last, head) = self.ask(|at| {
            let mut bugs = at.prepare_cached(
                "SELECT deaths, dumps, signatures, finding_file, finding_position, last_file, last_position FROM bug
                WHERE id = ?1",
            )?;
            bugs.query_row([bug], |row| {
                let signatures = row.get_ref(2)?.as_str()?.split(' ').map(str::to_string).collect();
                let (count, dumps) = (whole(row, 0)? as usize, whole(row, 1)? as usize);
                let head = Head { finding: None, signatures, count, dumps, last: None };
                Ok(((row.get(3)?, row.get(4)?), (row.get(5)?, row.get(6)?), head))
            })
        })?;
        let finding = dump(finding)?.and_then(|row| row.entry.finding);
        Ok(Head { finding, last: dump(last)?.map(|row| row.entry), ..head })
    }

    /// Calls `each` with the first dumps of a group until it gives `false`, oldest first; those that know no wall clock
    /// last.
    pub(super) fn members(
        &self,
        folder: &Path,
        bug: i64,
        most: usize,
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<(), StoreError> {
        self.ask(|at| {
            let mut query = at.prepare_cached(&format!("SELECT {COLUMNS} {ORDERED} LIMIT ?2"))?;
            let mut rows = query.query(params![bug, i64::try_from(most).unwrap_or(i64::MAX)])?;
            while let Some(row) = rows.next()? {
                if !each(read_row(row, folder)?) {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// A group without its dumps.
pub(crate) struct Head {
    pub finding: Option<Finding>,
    pub signatures: Vec<String>,
    pub count: usize,
    pub dumps: usize,
    /// The last one whose clock can be compared with the first one's.
    pub last: Option<CatalogueEntry>,
}

/// Groups of dumps in the order of a list, read one after the other.
pub(crate) trait Groups {
    /// How many groups there are.
    fn len(&self) -> usize;

    /// A group without its dumps.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn head(&self, at: usize) -> Result<Head, StoreError>;

    /// Calls `each` with the first dumps of a group, at most so many and until it gives `false`, oldest first; those
    /// that know no wall clock come last.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn dumps(&self, at: usize, most: usize, each: &mut dyn FnMut(CatalogueEntry) -> bool) -> Result<(), StoreError>;

    /// A group with its first dumps, `most` of them, and the last if it is not one of these; and how many it has.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn group(&self, at: usize, most: usize) -> Result<(Group, usize), StoreError> {
        let head = self.head(at)?;
        let mut dumps = Vec::new();
        self.dumps(at, most, &mut |entry| {
            dumps.push(entry);
            true
        })?;
        if head.dumps > dumps.len() {
            dumps.extend(head.last);
        }
        let group = Group { finding: head.finding, signatures: head.signatures, count: head.count, dumps };
        Ok((group, head.dumps))
    }
}

/// Groups of a store with all of their dumps.
pub(crate) struct Whole<'s> {
    store: &'s Store,
    folder: &'s Path,
    bugs: &'s [i64],
}

impl Whole<'_> {
    fn bug(&self, at: usize) -> i64 {
        self.bugs.get(at).copied().unwrap_or(-1)
    }
}

impl Groups for Whole<'_> {
    fn len(&self) -> usize {
        self.bugs.len()
    }

    fn head(&self, at: usize) -> Result<Head, StoreError> {
        self.store.head(self.folder, self.bug(at))
    }

    fn dumps(&self, at: usize, most: usize, each: &mut dyn FnMut(CatalogueEntry) -> bool) -> Result<(), StoreError> {
        self.store.members(self.folder, self.bug(at), most, |row| each(row.entry))
    }
}

/// The JSON form of a [`Catalogue`](kwab::report::catalogue::Catalogue), written dump by dump.
pub(crate) struct Streamed<'g, G>(pub &'g G);

impl<G: Groups> Serialize for Streamed<'_, G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Catalogue", 3)?;
        object.serialize_field("schema", &SCHEMA)?;
        object.serialize_field("signature_version", &signature::VERSION)?;
        object.serialize_field("groups", &AllGroups(self.0))?;
        object.end()
    }
}

struct AllGroups<'g, G>(&'g G);

impl<G: Groups> Serialize for AllGroups<'_, G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(None)?;
        for at in 0..self.0.len() {
            all.serialize_element(&OneGroup(self.0, at))?;
        }
        all.end()
    }
}

struct OneGroup<'g, G>(&'g G, usize);

impl<G: Groups> Serialize for OneGroup<'_, G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = self.0.head(self.1).map_err(S::Error::custom)?;
        let mut object = serializer.serialize_struct("Group", 4)?;
        if let Some(finding) = &head.finding {
            object.serialize_field("finding", finding)?;
        }
        object.serialize_field("signatures", &head.signatures)?;
        object.serialize_field("count", &head.count)?;
        object.serialize_field("dumps", &Members(self))?;
        object.end()
    }
}

struct Members<'g, G>(&'g OneGroup<'g, G>);

impl<G: Groups> Serialize for Members<'_, G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(None)?;
        let mut failed = None;
        let OneGroup(groups, at) = self.0;
        let done = groups.dumps(*at, usize::MAX, &mut |entry| {
            failed = all.serialize_element(&entry).err();
            failed.is_none()
        });
        done.map_err(S::Error::custom)?;
        match failed {
            Some(error) => Err(error),
            None => all.end(),
        }
    }
}

/// A path in the order of a walk: its parts separated by NUL, which is in no path and before every other byte.
pub(super) fn sorted(name: &[u8]) -> Vec<u8> {
    name.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

pub(super) fn unsorted(mut name: Vec<u8>) -> Vec<u8> {
    name.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'/');
    name
}

/// A path and its marks, in this order.
pub(super) fn read_found(row: &Columns<'_>) -> rusqlite::Result<Found> {
    let stamp =
        Stamp { bytes: whole(row, 1)?, modified_ns: row.get(2)?, changed_ns: row.get(3)?, inode: whole(row, 4)? };
    Ok(Found { name: unsorted(row.get(0)?), stamp })
}

/// A number that SQLite keeps as a signed one.
fn whole(row: &Columns<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

/// A row of [`COLUMNS`]; its path begins with `folder`.
pub(super) fn read_row(columns: &Columns<'_>, folder: &Path) -> rusqlite::Result<Row> {
    let optional = |column| columns.get::<_, Option<i64>>(column).map(|number| number.map(i64::cast_unsigned));
    let finding = match columns.get::<_, Option<String>>(11)? {
        Some(rule) => Some(Finding {
            rule,
            class: columns.get(12)?,
            claim: columns.get(13)?,
            score: columns.get(14)?,
            proven: columns.get(15)?,
            function: columns.get(16)?,
            about: columns.get(17)?,
        }),
        None => None,
    };
    let entry = CatalogueEntry {
        file: shown(&path_of(folder, &unsorted(columns.get(0)?))),
        dump: optional(2)?.and_then(|number| usize::try_from(number).ok()),
        kind: columns.get(3)?,
        victim: columns.get(4)?,
        cause: columns.get(5)?,
        place: columns.get(6)?,
        signature: columns.get(7)?,
        process: columns.get(8)?,
        source: columns.get(9)?,
        kernel: columns.get(10)?,
        finding,
        wall_ns: columns.get(18)?,
        mono_ns: optional(19)?,
        boot: columns.get(20)?,
        pid: columns.get(21)?,
        cpu: columns.get(22)?,
        sound: columns.get(23)?,
        defects: usize::try_from(whole(columns, 24)?).unwrap_or(usize::MAX),
        bytes: whole(columns, 25)?,
    };
    let text: String = columns.get(28)?;
    let pairs = text.split(',').filter_map(|pair| pair.rsplit_once(' '));
    let hypotheses = pairs.filter_map(|(rule, score)| Some((rule.to_string(), score.parse().ok()?))).collect();
    Ok(Row { entry, hypotheses, build_id: columns.get(26)?, commit: columns.get(27)?, modified_ns: columns.get(1)? })
}
