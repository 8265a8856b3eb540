//! What every action does, without a terminal.

mod common;

use common::{Driven, folder};
use crossterm::event::KeyEvent;
use kwab_tui::action::{ACTIONS, Command};
use kwab_tui::app::{Action, Mouse, Overlay};
use kwab_tui::view::{Link, Slot, Target};

fn rich() -> Driven {
    folder();
    Driven::new("crashes/rich.kwab", (80, 24))
}

fn catalogue() -> Driven {
    folder();
    Driven::new("crashes", (80, 24))
}

/// Does what the key of an action does, and says what has come of it.
#[test]
#[expect(clippy::too_many_lines, reason = "an arm per action")]
fn every_action_of_the_table_does_what_it_says() {
    for row in ACTIONS {
        let mut driven = match row.command {
            Command::Group
            | Command::Import
            | Command::Fold
            | Command::FoldAll
            | Command::Select
            | Command::Delete
            | Command::Archive => catalogue(),
            _ => rich(),
        };
        match row.command {
            Command::Up => {
                driven.keys(&["3", "j", "j"]).act(Action::Command(Command::Up));
                assert_eq!(driven.app.workspace().selected(), Some(1));
            }
            Command::Down => assert_eq!(after(&mut driven, "3", Command::Down).app.workspace().selected(), Some(1)),
            Command::PageDown => assert!(
                after(&mut driven, "5", Command::First).app.workspace().selected()
                    < after(&mut driven, "5", Command::PageDown).app.workspace().selected()
            ),
            Command::PageUp => {
                let last = driven.keys(&["5"]).app.workspace().selected();
                assert!(after(&mut driven, "5", Command::PageUp).app.workspace().selected() < last);
            }
            Command::First => assert_eq!(after(&mut driven, "5", Command::First).app.workspace().selected(), Some(0)),
            Command::Last => {
                driven.keys(&["3"]);
                let last = driven.app.workspace().view().unwrap().len() - 1;
                assert_eq!(after(&mut driven, "3", Command::Last).app.workspace().selected(), Some(last));
            }
            Command::Left | Command::Right => {
                driven.keys(&["7", "g", "l", "l", "l", "h"]);
                assert_eq!(driven.app.workspace().list().look.byte, 2);
            }
            Command::Follow => {
                driven.keys(&["6"]).act(Action::Command(Command::Follow));
                assert!(driven.app.overlay().is_some() || driven.app.workspace().slot() != Some(Slot::Mappings));
            }
            // Tests of their own show where these lead, and what is read again.
            Command::Cause | Command::Effect => {
                driven.keys(&["5"]).act(Action::Command(row.command));
                assert!(driven.screen().contains("the dump names no ") || driven.app.overlay().is_some());
            }
            Command::Live => {
                assert!(after(&mut driven, "9", Command::Live).screen().contains("following: the dump is read again"));
            }
            Command::Back => {
                driven.keys(&["3", "4"]).act(Action::Command(Command::Back));
                assert_eq!(driven.app.workspace().slot(), Some(Slot::Registers));
            }
            Command::Forward => {
                driven.keys(&["3", "4", "backspace"]).act(Action::Command(Command::Forward));
                assert_eq!(driven.app.workspace().slot(), Some(Slot::Syscalls));
            }
            Command::Catalogue => {
                assert!(after(&mut driven, "1", Command::Catalogue).app.workspace().shown_crash().is_none());
            }
            Command::Tab(tab) => {
                driven.keys(&[if tab == 0 { "2" } else { "1" }]).act(Action::Command(row.command));
                assert_eq!(driven.app.workspace().session().crash().unwrap().tabs().current(), usize::from(tab));
            }
            Command::NextTab => {
                assert_eq!(after(&mut driven, "1", Command::NextTab).app.workspace().slot(), Some(Slot::Backtrace));
            }
            Command::PreviousTab => {
                assert_eq!(after(&mut driven, "1", Command::PreviousTab).app.workspace().slot(), Some(Slot::Profile));
            }
            Command::Mode => {
                assert_eq!(after(&mut driven, "6", Command::Mode).app.workspace().slot(), Some(Slot::Pages));
            }
            Command::Filter | Command::Goto | Command::Note | Command::Export => {
                assert!(matches!(after(&mut driven, "4", row.command).app.overlay(), Some(Overlay::Prompt { .. })));
            }
            Command::SameProcess => {
                let all = driven.keys(&["4", "g"]).app.workspace().view().unwrap().len();
                driven.act(Action::Command(Command::SameProcess));
                let count = driven.app.workspace().list().count(all);
                assert!(
                    count > 0 && count < all && driven.app.workspace().list().filter == "pid=121",
                    "{count} of {all}"
                );
                driven.act(Action::Command(Command::SameProcess));
                assert_eq!(driven.app.workspace().list().count(all), all);
            }
            Command::Next | Command::Previous => next_and_previous(&mut driven),
            Command::Escape => {
                driven.keys(&["4", "/"]).text("write").keys(&["enter"]).act(Action::Command(Command::Escape));
                assert!(driven.app.workspace().list().shown.is_none());
            }
            Command::Sort | Command::Reverse => sorting(&mut driven),
            Command::Group => {
                let before = driven.screen();
                driven.act(Action::Command(Command::Group));
                assert_ne!(driven.screen(), before);
            }
            Command::Fold | Command::FoldAll => {
                let all = driven.keys(&["g"]).app.workspace().view().unwrap().len();
                driven.act(Action::Command(row.command));
                assert!(driven.app.workspace().view().unwrap().len() < all, "{}", driven.screen());
                assert!(driven.row().contains('▸'), "the heading stays selected: {}", driven.row());
                driven.act(Action::Command(row.command));
                assert_eq!(driven.app.workspace().view().unwrap().len(), all);
            }
            Command::Select => {
                driven.keys(&["g"]).act(Action::Command(Command::Select));
                assert!(driven.screen().contains("selected"), "{}", driven.screen());
                driven.keys(&["esc"]);
                assert_eq!(driven.app.workspace().catalogue().picked(), 0);
            }
            // Tests with files of their own show what they do.
            Command::Delete | Command::Archive => {
                driven.keys(&["G"]).act(Action::Command(row.command));
                assert!(driven.app.overlay().is_some() || driven.screen().contains("no dump"));
            }
            Command::Jumps => {
                driven.keys(&["3", "4", "5"]).act(Action::Command(Command::Jumps));
                assert!(driven.screen().contains("⌫ rich.kwab  syscalls"), "{}", driven.screen());
                driven.keys(&["2"]);
                assert_eq!(driven.app.workspace().slot(), Some(Slot::Registers));
                driven.act(Action::Command(Command::Jumps));
                assert!(driven.screen().contains("→ rich.kwab  timeline"), "{}", driven.screen());
            }
            Command::Columns => {
                driven.keys(&["6"]).act(Action::Command(Command::Columns));
                driven.keys(&["2"]);
                let sort = driven.app.workspace().list().sort;
                assert!(sort.is_some_and(|(_, largest_first)| !largest_first), "{sort:?}");
                driven.keys(&["C", "2"]);
                assert_eq!(driven.app.workspace().list().sort, sort.map(|(column, _)| (column, true)));
            }
            Command::Edit => {
                driven.keys(&["L"]).act(Action::Command(Command::Edit));
                assert_eq!(driven.edited, [("fs/inode.rs".to_string(), 120)]);
            }
            Command::Symbols => {
                assert!(matches!(after(&mut driven, "2", row.command).app.overlay(), Some(Overlay::Prompt { .. })));
                driven.text("no-such-image").keys(&["enter"]);
                assert!(driven.screen().contains("no-such-image: No such file"), "{}", driven.screen());
            }
            Command::Detail => {
                let before = driven.screen();
                assert_ne!(after(&mut driven, "1", Command::Detail).screen(), before);
            }
            Command::DetailLarger | Command::DetailSmaller => {
                let before = driven.screen();
                assert_ne!(after(&mut driven, "1", row.command).screen(), before);
            }
            Command::DetailDown | Command::DetailUp => {
                driven.keys(&["3"]).act(Action::Command(Command::DetailDown));
                assert_eq!(driven.app.workspace().list().detail, 1);
                driven.act(Action::Command(Command::DetailUp));
                assert_eq!(driven.app.workspace().list().detail, 0);
            }
            Command::ZoomIn | Command::ZoomOut | Command::ZoomAll => zooming(&mut driven),
            Command::WordSize => {
                assert_eq!(after(&mut driven, "7", Command::WordSize).app.workspace().list().look.word, 2);
            }
            Command::Endian => assert!(after(&mut driven, "7", Command::Endian).app.workspace().list().look.big_endian),
            Command::Copy => {
                driven.keys(&["3"]).act(Action::Command(Command::Copy));
                driven.keys(&["y"]);
                assert!(driven.copied[0].starts_with("rip"), "{:?}", driven.copied);
            }
            Command::Mark => {
                driven.keys(&["3"]).act(Action::Command(Command::Mark));
                let (path, text) = &driven.written[0];
                assert!(path.ends_with("rich.kwab.marks") && text.as_ref().unwrap().contains("registers 0"));
                driven.act(Action::Command(Command::Mark));
                assert_eq!(driven.written[1].1, None, "without marks the file goes");
            }
            Command::Marks => {
                assert_eq!(after(&mut driven, "3", Command::Marks).app.workspace().slot(), Some(Slot::Marks));
            }
            Command::Compare => comparing(&mut driven),
            Command::Whole => {
                driven.act(Action::Command(Command::Whole));
                assert!(driven.app.status().said().unwrap().1.contains("covers all sections of this dump"));
            }
            Command::Import => {
                driven.act(Action::Command(Command::Import));
                assert!(driven.app.status().said().unwrap().1.contains("no serial log"));
            }
            Command::Palette => {
                assert!(matches!(
                    after(&mut driven, "1", Command::Palette).app.overlay(),
                    Some(Overlay::Palette { .. })
                ));
            }
            Command::Help => {
                assert!(matches!(after(&mut driven, "1", Command::Help).app.overlay(), Some(Overlay::Help { .. })));
            }
            Command::Reload => {
                let before = driven.app.workspace().session().generation();
                driven.keys(&["3", "j", "j"]);
                assert!(after(&mut driven, "3", Command::Reload).app.workspace().session().generation() > before);
                let shown = (driven.app.workspace().slot(), driven.app.workspace().selected());
                assert_eq!(shown, (Some(Slot::Registers), Some(2)), "tab and row stay");
            }
            Command::Redraw => assert_eq!(after(&mut driven, "1", Command::Redraw).redrawn, 1),
            Command::Suspend => assert_eq!(after(&mut driven, "1", Command::Suspend).suspended, 1),
            Command::Quit => assert!(after(&mut driven, "1", Command::Quit).quit),
        }
    }
}

