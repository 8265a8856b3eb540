//! Pictures of terminal screens: runs a program in a terminal of a size, presses keys, and draws what is seen as SVG.
//!
//! The terminal is tmux without a client, on a server of its own, which is ended behind each picture. Two equal looks
//! in a row are taken for a screen that is finished. tmux gives the screen as text with the escape sequences of colours
//! (SGR, ECMA-48 8.3.117); only those are read.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::process::Call;

/// A screen to draw.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// The shell's command line.
    pub command: &'a str,
    /// Keys, as tmux names them, pressed one after the other on a finished screen.
    pub keys: &'a [&'a str],
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
}

/// A screen that changes longer than this is drawn as it is then.
const LONGEST: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(300);

/// Runs the program in `folder` and draws its screen.
pub fn draw(screen: &Screen<'_>, folder: &Path) -> Result<String> {
    let terminal = Terminal::start(screen.command, screen.size, folder)?;
    let mut seen = terminal.finished()?;
    for key in screen.keys {
        terminal.press(key)?;
        seen = terminal.finished()?;
    }
    Ok(framed(&cells(&seen, screen.size), screen.size))
}

/// A terminal with a program in it, which ends with this value.
#[derive(Debug)]
pub struct Terminal<'f> {
    name: String,
    folder: &'f Path,
}

impl<'f> Terminal<'f> {
    /// Starts the shell's command line in a terminal of so many columns and rows.
    ///
    /// # Errors
    /// When tmux cannot be run.
    pub fn start(command: &str, size: (u16, u16), folder: &'f Path) -> Result<Self> {
        // A server that ends still has its name for a while.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kwab-screens-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let terminal = Self { name, folder };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, command]).capture()?;
        Ok(terminal)
    }

    fn tmux(&self, words: &[&str]) -> Call {
        Call::new("tmux").args(["-L", &self.name, "-f", "/dev/null"]).args(words).folder(self.folder)
    }

    /// Presses a key, as tmux names it; what has a blank in it is typed as text.
    ///
    /// # Errors
    /// When the program has ended.
    pub fn press(&self, key: &str) -> Result<()> {
        let words = if key.contains(' ') { vec!["send-keys", "-l", key] } else { vec!["send-keys", key] };
        self.tmux(&words).capture()?;
        Ok(())
    }

    /// The screen once it does not change any more.
    ///
    /// # Errors
    /// When the program has ended, or shows nothing.
    pub fn finished(&self) -> Result<String> {
        let started = Instant::now();
        let mut before = String::new();
        loop {
            thread::sleep(PAUSE);
            let seen = self.tmux(&["capture-pane", "-e", "-p", "-N"]).capture()?.stdout;
            let loading = seen.contains("loading") || seen.trim().is_empty();
            if (seen == before && !loading) || started.elapsed() > LONGEST {
                ensure!(!seen.trim().is_empty(), "the screen stays empty");
                return Ok(seen);
            }
            before = seen;
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // The server may have ended with its program.
        let _ = self.tmux(&["kill-server"]).capture_any();
    }
}

/// Pixels of a cell.
const CELL: (u32, u32) = (8, 17);
/// Colours without a number in the sequence: letters and ground.
const PLAIN: (&str, &str) = ("#d8dee9", "#1e222a");
/// The sixteen colours of terminals.
const COLOURS: [&str; 16] = [
    "#3b4252", "#e0626c", "#8fbf6f", "#e5c07b", "#6ca6e8", "#c489d6", "#5fb8c0", "#d8dee9", "#7b8494", "#ff7b86",
    "#a9d98a", "#ffd68f", "#8cc2ff", "#dda4ee", "#7fd6de", "#ffffff",
];

/// How text is drawn from here on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Style {
    letters: Option<String>,
    ground: Option<String>,
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
}

/// A picture of so many columns and rows, with this in it.
pub fn framed(inner: &str, (columns, rows): (u16, u16)) -> String {
    let (width, height) = (u32::from(columns) * CELL.0 + 16, u32::from(rows) * CELL.1 + 16);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" \
         font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n{inner}</svg>\n",
        PLAIN.1
    )
}

/// What is drawn of a screen.
pub fn cells(text: &str, (_, rows): (u16, u16)) -> String {
    let mut out = String::new();
    let mut style = Style::default();
    for (row, line) in text.lines().take(usize::from(rows)).enumerate() {
        let top = 8 + row as u32 * CELL.1;
        let mut column = 0;
        for (run, next) in runs(line, &style) {
            let cells = run.chars().count() as u32;
            drawn(&mut out, &run, &next, (8 + column * CELL.0, top), cells);
            column += cells;
            style = next;
        }
    }
    out
}

