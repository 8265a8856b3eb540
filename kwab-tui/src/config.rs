//! Reads the config file: keys and colours. What it has wrong is said, and the rest of it counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::keys::KeyMap;
use crate::theme::Theme;

/// Keys and colours.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which key does what.
    pub keys: KeyMap,
    /// What a meaning looks like.
    pub theme: Theme,
    /// What was not understood.
    pub problems: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    keys: BTreeMap<String, Keys>,
    #[serde(default)]
    theme: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    One(String),
    Several(Vec<String>),
}

impl Config {
    /// The config without a file.
    #[must_use]
    pub fn new(colours: bool) -> Self {
        Self { keys: KeyMap::default(), theme: Theme::new(colours), problems: Vec::new() }
    }

    /// Reads the text of a config file.
    #[must_use]
    pub fn parse(text: &str, colours: bool) -> Self {
        let mut config = Self::new(colours);
        let stored: Stored = match toml::from_str(text) {
            Ok(stored) => stored,
            Err(error) => {
                config.problems.push(error.message().to_string());
                return config;
            }
        };
        for (action, keys) in stored.keys {
            let keys = match keys {
                Keys::One(key) => vec![key],
                Keys::Several(keys) => keys,
            };
            config.problems.extend(config.keys.bind(&action, &keys).err());
        }
        for (tone, words) in stored.theme {
            config.problems.extend(config.theme.set(&tone, &words).err());
        }
        config
    }

    /// Reads the user's file, where there is one.
    #[must_use]
    pub fn of_user(colours: bool) -> Self {
        let Some(path) = path() else { return Self::new(colours) };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let mut config = Self::parse(&text, colours);
                for problem in &mut config.problems {
                    *problem = format!("{}: {problem}", path.display());
                }
                config
            }
            Err(_) => Self::new(colours),
        }
    }
}

/// `$KWAB_TUI_CONFIG`, else `kwab/tui.toml` in the user's config directory.
#[must_use]
pub fn path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KWAB_TUI_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("kwab").join("tui.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Command;
    use crate::keys::Key;

    #[test]
    fn a_config_file_with_one_mistake_still_counts_for_the_rest() {
        let text = "[keys]\nquit = \"x\"\nqiut = [\"y\"]\n[theme]\nalarm = \"magenta bold\"\ncare = \"crimson\"\n";
        let config = Config::parse(text, true);
        assert_eq!(config.keys.command(Key::parse("x").unwrap()), Some(Command::Quit));
        assert_eq!(config.problems.len(), 2, "{:?}", config.problems);
        assert_eq!(Config::parse("keys = 3", true).problems.len(), 1);
    }
}