fn after<'d>(driven: &'d mut Driven, tab: &str, command: Command) -> &'d mut Driven {
    driven.keys(&[tab]).act(Action::Command(command));
    driven
}

fn next_and_previous(driven: &mut Driven) {
    driven.keys(&["4", "g", "/"]).text("write").keys(&["enter", "esc"]);
    let first = driven.app.workspace().selected();
    assert!(driven.row().contains("write"));
    driven.keys(&["n"]);
    assert!(driven.row().contains("write") && driven.app.workspace().selected() > first);
    driven.keys(&["N"]);
    assert_eq!(driven.app.workspace().selected(), first);
}

fn sorting(driven: &mut Driven) {
    driven.keys(&["6", "s"]);
    let smallest_first = driven.screen();
    driven.keys(&["S"]);
    assert_ne!(driven.screen(), smallest_first);
    let before = driven.row();
    driven.keys(&["S"]);
    assert_eq!(driven.row(), before, "the selected row stays selected");
}

fn zooming(driven: &mut Driven) {
    driven.keys(&["5", "+", "+"]);
    let (from, to) = driven.app.workspace().list().look.window.unwrap();
    driven.keys(&["-"]);
    let (farther_from, farther_to) = driven.app.workspace().list().look.window.unwrap();
    assert!(farther_to - farther_from > to - from);
    driven.keys(&["h"]);
    assert!(driven.app.workspace().list().look.window.unwrap().0 < farther_from);
    driven.keys(&["z"]);
    assert_eq!(driven.app.workspace().list().look.window, None);
}

