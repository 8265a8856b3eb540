//! Decides what a meaning looks like: the terminal's own palette, so that light and dark schemes both work, or no
//! colour.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tone {
    /// Text without emphasis.
    #[default]
    Plain,
    /// A heading, the name of a column.
    Head,
    /// What matters most.
    Alarm,
    /// What to be careful about.
    Care,
    /// What may be skipped.
    Dim,
    /// Code: symbols, calls, instructions.
    Code,
    /// What is as it should be.
    Good,
    /// Something that leads elsewhere.
    Link,
    /// The row under the cursor.
    Selected,
    /// What a filter found, a key to press.
    Match,
}

impl Tone {
    /// The names that a config file uses, and what they stand for without one.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("plain", Self::Plain),
        ("head", Self::Head),
        ("alarm", Self::Alarm),
        ("care", Self::Care),
        ("dim", Self::Dim),
        ("code", Self::Code),
        ("good", Self::Good),
        ("link", Self::Link),
        ("selected", Self::Selected),
        ("match", Self::Match),
    ];
}

/// The style of every tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    styles: Vec<Style>,
    /// Whether colours are used at all.
    pub colours: bool,
}

impl Theme {
    /// The theme without a config file; without colours it speaks with bold, dim, underlined and reversed text alone.
    #[must_use]
    pub fn new(colours: bool) -> Self {
        let mut theme = Self { styles: vec![Style::new(); Tone::ALL.len()], colours };
        for (_, tone) in Tone::ALL {
            theme.styles[*tone as usize] = standard(*tone, colours);
        }
        theme
    }

    /// The style of a tone.
    #[must_use]
    pub fn style(&self, tone: Tone) -> Style {
        self.styles[tone as usize]
    }

    /// Changes a tone as a config file says: words like `red`, `bright-blue`, `bold`, `dim`, `underlined`, `reversed`.
    ///
    /// # Errors
    /// The word that is not known, or the name of a tone that is not.
    pub fn set(&mut self, name: &str, words: &str) -> Result<(), String> {
        let tone = Tone::ALL.iter().find(|(known, _)| *known == name).map(|(_, tone)| *tone);
        let tone = tone.ok_or_else(|| format!("unknown tone {name}"))?;
        let mut style = Style::new();
        for word in words.split_whitespace() {
            style = match (modifier(word), colour(word)) {
                (Some(modifier), _) => style.add_modifier(modifier),
                (None, Some(colour)) if self.colours => style.fg(colour),
                (None, Some(_)) => style,
                (None, None) => return Err(format!("unknown colour or style {word}")),
            };
        }
        self.styles[tone as usize] = style;
        Ok(())
    }
}

fn standard(tone: Tone, colours: bool) -> Style {
    let style = match tone {
        Tone::Plain | Tone::Code | Tone::Good => Style::new(),
        Tone::Head | Tone::Care => Style::new().add_modifier(Modifier::BOLD),
        Tone::Alarm => Style::new().add_modifier(Modifier::BOLD),
        Tone::Dim => Style::new().add_modifier(Modifier::DIM),
        Tone::Link | Tone::Match => Style::new().add_modifier(Modifier::UNDERLINED),
        Tone::Selected => Style::new().add_modifier(Modifier::REVERSED),
    };
    let colour = match tone {
        Tone::Alarm => Some(Color::Red),
        Tone::Care | Tone::Match => Some(Color::Yellow),
        Tone::Code => Some(Color::Cyan),
        Tone::Good => Some(Color::Green),
        Tone::Link => Some(Color::Blue),
        _ => None,
    };
    match colour {
        Some(colour) if colours => style.fg(colour),
        _ => style,
    }
}

fn modifier(word: &str) -> Option<Modifier> {
    Some(match word {
        "bold" => Modifier::BOLD,
        "dim" => Modifier::DIM,
        "italic" => Modifier::ITALIC,
        "underlined" => Modifier::UNDERLINED,
        "reversed" => Modifier::REVERSED,
        _ => return None,
    })
}

fn colour(word: &str) -> Option<Color> {
    Some(match word {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "white" => Color::Gray,
        "bright-black" => Color::DarkGray,
        "bright-red" => Color::LightRed,
        "bright-green" => Color::LightGreen,
        "bright-yellow" => Color::LightYellow,
        "bright-blue" => Color::LightBlue,
        "bright-magenta" => Color::LightMagenta,
        "bright-cyan" => Color::LightCyan,
        "bright-white" => Color::White,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_no_tone_has_one_and_alarms_still_stand_out() {
        let mut theme = Theme::new(false);
        theme.set("alarm", "red bold").unwrap();
        for (_, tone) in Tone::ALL {
            assert_eq!((theme.style(*tone).fg, theme.style(*tone).bg), (None, None), "{tone:?}");
        }
        assert!(theme.style(Tone::Alarm).add_modifier.contains(Modifier::BOLD));
        assert!(theme.set("alarm", "crimson").unwrap_err().contains("crimson"));
        assert!(theme.set("alrm", "red").unwrap_err().contains("alrm"));
    }
}
