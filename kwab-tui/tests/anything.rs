//! Any keys at any size: never a panic, never a selection that is none of the rows, never a row that changes by itself.

mod common;

use common::{Driven, folder};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use kwab_tui::action::{ACTIONS, Command};
use kwab_tui::app::{Action, Mouse};
use kwab_tui::view::{Look, Slot};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Command(usize),
    Key(char),
    Special(u8),
    Resize(u16, u16),
    Click(u16, u16),
    Paste(String),
}

/// The keys that are most of what a user presses.
const KEYS: &str = "/:?ynNgGjkhl0123456789LPvm'cesSod+-z";

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..ACTIONS.len()).prop_map(Step::Command),
        4 => any::<char>().prop_map(Step::Key),
        4 => prop::sample::select(KEYS.chars().collect::<Vec<_>>()).prop_map(Step::Key),
        2 => (0..6u8).prop_map(Step::Special),
        1 => (0..250u16, 0..80u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => (0..200u16, 0..60u16).prop_map(|(column, row)| Step::Click(column, row)),
        1 => "[a-z0-9:>x \"-]{0,12}".prop_map(Step::Paste),
    ];
    prop::collection::vec(step, 1..60)
}

fn act(driven: &mut Driven, step: &Step) {
    let key = |code| Action::Key(KeyEvent::new(code, KeyModifiers::NONE));
    driven.act(match step {
        Step::Command(row) => Action::Command(ACTIONS[*row].command),
        Step::Key(letter) => key(KeyCode::Char(*letter)),
        Step::Special(which) => {
            key([KeyCode::Enter, KeyCode::Esc, KeyCode::Backspace, KeyCode::Tab, KeyCode::Up, KeyCode::PageDown]
                [usize::from(*which)])
        }
        Step::Resize(columns, rows) => Action::Resize(*columns, *rows),
        Step::Click(column, row) => Action::Mouse(Mouse::Click(*column, *row)),
        Step::Paste(text) => Action::Paste(text.clone()),
    });
}

/// The selected row is one that is shown, and is drawn where there is room.
fn holds(driven: &Driven) {
    let Some(view) = driven.app.workspace().view() else { return };
    let list = driven.app.workspace().list();
    let (len, count) = (view.len(), list.count(view.len()));
    let Some(row) = driven.app.workspace().selected() else {
        assert_eq!(count, 0, "rows are shown and none is selected");
        return;
    };
    assert!(row < len, "row {row} of {len}");
    let position = list.position(len);
    assert!(position < count && list.row_at(position) == row, "row {row} is not at its place {position}");
    // What follows from the row can be asked.
    drop((
        view.row(row, &list.look),
        view.detail(row, &list.look),
        view.links(row, &list.look),
        view.target(row, &list.look),
    ));
}

/// What is selected, in a way that does not depend on what else is shown.
fn meaning(driven: &Driven) -> Option<(Option<Slot>, String)> {
    let view = driven.app.workspace().view()?;
    let row = driven.app.workspace().selected()?;
    let list = driven.app.workspace().list();
    // A byte is a part of its row, and a group stands for its first dump.
    let look = Look { byte: list.look.byte, ..Look::default() };
    let said = view.target(row, &look).map_or_else(|| view.row(row, &look).text(), |target| target.name());
    Some((driven.app.workspace().slot(), said))
}

/// Actions that show other rows, or the same ones in another way, and select none.
fn selects_nothing(step: &Step) -> bool {
    use Command::*;
    match step {
        Step::Resize(..) => true,
        Step::Command(row) => matches!(
            ACTIONS[*row].command,
            Sort | Reverse
                | Detail
                | DetailDown
                | DetailUp
                | ZoomIn
                | ZoomOut
                | ZoomAll
                | WordSize
                | Endian
                | Redraw
                | Reload
                | Help
                | Palette
                | Copy
                | Export
                | Mark
                | Note
                | Suspend
                | Columns
                | Edit
                | Symbols
                | Jumps
                | Delete
                | Archive
        ),
        _ => false,
    }
}

/// The dumps of the selected row of the list of dumps: all of a group.
fn dumps(driven: &Driven) -> Vec<String> {
    let workspace = driven.app.workspace();
    let row = workspace.selected().filter(|_| workspace.shown_crash().is_none());
    let catalogue = workspace.catalogue().view();
    row.map_or_else(Vec::new, |row| catalogue.paths(row).into_iter().map(str::to_string).collect())
}