fn comparing(driven: &mut Driven) {
    folder();
    *driven = Driven::new("crashes", (120, 30));
    select(driven, "rich");
    driven.keys(&["c"]);
    assert_eq!(driven.app.workspace().catalogue().chosen(), Some(std::path::Path::new("crashes/rich.kwab")));
    select(driven, "null-dereference");
    driven.keys(&["c"]);
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Compare));
    assert!(driven.screen().contains("differ"), "{}", driven.screen());
}

/// Selects a dump in the list by the name of its file.
fn select(driven: &mut Driven, name: &str) {
    driven.keys(&["g", "/", "ctrl-u"]).text(&format!("file:{name}")).keys(&["enter"]);
}

#[test]
fn two_crashes_are_looked_at_side_by_side_in_every_tab() {
    folder();
    let mut driven = Driven::new("crashes", (160, 40));
    comparing(&mut driven);
    for key in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "L", "P"] {
        driven.keys(&[key]);
        let view = driven.app.workspace().view().unwrap_or_else(|| panic!("tab {key} is not there"));
        assert!(view.is_empty() || view.pair().is_some(), "tab {key} shows one crash");
    }
    driven.keys(&["3", "g"]);
    let view = driven.app.workspace().view().unwrap();
    let pair = view.pair().unwrap();
    let (left, right) = pair.views();
    let look = kwab_tui::view::Look::default();
    let mut both = 0;
    for line in 0..view.len() {
        if let (Some(here), Some(there)) = pair.sides(line) {
            both += 1;
            let (here, there) = (left.row(here, &look), right.row(there, &look));
            assert_eq!(here.cells[0].1, there.cells[0].1, "a register stands beside another one");
            assert_eq!(
                here.cells[1].1 != there.cells[1].1,
                view.row(line, &look).cells[0].1 == "≠",
                "{here:?} {there:?}"
            );
        }
    }
    assert!(both >= 2, "registers of the two crashes stand apart:\n{}", driven.screen());
    // The next difference, and only the differences.
    driven.keys(&["n"]);
    assert!(["≠", "<", ">"].iter().any(|mark| driven.row().starts_with(mark)), "{}", driven.row());
    driven.keys(&["/"]).text("same:no").keys(&["enter"]);
    let list = driven.app.workspace().list();
    let shown = list.count(view.len());
    assert!(shown > 0 && (0..shown).all(|at| view.row(list.row_at(at), &look).cells[0].1 != " "));
}

