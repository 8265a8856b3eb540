//! Going places: following links, opening dumps, and the way back.

use std::path::PathBuf;

use kwab::format::SectionKind;
use kwab::model::RecordRef;

use super::trail::Spot;
use super::{App, Crash, Effect, MenuAction, Overlay};
use crate::theme::Tone;
use crate::view::{Link, Slot, Target};

impl App {
    /// Opens a dump; what was loading before is given up.
    pub(super) fn open(&mut self, path: PathBuf) -> Vec<Effect> {
        let generation = self.issued.next_crash();
        self.progress.clear();
        self.overlay = None;
        self.crash = Some(Crash::new(path.clone()));
        self.in_crash = true;
        let sources = self.sources.clone();
        vec![Effect::Job(crate::load::Job::Open { generation, path, sources })]
    }

    /// Follows the links of the row: the only one at once, several through a menu.
    pub(super) fn follow(&mut self) -> Vec<Effect> {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Vec::new() };
        let mut links = view.links(row, &self.list().look);
        links.dedup_by(|a, b| a.target == b.target);
        // Links that lead nowhere in this dump are not offered, unless they are all there is.
        let here = self.slot().map(|slot| (slot, row));
        let elsewhere = |link: &&Link| here.is_none() || self.place_of(&link.target) != here;
        let reachable: Vec<Link> =
            links.iter().filter(|link| self.reaches(&link.target)).filter(elsewhere).cloned().collect();
        match (reachable.as_slice(), links.first()) {
            ([], None) => self.say(Tone::Dim, "nothing to follow here"),
            ([], Some(link)) => {
                let text = format!("{} is not in this dump", link.label);
                self.say(Tone::Care, text);
            }
            ([only], _) => return self.go(&only.target.clone()),
            (_, _) => {
                let items = reachable.into_iter().map(|link| (link.label, MenuAction::Go(link.target))).collect();
                self.overlay = Some(Overlay::Menu { title: "follow".to_string(), items, selected: 0 });
            }
        }
        Vec::new()
    }

    fn reaches(&self, target: &Target) -> bool {
        matches!(target, Target::Dump(_)) || self.place_of(target).is_some()
    }

    /// The list and the row of it where a target is.
    pub(super) fn place_of(&self, target: &Target) -> Option<(Slot, usize)> {
        let crash = self.crash.as_ref()?;
        let here = slots_of(target).iter().find_map(|slot| Some((*slot, crash.views.get(slot)?.find(target)?)));
        here.or_else(|| match target {
            Target::Record(at) => fallback(at).filter(|slot| crash.views.contains_key(slot)).map(|slot| (slot, 0)),
            _ => None,
        })
    }

    /// Goes to a target, remembering where one was.
    pub(super) fn go(&mut self, target: &Target) -> Vec<Effect> {
        if let Target::Dump(path) = target {
            let path = PathBuf::from(path);
            self.remember();
            if self.crash.as_ref().is_some_and(|crash| crash.path == path) {
                self.in_crash = true;
                return Vec::new();
            }
            return self.open(path);
        }
        match self.place_of(target) {
            Some((slot, row)) => {
                self.remember();
                self.in_crash = true;
                self.turn_to(slot, row, Some(target));
            }
            None => {
                let text = format!("{} is not in this dump", target.name());
                self.say(Tone::Care, text);
            }
        }
        Vec::new()
    }

    fn turn_to(&mut self, slot: Slot, row: usize, target: Option<&Target>) {
        let Some(crash) = self.crash.as_mut() else { return };
        crash.turn_to(slot);
        let Some(view) = crash.views.get(&slot).cloned() else {
            // It is still being loaded, and will be no longer than it is.
            let list = crash.list_mut();
            (list.selected, list.placed) = (row, true);
            return;
        };
        let list = crash.list_mut();
        list.select(row, view.len());
        if let Some(byte) = target.and_then(|target| view.byte_of(target)) {
            list.look.byte = byte;
        }
    }

    fn spot(&self) -> Spot {
        let list = self.list();
        let dump = self.shown_crash().map(|crash| crash.path.clone());
        let row = self.selected().unwrap_or(list.selected);
        let second = self.shown_crash().and_then(|crash| Some(crash.second.as_ref()?.path.clone()));
        Spot { dump, second, slot: self.slot().unwrap_or(Slot::Triage), row, byte: list.look.byte }
    }

    /// Remembers where one is before going elsewhere.
    pub(super) fn remember(&mut self) {
        let spot = self.spot();
        self.trail.leave(spot);
    }

    /// Back, or forward again.
    pub(super) fn travel(&mut self, back: bool) -> Vec<Effect> {
        let here = self.spot();
        let spot = if back { self.trail.back(here.clone()) } else { self.trail.forward(here.clone()) };
        let Some(spot) = spot else {
            // Back from the first place of a crash is the list of dumps.
            if back && self.in_crash {
                self.in_crash = false;
                self.trail.back_to_start(here);
            }
            return Vec::new();
        };
        let Some(path) = spot.dump else {
            self.in_crash = false;
            return Vec::new();
        };
        let effects = self.show_beside(path, spot.second);
        self.turn_to(spot.slot, spot.row, None);
        self.list_mut().look.byte = spot.byte;
        effects
    }

    /// Goes to what was typed: an address, a line of the log, a row.
    pub(super) fn goto(&mut self, input: &str) -> Result<Vec<Effect>, String> {
        let input = input.trim();
        if let Some(target) = Target::parse(input) {
            return Ok(self.go(&target));
        }
        let number = kwab::report::filter::number(input).or_else(|| u64::from_str_radix(input, 16).ok());
        let Some(number) = number else { return Err(format!("expected an address, line or row, got {input}")) };
        let looks_like_address = input.starts_with("0x") || number > 0xf_ffff;
        if looks_like_address {
            let places = [Target::Bytes(number), Target::Page(number), Target::Mapping(number)];
            // Where one is comes first: an address in the list of pages is a page.
            let own = self.slot().and_then(|slot| {
                let view = self.crash.as_ref()?.views.get(&slot)?;
                places.iter().find(|target| view.find(target).is_some() && slots_of(target).first() == Some(&slot))
            });
            let Some(target) = own.or_else(|| places.iter().find(|target| self.place_of(target).is_some())) else {
                return Err(format!("{number:#x} is in no mapping, no page and no captured bytes of this dump"));
            };
            let target = target.clone();
            return Ok(self.go(&target));
        }
        let target = match self.slot() {
            Some(Slot::Log | Slot::Timeline) => Target::Line(number),
            Some(slot) => Target::Row(slot, usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1)),
            None => return Err("open a dump first".to_string()),
        };
        let slot = self.slot().unwrap_or(Slot::Log);
        let row = self.view().and_then(|view| {
            view.find(&target)
                .or_else(|| Some(usize::try_from(number).ok()?.checked_sub(1)?.min(view.len().checked_sub(1)?)))
        });
        match row {
            Some(row) => {
                self.remember();
                self.turn_to(slot, row, None);
                Ok(Vec::new())
            }
            None => Err(format!("row {number} does not exist in this list")),
        }
    }
}

