//! Owns the one table of everything a person can do: keys, help, palette and the manual are read from it.

/// Something a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// To the left: scrolls, pans, or moves by a byte.
    Left,
    /// To the right.
    Right,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// Follow the link of the row.
    Follow,
    /// Where one was before.
    Back,
    /// Where one was before going back.
    Forward,
    /// The list of dumps.
    Catalogue,
    /// A tab, by number.
    Tab(u8),
    /// The next tab.
    NextTab,
    /// The tab before.
    PreviousTab,
    /// Another list of the same tab.
    Mode,
    /// Show only rows that hold.
    Filter,
    /// Show only rows of the same process.
    SameProcess,
    /// The next row that holds.
    Next,
    /// The row before that holds.
    Previous,
    /// Close what is open, else show all rows again.
    Escape,
    /// Sort by the next column.
    Sort,
    /// Turn the order round.
    Reverse,
    /// Group dumps of the same crash, or not.
    Group,
    /// Show the detail of the row, or not.
    Detail,
    /// Scroll the detail down.
    DetailDown,
    /// Scroll the detail up.
    DetailUp,
    /// Gives the detail more room.
    DetailLarger,
    /// Gives the list more room.
    DetailSmaller,
    /// Halves the visible extent around the selected row.
    ZoomIn,
    /// Doubles the visible extent around the selected row.
    ZoomOut,
    /// Shows the whole extent again.
    ZoomAll,
    /// Go to what caused the row.
    Cause,
    /// Go to what the row caused.
    Effect,
    /// Go to an address, a row or a line.
    Goto,
    /// Bytes of a word.
    WordSize,
    /// Switches words in the hex list between little and big endian.
    Endian,
    /// Copy to the clipboard.
    Copy,
    /// Write the rows to a file.
    Export,
    /// Mark the row, or not.
    Mark,
    /// A note at the row.
    Note,
    /// The list of marks.
    Marks,
    /// Compare with another crash.
    Compare,
    /// Conclude from all of a long recording.
    Whole,
    /// Choose where to go back or forward to.
    Jumps,
    /// Open the source line of the row in the user's editor.
    Edit,
    /// Load images with symbols.
    Symbols,
    /// Choose the column to sort by.
    Columns,
    /// Fold the dumps of a group, or show them.
    Fold,
    /// Fold all groups, or none.
    FoldAll,
    /// Select a dump, or not.
    Select,
    /// Delete the selected dumps.
    Delete,
    /// Move the selected dumps away.
    Archive,
    /// Reads the open dump again whenever its file changes, or ends that.
    Live,
    /// Import the serial log of the row.
    Import,
    /// Opens the palette, which lists every action by name.
    Palette,
    /// The keys that work where the user is.
    Help,
    /// Read everything again.
    Reload,
    /// Draw everything again.
    Redraw,
    /// To the shell, and back with `fg`.
    Suspend,
    /// Ends the program.
    Quit,
}

/// Where an action makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    /// Keys that work in every list.
    Anywhere,
    /// In the list of dumps.
    Catalogue,
    /// In a crash.
    Crash,
    /// Where a picture can be looked at more closely: timeline and spans.
    Zoom,
    /// In its memory.
    Memory,
    /// In its bytes.
    Hex,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct ActionRow {
    /// What is done when it is chosen.
    pub command: Command,
    /// Its name, in the palette and in the config file.
    pub name: &'static str,
    /// The keys it has without a config file.
    pub keys: &'static [&'static str],
    /// What it does, for help.
    pub about: &'static str,
    /// Where it makes sense.
    pub scope: KeyScope,
}

macro_rules! actions {
    ($($command:expr, $name:literal, [$($key:literal),*], $scope:ident, $about:literal;)*) => {
        &[$(ActionRow { command: $command, name: $name, keys: &[$($key),*], about: $about, scope: KeyScope::$scope },)*]
    };
}