#[test]
fn a_comparison_ends_at_the_row_where_it_stood_and_comes_back() {
    folder();
    let mut driven = Driven::new("crashes", (160, 40));
    comparing(&mut driven);
    driven.keys(&["6", "g", "j", "j"]);
    let both = driven.row();
    driven.keys(&["c"]);
    assert!(driven.app.workspace().session().crash().unwrap().comparison().is_none());
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Mappings));
    assert!(both.contains(driven.row().split("  ").next().unwrap()), "{both} / {}", driven.row());
    driven.keys(&["backspace"]);
    assert_eq!(driven.row(), both, "back is the comparison again");
    driven.keys(&["ctrl-f"]);
    assert!(driven.app.workspace().session().crash().unwrap().comparison().is_none(), "and forward is the crash alone");
}

#[test]
fn the_palette_compares_the_open_crash_with_one_of_the_same_signature_first() {
    folder();
    let mut driven = Driven::new("crashes", (120, 30));
    select(&mut driven, "rich");
    driven.keys(&["enter", "3", ":"]).text("compare").keys(&["enter"]);
    let Some(Overlay::Menu { items, .. }) = driven.app.overlay() else { panic!("no menu: {}", driven.screen()) };
    assert!(items[0].0.starts_with("damaged-"), "{items:?}");
    driven.keys(&["enter"]);
    let second = driven.app.workspace().session().crash().unwrap().comparison().unwrap();
    assert!(second.path().ends_with("damaged-bit.kwab"), "{:?}", second.path());
}

#[test]
fn a_link_of_the_other_crash_leads_to_its_row() {
    folder();
    let mut driven = Driven::new("crashes", (160, 40));
    select(&mut driven, "segv-children");
    driven.keys(&["c"]);
    select(&mut driven, "rich");
    driven.keys(&["c", "3", "/"]).text("rdi 51fbf0").keys(&["enter", "enter"]);
    if driven.app.overlay().is_some() {
        driven.keys(&["enter"]);
    }
    assert_ne!(driven.app.workspace().slot(), Some(Slot::Registers), "{}", driven.screen());
    assert!(driven.row().contains("51c"), "{}", driven.row());
}

#[test]
fn a_long_recording_says_that_it_was_looked_at_in_part_until_somebody_asks_for_all() {
    folder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.kwab");
    common::dumps::long(&path);
    assert!(std::fs::metadata(&path).unwrap().len() > 32 << 20);
    let mut driven = Driven::new(&path, (100, 24));
    let screen = driven.screen();
    assert!(screen.contains("part analysed · W: all") && screen.contains("analysed 3 of"), "{screen}");
    // What is not concluded from is there to be looked at.
    assert!(driven.keys(&["5"]).app.workspace().view().unwrap().len() >= common::dumps::LONG_EVENTS);
    driven.keys(&["1", "W"]);
    let screen = driven.screen();
    assert!(!screen.contains("in part") && !screen.contains("analysed 3 of"), "{screen}");
    driven.keys(&["W"]);
    assert!(driven.screen().contains("covers all sections"), "{}", driven.screen());
}