/// The lists that may have a target, the best first.
fn slots_of(target: &Target) -> &'static [Slot] {
    match target {
        Target::Dump(_) => &[],
        Target::Other(target) => slots_of(target),
        Target::Record(_) => {
            &[Slot::Timeline, Slot::Hex, Slot::Checks, Slot::Mappings, Slot::Pages, Slot::Tasks, Slot::Locks, Slot::Log]
        }
        Target::Event(_) => &[Slot::Timeline],
        Target::Line(_) => &[Slot::Timeline, Slot::Log],
        Target::Bytes(_) => &[Slot::Hex, Slot::Pages, Slot::Mappings],
        Target::Mapping(_) => &[Slot::Mappings],
        Target::Page(_) => &[Slot::Pages, Slot::Mappings],
        Target::Task(_) => &[Slot::Tasks],
        Target::Lock(_) => &[Slot::Locks],
        Target::Row(Slot::Triage, _) => &[Slot::Triage],
        Target::Row(Slot::Backtrace, _) => &[Slot::Backtrace],
        Target::Row(Slot::Registers, _) => &[Slot::Registers],
        Target::Row(Slot::Syscalls, _) => &[Slot::Syscalls],
        Target::Row(Slot::Timeline, _) => &[Slot::Timeline],
        Target::Row(Slot::Mappings, _) => &[Slot::Mappings],
        Target::Row(Slot::Pages, _) => &[Slot::Pages],
        Target::Row(Slot::Audit, _) => &[Slot::Audit],
        Target::Row(Slot::Checks, _) => &[Slot::Checks],
        Target::Row(Slot::Hex, _) => &[Slot::Hex],
        Target::Row(Slot::Tasks, _) => &[Slot::Tasks],
        Target::Row(Slot::Log, _) => &[Slot::Log],
        Target::Row(Slot::Integrity, _) => &[Slot::Integrity],
        Target::Row(Slot::Locks, _) => &[Slot::Locks],
        Target::Row(Slot::Profile, _) => &[Slot::Profile],
        Target::Row(Slot::Spans, _) => &[Slot::Spans],
        Target::Row(Slot::Marks | Slot::Compare, _) => &[],
    }
}

/// The list that shows a kind of section, for records that no row stands for.
const fn fallback(at: &RecordRef) -> Option<Slot> {
    Some(match at.kind {
        SectionKind::CAUSE => Slot::Backtrace,
        SectionKind::REGISTERS => Slot::Registers,
        SectionKind::STACKS | SectionKind::MEMORY => Slot::Hex,
        SectionKind::SYSCALLS => Slot::Syscalls,
        SectionKind::FLIGHT | SectionKind::EVENTS => Slot::Timeline,
        SectionKind::MEMORY_MAP => Slot::Mappings,
        SectionKind::PAGE_TABLE => Slot::Pages,
        SectionKind::PAGE_CHECKS => Slot::Checks,
        SectionKind::TASKS => Slot::Tasks,
        SectionKind::LOCKS => Slot::Locks,
        SectionKind::LOG | SectionKind::KEPT => Slot::Log,
        SectionKind::COUNTERS => Slot::Profile,
        SectionKind::IDENTITY | SectionKind::IMAGES | SectionKind::NOTES => Slot::Integrity,
        _ => return None,
    })
}