/// Grouping keeps the selected dump, or selects the heading it is folded behind; without groups, a heading becomes one
/// of its dumps.
fn is_regrouped(before: &[String], after: &[String]) -> bool {
    let within = |some: &[String], all: &[String]| some.iter().all(|dump| all.contains(dump));
    within(before, after) || (!after.is_empty() && within(after, before))
}

fn run(dump: &str, steps: &[Step]) {
    folder();
    drive(Driven::new(dump, (80, 24)), steps);
}

fn drive(mut driven: Driven, steps: &[Step]) {
    for step in steps {
        let (before, dumps_before) = (meaning(&driven), dumps(&driven));
        act(&mut driven, step);
        holds(&driven);
        driven.buffer();
        if selects_nothing(step) && before.is_some() {
            assert_eq!(meaning(&driven), before, "{step:?} has selected something else");
        }
        if matches!(step, Step::Command(row) if ACTIONS[*row].command == Command::Group) {
            let after = dumps(&driven);
            assert!(is_regrouped(&dumps_before, &after), "{step:?}: {dumps_before:?} became {after:?}");
        }
    }
    // Resizing and drawing select nothing.
    let before = (driven.app.workspace().slot(), driven.app.workspace().selected());
    for size in [(40, 10), (200, 60), (1, 1), (80, 24)] {
        driven.act(Action::Resize(size.0, size.1));
        driven.buffer();
    }
    assert_eq!(before, (driven.app.workspace().slot(), driven.app.workspace().selected()));
}

/// Cases of each test; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_keys_on_a_dump_with_everything(steps in steps()) {
        run("crashes/rich.kwab", &steps);
    }

    #[test]
    fn any_keys_on_a_list_of_dumps(steps in steps()) {
        run("crashes", &steps);
    }

    #[test]
    fn any_keys_on_damaged_and_empty_dumps(steps in steps(), which in 0..5usize) {
        let name = ["damaged-cut", "damaged-bit", "damaged-hole", "damaged-text", "empty"][which];
        run(&format!("crashes/{name}.kwab"), &steps);
    }

    #[test]
    fn any_keys_on_two_crashes_side_by_side(steps in steps()) {
        folder();
        let mut driven = Driven::new("crashes", (120, 30));
        for name in ["rich", "segv-children"] {
            driven.keys(&["g", "/", "ctrl-u"]).text(&format!("file:{name}")).keys(&["enter", "c"]);
        }
        drive(driven, &steps);
    }

    #[test]
    fn a_filter_never_moves_the_selection_off_a_row_that_it_shows(filter in "[a-z0-9:>x -]{0,8}", downs in 0..40usize) {
        folder();
        let mut driven = Driven::new("crashes/rich.kwab", (80, 24));
        driven.keys(&["4", "g"]);
        for _ in 0..downs {
            driven.keys(&["j"]);
        }
        let before = driven.row();
        driven.keys(&["/"]);
        driven.act(Action::Paste(filter));
        let shown: Vec<String> = {
            let (view, list) = (driven.app.workspace().view().unwrap(), driven.app.workspace().list());
            (0..list.count(view.len())).map(|at| view.row(list.row_at(at), &list.look).text()).collect()
        };
        if shown.contains(&before) {
            prop_assert_eq!(driven.row(), before);
        }
    }
}

/// Found by the test above: a filter that cannot be understood keeps its rows, and they are the same dumps in another
/// order.
#[test]
fn a_filter_that_is_being_typed_keeps_its_dumps_when_the_list_is_sorted() {
    folder();
    let mut driven = Driven::new("crashes", (120, 30));
    driven.keys(&["/", "ctrl-u"]).text("children>");
    let shown = |driven: &Driven| driven.app.workspace().list().count(usize::MAX);
    assert_eq!(shown(&driven), 1, "one dump has it in its name");
    let steps: Vec<Step> = [Command::Sort, Command::Reverse, Command::Group, Command::Reload]
        .into_iter()
        .filter_map(|wanted| ACTIONS.iter().position(|action| action.command == wanted).map(Step::Command))
        .collect();
    assert_eq!(steps.len(), 4);
    drive(driven, &steps);
}

#[test]
fn the_order_turned_round_keeps_the_row_that_a_filter_left() {
    let command = |name| Step::Command(ACTIONS.iter().position(|action| action.name == name).expect("an action"));
    let last = Step::Special(5);
    run(
        "crashes/damaged-cut.kwab",
        &[command("locks"), command("sort"), last, Step::Key('/'), Step::Key('y'), command("reverse")],
    );
}