/// Adds a run of equally drawn characters.
fn drawn(out: &mut String, run: &str, style: &Style, (left, top): (u32, u32), cells: u32) {
    let (mut letters, mut ground) = (style.letters.as_deref().unwrap_or(PLAIN.0), style.ground.as_deref());
    if style.reversed {
        (letters, ground) = (ground.unwrap_or(PLAIN.1), Some(letters));
    }
    let width = cells * CELL.0;
    // Writing to a string cannot fail.
    if let Some(ground) = ground {
        let _ =
            writeln!(out, "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{}\" fill=\"{ground}\"/>", CELL.1);
    }
    // Blanks at the ends are not drawn, and those between are such that no viewer folds them.
    let shown = run.trim_matches(' ');
    if shown.is_empty() {
        return;
    }
    let left = left + (run.chars().count() - run.trim_start_matches(' ').chars().count()) as u32 * CELL.0;
    let width = shown.chars().count() as u32 * CELL.0;
    let mut more = String::new();
    for (set, word) in [
        (style.bold, " font-weight=\"bold\""),
        (style.dim, " opacity=\"0.6\""),
        (style.underlined, " text-decoration=\"underline\""),
    ] {
        more.push_str(if set { word } else { "" });
    }
    let text = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}");
    let base = top + 13;
    let _ = writeln!(
        out,
        "<text x=\"{left}\" y=\"{base}\" fill=\"{letters}\" textLength=\"{width}\" \
         lengthAdjust=\"spacingAndGlyphs\"{more}>{text}</text>"
    );
}

/// The runs of a line, each with its style; the last one is empty and carries the style to the next line.
fn runs(line: &str, before: &Style) -> Vec<(String, Style)> {
    let (mut all, mut style, mut run) = (Vec::new(), before.clone(), String::new());
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        if character != '\x1b' {
            run.push(character);
            continue;
        }
        let sequence: String = rest.by_ref().skip(1).take_while(|c| *c != 'm').collect();
        if !run.is_empty() {
            all.push((std::mem::take(&mut run), style.clone()));
        }
        apply(&mut style, &sequence);
    }
    if !run.is_empty() {
        all.push((run, style.clone()));
    }
    all.push((String::new(), style));
    all
}

/// Applies the numbers of a sequence.
fn apply(style: &mut Style, sequence: &str) {
    let mut numbers = sequence.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            4 => style.underlined = true,
            7 => style.reversed = true,
            22 => (style.bold, style.dim) = (false, false),
            24 => style.underlined = false,
            27 => style.reversed = false,
            30..=37 => style.letters = Some(COLOURS[usize::from(number - 30)].to_owned()),
            90..=97 => style.letters = Some(COLOURS[usize::from(number - 82)].to_owned()),
            40..=47 => style.ground = Some(COLOURS[usize::from(number - 40)].to_owned()),
            100..=107 => style.ground = Some(COLOURS[usize::from(number - 92)].to_owned()),
            38 => style.letters = colour(&mut numbers),
            48 => style.ground = colour(&mut numbers),
            39 => style.letters = None,
            49 => style.ground = None,
            _ => {}
        }
    }
}

/// A colour of 256 (`5;n`) or by its parts (`2;r;g;b`).
fn colour(numbers: &mut impl Iterator<Item = u16>) -> Option<String> {
    match numbers.next()? {
        5 => {
            let number = numbers.next()?;
            let step = |level: u16| if level == 0 { 0 } else { 55 + level * 40 };
            let rgb = |r: u16, g: u16, b: u16| format!("#{r:02x}{g:02x}{b:02x}");
            Some(match number {
                0..=15 => COLOURS[usize::from(number)].to_owned(),
                16..=231 => rgb(step((number - 16) / 36), step((number - 16) / 6 % 6), step((number - 16) % 6)),
                _ => rgb(8 + (number - 232) * 10, 8 + (number - 232) * 10, 8 + (number - 232) * 10),
            })
        }
        2 => {
            let mut part = || numbers.next().map(|part| part.min(255));
            let (r, g, b) = (part()?, part()?, part()?);
            Some(format!("#{r:02x}{g:02x}{b:02x}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_the_style_that_stood_before_them_and_carry_it_on() {
        let found = runs("a\x1b[1;31mb\x1b[38;5;16mc\x1b[0md\x1b[7m", &Style::default());
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", ""]);
        assert_eq!(found[1].1, Style { bold: true, letters: Some(COLOURS[1].into()), ..Style::default() });
        assert_eq!(found[2].1.letters.as_deref(), Some("#000000"));
        assert_eq!((&found[3].1, found[4].1.reversed), (&Style::default(), true));
    }

    #[test]
    fn a_picture_holds_text_as_text_and_every_cell_at_its_place() {
        let picture = cells("a<b\n\x1b[48;2;1;2;3m x", (4, 2));
        assert!(picture.contains(">a&lt;b</text>") && picture.contains("fill=\"#010203\""), "{picture}");
        assert!(picture.contains("textLength=\"24\"") && picture.contains("y=\"25\" width=\"16\""), "{picture}");
    }
}