/// Everything a person can do, in the order help shows it.
pub const ACTIONS: &[ActionRow] = actions! {
    Command::Follow, "follow", ["enter"], Anywhere, "follow the link of the row; open the dump";
    Command::Back, "back", ["backspace", "ctrl-o"], Anywhere, "back to where you were";
    Command::Forward, "forward", ["ctrl-f"], Anywhere, "forward again";
    Command::Jumps, "jumps", ["H"], Anywhere, "where you were: choose one to go to";
    Command::Filter, "filter", ["/"], Anywhere, "show only rows that match: cause:null cpu:1 pid>5 text";
    Command::SameProcess, "process", ["p"], Crash, "show only rows of the same process; again: all rows";
    Command::Next, "next-match", ["n"], Anywhere, "next row that matches the last filter; next difference";
    Command::Previous, "previous-match", ["N"], Anywhere, "previous row that matches";
    Command::Escape, "all-rows", ["esc"], Anywhere, "close the overlay; show all rows";
    Command::Palette, "actions", [":"], Anywhere, "run an action by name; go to an address";
    Command::Help, "keys", ["?", "f1"], Anywhere, "the keys that work here";
    Command::Copy, "copy", ["y"], Anywhere, "copy the row, its address or the kwab command";
    Command::Export, "export", ["e"], Anywhere, "write the rows to a file";
    Command::Mark, "mark", ["m"], Crash, "mark the row, or remove its mark";
    Command::Note, "note", ["M"], Crash, "attach a note to the row";
    Command::Marks, "marks", ["'"], Crash, "marks and notes of this dump";
    Command::Edit, "edit", ["V"], Crash, "open the source line of the row in $EDITOR";
    Command::Symbols, "symbols", ["I"], Crash, "load symbols: an image, a directory, an initramfs";
    Command::Catalogue, "dumps", ["q", "`"], Anywhere, "the list of dumps; in the list: quit";
    Command::Tab(0), "triage", ["1"], Crash, "hypotheses and their evidence";
    Command::Tab(1), "backtrace", ["2"], Crash, "stack frames, innermost first";
    Command::Tab(2), "registers", ["3"], Crash, "registers and what they point at";
    Command::Tab(3), "syscalls", ["4"], Crash, "system calls as strace writes them";
    Command::Tab(4), "timeline", ["5"], Crash, "all events of all processors";
    Command::Tab(5), "memory", ["6"], Crash, "mappings, pages, audit, page checks";
    Command::Tab(6), "hex", ["7"], Crash, "captured bytes";
    Command::Tab(7), "tasks", ["8"], Crash, "tasks and what they wait for";
    Command::Tab(8), "log", ["9"], Crash, "the console";
    Command::Tab(9), "integrity", ["0"], Crash, "sections, damage, completeness";
    Command::Tab(10), "locks", ["L"], Crash, "locks and who waits for whom";
    Command::Tab(11), "profile", ["P"], Crash, "what calls, faults and spans cost";
    Command::NextTab, "next-tab", ["tab"], Crash, "next tab";
    Command::PreviousTab, "previous-tab", ["backtab"], Crash, "previous tab";
    Command::Mode, "mode", ["v"], Crash, "another list of this tab: mappings, pages, audit, checks";
    Command::ZoomIn, "zoom-in", ["+", "="], Zoom, "zoom in: around the event, into the span";
    Command::ZoomOut, "zoom-out", ["-"], Zoom, "zoom out";
    Command::ZoomAll, "zoom-all", ["z"], Zoom, "zoom out to the whole extent";
    Command::Cause, "cause", ["["], Zoom, "to what caused the event";
    Command::Effect, "effect", ["]"], Zoom, "to what the event caused";
    Command::WordSize, "word-size", ["w"], Hex, "words of 1, 2, 4 or 8 bytes";
    Command::Endian, "byte-order", ["E"], Hex, "little or big endian";
    Command::Goto, "go-to", ["a", "@"], Crash, "go to an address, a line or a row";
    Command::Sort, "sort", ["s"], Anywhere, "sort by the next column";
    Command::Reverse, "reverse", ["S"], Anywhere, "reverse the order";
    Command::Columns, "columns", ["C"], Anywhere, "choose the column to sort by";
    Command::Group, "group", ["o"], Catalogue, "dumps of the same crash together, or one by one";
    Command::Fold, "fold", ["x"], Catalogue, "fold the dumps of the group, or show them";
    Command::FoldAll, "fold-all", ["X"], Catalogue, "fold all groups, or none";
    Command::Select, "select", ["t"], Catalogue, "select the dump, or all of the group; again: not";
    Command::Delete, "delete", ["D", "delete"], Catalogue, "delete the selected dumps, after a question";
    Command::Archive, "archive", ["A"], Catalogue, "move the selected dumps into the folder archive, after a question";
    Command::Compare, "compare", ["c"], Anywhere, "compare two crashes; end the comparison";
    Command::Whole, "whole", ["W"], Crash, "analyse all sections of a long recording";
    Command::Live, "live", ["f"], Crash, "follow the dump: read it again when its file changes";
    Command::Import, "import", ["i"], Catalogue, "import the serial log under the cursor";
    Command::Detail, "detail", ["d"], Anywhere, "show or hide the detail of the row";
    Command::DetailDown, "detail-down", ["J", "ctrl-down"], Anywhere, "scroll the detail";
    Command::DetailUp, "detail-up", ["K", "ctrl-up"], Anywhere, "scroll the detail back";
    Command::DetailLarger, "detail-larger", ["}"], Anywhere, "give the detail more room";
    Command::DetailSmaller, "detail-smaller", ["{"], Anywhere, "give the list more room";
    Command::Up, "up", ["k", "up"], Anywhere, "a row up";
    Command::Down, "down", ["j", "down"], Anywhere, "a row down";
    Command::Left, "left", ["h", "left"], Anywhere, "scroll left, pan, previous byte, enclosing span";
    Command::Right, "right", ["l", "right"], Anywhere, "scroll right, pan, next byte, first span inside";
    Command::PageUp, "page-up", ["pgup", "ctrl-u", "ctrl-b"], Anywhere, "a screen up";
    Command::PageDown, "page-down", ["pgdn", "ctrl-d", "space"], Anywhere, "a screen down";
    Command::First, "first", ["g", "home"], Anywhere, "the first row";
    Command::Last, "last", ["G", "end"], Anywhere, "the last row";
    Command::Reload, "reload", ["f5", "R"], Anywhere, "read everything again";
    Command::Redraw, "redraw", ["ctrl-l"], Anywhere, "draw everything again";
    Command::Suspend, "suspend", ["ctrl-z"], Anywhere, "suspend to the shell; fg resumes";
    Command::Quit, "quit", ["Q", "ctrl-c"], Anywhere, "quit";
};

/// The row of an action.
#[must_use]
pub fn row_of(command: Command) -> Option<&'static ActionRow> {
    ACTIONS.iter().find(|row| row.command == command)
}

/// The table as Markdown, for the manual.
#[must_use]
pub fn manual() -> String {
    let mut out = String::from("| key | action | what it does |\n|---|---|---|\n");
    for row in ACTIONS {
        let keys: Vec<String> = row.keys.iter().map(|key| format!("`{}`", key.replace('`', "grave"))).collect();
        out.push_str(&format!("| {} | {} | {} |\n", keys.join(" "), row.name, row.about));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_actions_share_a_name_or_a_key() {
        let mut names = std::collections::HashSet::new();
        let mut keys = std::collections::HashSet::new();
        for row in ACTIONS {
            assert!(names.insert(row.name), "{} twice", row.name);
            for key in row.keys {
                assert!(keys.insert(key), "{key} twice");
            }
        }
    }
}
