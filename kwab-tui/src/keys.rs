//! Maps keys to actions: those of the table, changed by a config file.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::action::{ACTIONS, Command, KeyScope};

/// A key with its modifiers, as the table and config files write it: `ctrl-d`, `G`, `pgdn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Key without its modifiers.
    pub code: KeyCode,
    /// What is held down with it; shift is part of a letter.
    pub modifiers: KeyModifiers,
}

/// Names of keys that are not characters.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("backspace", KeyCode::Backspace),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
];

impl Key {
    /// Reads the name of a key.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut rest = name;
        let mut modifiers = KeyModifiers::NONE;
        for (prefix, modifier) in [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT)] {
            if let Some(stripped) = rest.strip_prefix(prefix).filter(|stripped| !stripped.is_empty()) {
                modifiers |= modifier;
                rest = stripped;
            }
        }
        let named = NAMES.iter().find(|(known, _)| *known == rest).map(|(_, code)| *code);
        let function = rest.strip_prefix('f').and_then(|number| number.parse().ok()).map(KeyCode::F);
        let mut characters = rest.chars();
        let single = characters.next().filter(|_| characters.next().is_none()).map(KeyCode::Char);
        Some(Self { code: named.or(single).or(function)?, modifiers })
    }

    /// A key without modifiers.
    #[must_use]
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers::NONE }
    }

    /// The key of an event. Terminals that report shift with a letter mean the letter.
    #[must_use]
    pub fn of(event: &KeyEvent) -> Self {
        let mut modifiers = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT);
        let code = match event.code {
            KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::CONTROL) => {
                KeyCode::Char(letter.to_ascii_lowercase())
            }
            // Some terminals send ctrl-h for backspace; ctrl-h itself is nothing here.
            code => code,
        };
        if code == KeyCode::BackTab {
            modifiers = KeyModifiers::NONE;
        }
        Self { code, modifiers }
    }
}

/// Which key does what.
#[derive(Debug, Clone)]
pub struct KeyMap {
    /// Key, its name, and the row of the table.
    bound: Vec<(Key, String, usize)>,
}

impl Default for KeyMap {
    fn default() -> Self {
        let mut map = Self { bound: Vec::new() };
        for (row, action) in ACTIONS.iter().enumerate() {
            for name in action.keys {
                map.bound.extend(Key::parse(name).map(|key| (key, (*name).to_string(), row)));
            }
        }
        map
    }
}

impl KeyMap {
    /// Gives an action other keys.
    ///
    /// # Errors
    /// The name of an action or a key that is not known.
    pub fn bind(&mut self, action: &str, keys: &[String]) -> Result<(), String> {
        let row = ACTIONS.iter().position(|row| row.name == action);
        let row = row.ok_or_else(|| format!("unknown action {action}; the help (?) lists them"))?;
        let parsed: Result<Vec<(Key, String, usize)>, String> = keys
            .iter()
            .map(|name| {
                Key::parse(name).map(|key| (key, name.clone(), row)).ok_or_else(|| format!("unknown key {name}"))
            })
            .collect();
        let parsed = parsed?;
        // A key that is assigned loses its default action.
        self.bound.retain(|(key, _, of)| *of != row && !parsed.iter().any(|(new, ..)| new == key));
        self.bound.extend(parsed);
        Ok(())
    }

    /// What a key does.
    #[must_use]
    pub fn command(&self, key: Key) -> Option<Command> {
        self.bound.iter().find(|(bound, ..)| *bound == key).and_then(|(_, _, row)| Some(ACTIONS.get(*row)?.command))
    }

    /// The keys of an action, as they are written.
    #[must_use]
    pub fn keys_of(&self, command: Command) -> Vec<&str> {
        let of = |row: &usize| ACTIONS.get(*row).is_some_and(|action| action.command == command);
        self.bound.iter().filter(|(_, _, row)| of(row)).map(|(_, name, _)| name.as_str()).collect()
    }
}

/// Whether an action of `wanted` makes sense where `here` is.
#[must_use]
pub fn fits(wanted: KeyScope, here: KeyScope) -> bool {
    match wanted {
        KeyScope::Anywhere => true,
        KeyScope::Crash => !matches!(here, KeyScope::Catalogue | KeyScope::Anywhere),
        KeyScope::Catalogue | KeyScope::Zoom | KeyScope::Memory | KeyScope::Hex => wanted == here,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_table_can_be_read_and_does_what_it_says() {
        let map = KeyMap::default();
        for row in ACTIONS {
            assert_eq!(map.keys_of(row.command), row.keys, "{}", row.name);
            for key in row.keys {
                assert_eq!(map.command(Key::parse(key).expect(key)), Some(row.command), "{key}");
            }
        }
    }

    #[test]
    fn a_config_file_takes_keys_from_one_action_and_gives_them_to_another() {
        let mut map = KeyMap::default();
        map.bind("quit", &["q".to_string(), "alt-x".to_string()]).unwrap();
        assert_eq!(map.command(Key::parse("q").unwrap()), Some(Command::Quit));
        assert_eq!(map.command(Key::parse("ctrl-c").unwrap()), None);
        assert_eq!(map.keys_of(Command::Catalogue), ["`"]);
        assert!(map.bind("qiut", &[]).is_err());
        assert!(map.bind("quit", &["ctrl-".to_string(), "hyper-q".to_string()]).is_err());
    }
}