#[test]
fn a_flame_is_zoomed_into_and_walked_through() {
    let mut driven = rich();
    driven.keys(&["P", "v", "g"]);
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Spans));
    let whole = driven.screen();
    assert!(whole.contains("├"), "{whole}");
    driven.keys(&["l"]);
    assert_eq!(driven.app.workspace().selected(), Some(1), "the first span inside");
    driven.keys(&["+"]);
    assert!(driven.app.workspace().list().look.window.is_some() && driven.screen() != whole);
    driven.keys(&["-", "-", "h"]);
    assert_eq!((driven.app.workspace().list().look.window, driven.app.workspace().selected()), (None, Some(0)));
    let layout = kwab_tui::draw::layout(&driven.app);
    let picture = layout.picture.unwrap();
    driven.act(Action::Mouse(Mouse::Click(picture.x, picture.y + 2)));
    assert_eq!(driven.app.workspace().selected(), Some(1), "a click selects the span under it");
}

#[test]
fn evidence_of_triage_leads_to_its_record_and_back() {
    let mut driven = rich();
    driven.keys(&["1", "g", "/"]).text("kind:because").keys(&["enter"]);
    let before = driven.row();
    driven.keys(&["enter"]);
    assert_ne!(driven.app.workspace().slot(), Some(Slot::Triage), "{}", driven.screen());
    driven.keys(&["backspace"]);
    assert_eq!((driven.app.workspace().slot(), driven.row()), (Some(Slot::Triage), before));
}

#[test]
fn a_pointer_on_the_stack_is_followed_to_its_bytes() {
    let mut driven = rich();
    driven.keys(&["a"]).text("0x9ffffec8").keys(&["enter"]);
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Hex), "{}", driven.screen());
    assert!(driven.row().starts_with("0x000000009ffffec0"), "{}", driven.row());
    driven.keys(&["enter"]);
    if driven.app.overlay().is_some() {
        driven.keys(&["enter"]);
    }
    assert!(driven.row().starts_with("0x000000000051c000"), "{}", driven.row());
}

#[test]
fn an_address_typed_into_the_palette_is_gone_to() {
    let mut driven = rich();
    driven.keys(&[":"]).text("0x51c800").keys(&["enter"]);
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Hex));
    driven.keys(&[":"]).text("0xdead0000").keys(&["enter"]);
    assert!(driven.app.status().said().unwrap().1.contains("0xdead0000"), "{:?}", driven.app.status().said());
}

#[test]
fn a_mistyped_field_is_said_while_it_is_typed_and_the_rows_stay() {
    let mut driven = rich();
    driven.keys(&["4", "/"]).text("pdi:3");
    assert!(driven.screen().contains("no field pdi here"), "{}", driven.screen());
    driven.keys(&["esc"]);
    assert!(driven.app.workspace().list().shown.is_none());
}

#[test]
fn a_click_selects_a_row_and_a_second_one_follows_it() {
    let mut driven = rich();
    driven.keys(&["6"]);
    let layout = kwab_tui::draw::layout(&driven.app);
    let click = |driven: &mut Driven, row: u16| driven.act(Action::Mouse(Mouse::Click(5, row)));
    click(&mut driven, layout.rows.y + 2);
    assert_eq!(driven.app.workspace().selected(), Some(2));
    click(&mut driven, layout.rows.y + 2);
    assert!(driven.app.overlay().is_some() || driven.app.workspace().slot() != Some(Slot::Mappings));
    let mut driven = rich();
    let tabs = kwab_tui::draw::layout(&driven.app).tabs.unwrap();
    driven.act(Action::Mouse(Mouse::Click(10, tabs.y)));
    assert_eq!(driven.app.workspace().slot(), Some(Slot::Backtrace));
}

#[test]
fn notes_are_found_again_when_the_dump_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    common::folder();
    let path = folder.path().join("noted.kwab");
    std::fs::write(&path, common::dumps::rich()).unwrap();
    let mut driven = Driven::new(&path, (80, 24));
    driven.keys(&["6", "j", "M"]).text("why two?").keys(&["enter"]);
    let (file, text) = driven.written.pop().unwrap();
    std::fs::write(&file, text.unwrap()).unwrap();
    let mut again = Driven::new(&path, (80, 24));
    again.keys(&["'"]);
    assert!(again.screen().contains("why two?"), "{}", again.screen());
    again.keys(&["enter"]);
    assert_eq!((again.app.workspace().slot(), again.app.workspace().selected()), (Some(Slot::Mappings), Some(1)));
}

#[test]
fn rows_are_exported_as_they_are_shown() {
    let mut driven = rich();
    let file = folder().join("calls.txt");
    driven.keys(&["4", "/"]).text("write").keys(&["enter", "e", "ctrl-u"]);
    driven.act(Action::Paste(file.display().to_string()));
    driven.keys(&["enter"]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.lines().skip(2).all(|line| line.contains("write")), "{text}");
    assert!(text.contains("# filter: write"));
}

#[test]
fn releases_and_unknown_keys_do_nothing() {
    let mut driven = rich();
    let before = driven.screen();
    driven.act(Action::Key(KeyEvent::new(crossterm::event::KeyCode::F(12), crossterm::event::KeyModifiers::NONE)));
    assert_eq!(driven.screen(), before);
}

fn rows_shown(driven: &Driven) -> u16 {
    kwab_tui::draw::layout(&driven.app).rows.height
}

#[test]
fn the_detail_takes_room_from_the_list_and_gives_it_back() {
    let mut driven = rich();
    let (before, plain) = (driven.screen(), rows_shown(&driven));
    driven.keys(&["}", "}"]);
    let larger = rows_shown(&driven);
    assert!(larger < plain, "{larger} rows of {plain}\n{}", driven.screen());
    driven.keys(&["{", "{"]);
    assert_eq!(driven.screen(), before);
    driven.keys(&["{"]);
    assert!(rows_shown(&driven) > plain, "{}", driven.screen());
    // However often it is asked for, both keep some room.
    driven.keys(&["}"; 12]);
    assert!(rows_shown(&driven) >= 2, "{}", driven.screen());
    driven.keys(&["{"; 12]);
    assert!(rows_shown(&driven) < 40, "{}", driven.screen());
}

#[test]
fn the_manual_names_every_key_of_the_table() {
    let manual = include_str!("../README.md");
    assert!(
        manual.contains(&kwab_tui::action::manual()),
        "the table of keys in README.md is not the program's:\n{}",
        kwab_tui::action::manual()
    );
}

#[test]
fn a_key_leads_from_an_event_to_its_cause_and_another_back_to_its_effect() {
    let mut driven = Driven::new(folder().join("crashes/null-dereference.kwab"), (160, 40));
    driven.keys(&["5", "g"]);
    let (view, look) = (driven.app.workspace().view().expect("a timeline"), driven.app.workspace().list().look);
    let only = |links: &[Link]| match links {
        [Link { target: Target::Event(row), .. }] => Some(*row),
        _ => None,
    };
    let pairs = (0..view.len()).filter_map(|row| Some((row, only(&view.causes(row, &look))?)));
    let mut alone = pairs.filter(|(row, cause)| only(&view.effects(*cause, &look)) == Some(*row));
    let (effect, cause) = alone.next().expect("a pair of which each has no other partner");
    driven.keys(&vec!["j"; effect]);
    assert_eq!(driven.app.workspace().selected(), Some(effect));
    assert!(driven.screen().contains("cause "), "the detail names the cause");
    driven.keys(&["["]);
    assert_eq!(driven.app.workspace().selected(), Some(cause));
    assert!(driven.screen().contains("effect "), "the detail names the effect");
    driven.keys(&["]"]);
    assert_eq!(driven.app.workspace().selected(), Some(effect));
    let lonely = (0..view.len()).find(|row| view.causes(*row, &look).is_empty()).expect("an event without a cause");
    driven.keys(&["g"]).keys(&vec!["j"; lonely]).keys(&["["]);
    assert!(driven.screen().contains("the dump names no cause of this row"));
}

#[test]
fn the_overview_of_a_linux_that_recorded_no_calls_fills_a_large_screen() {
    folder();
    for (size, least) in [((120, 40), 30), ((200, 60), 40)] {
        let driven = Driven::new("crashes/linux-6.1-sysrq-panic.kwab", size);
        let screen = driven.screen();
        let full = screen.lines().filter(|line| !line.trim_matches([' ', '│']).is_empty()).count();
        assert!(full >= least, "{full} of {} lines say something:\n{screen}", size.1);
    }
}
