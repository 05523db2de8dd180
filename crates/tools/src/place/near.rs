//! Existing paths that differ from a missing one only by spaces, by the form of accents, or by
//! case.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use holdpoint_common::Verdict;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::Place;
use crate::act::Act;
use crate::error::ToolError;
use crate::workspace::Workspace;

/// The most names of a folder that are compared.
const MAX_NAMES: usize = 10_000;

/// The most paths that an error names.
const MAX_PATHS: usize = 3;

/// The ways in which two names differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Differences {
    spaces: bool,
    form: bool,
    case: bool,
}

/// An existing path that is nearly the missing one.
struct Near {
    path: PathBuf,
    differences: Differences,
    /// Spaces other than U+0020, and invisible characters, in either name.
    spaces: BTreeSet<char>,
}

/// The error for a failed access to a place. If the place is missing, the error names existing
/// paths that are nearly the same.
pub(crate) fn failure(
    place: &Place,
    error: &io::Error,
    tool: &str,
    workspace: &Workspace,
) -> ToolError {
    let near = match error.kind() {
        io::ErrorKind::NotFound => hint(place.path(), tool, workspace),
        _ => String::new(),
    };
    ToolError::failed(format!("{}: {error}{near}", place.shown()))
}

/// A suffix for an error: the existing paths that are nearly the missing one, as in `; there is
/// "…", which differs by …`. Names only paths that `tool` may read without approval; empty if there
/// are none.
pub(crate) fn hint(missing: &Path, tool: &str, workspace: &Workspace) -> String {
    let mut hint = String::new();
    let root = workspace.root();
    let may_read = |path: &Path| {
        let place = path.to_str().and_then(|path| Place::resolve(path, root).ok());
        let judged =
            place.map(|place| workspace.policy().judge(tool, &[Act::Read(place)], root).verdict);
        judged == Some(Verdict::Allow)
    };
    for near in near_paths(missing).iter().filter(|near| may_read(&near.path)) {
        let shown = near.path.strip_prefix(root).unwrap_or(&near.path);
        // Writing to a string does not fail.
        let _ = write!(
            hint,
            "; there is {}, which differs by {}",
            in_json(shown),
            near.differences_text()
        );
    }
    hint
}

/// Existing paths that are nearly the missing one. Compares names from the first missing part on,
/// until no name of a folder is similar.
fn near_paths(missing: &Path) -> Vec<Near> {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let Some(existing) = missing.ancestors().find(|path| exists(path)) else { return Vec::new() };
    let Ok(rest) = missing.strip_prefix(existing) else { return Vec::new() };
    let mut found = vec![Near {
        path: existing.to_owned(),
        differences: Differences::default(),
        spaces: BTreeSet::new(),
    }];
    for part in rest {
        let mut next = Vec::new();
        for Near { path, differences, spaces } in &found {
            if exists(&path.join(part)) {
                next.push(Near {
                    path: path.join(part),
                    differences: *differences,
                    spaces: spaces.clone(),
                });
                continue;
            }
            let Some(part) = part.to_str() else { continue };
            for name in names(path) {
                let Some(name_differences) = Differences::between(part, &name) else { continue };
                let both_names =
                    if name_differences.spaces { [part, &name].concat() } else { String::new() };
                let spaces = spaces
                    .iter()
                    .copied()
                    .chain(both_names.chars().filter(|c| is_odd_space(*c)))
                    .collect();
                next.push(Near {
                    path: path.join(name),
                    differences: differences.and(name_differences),
                    spaces,
                });
            }
        }
        if next.is_empty() {
            break;
        }
        next.truncate(MAX_PATHS);
        found = next;
    }
    found.retain(|near| near.differences != Differences::default());
    found
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_NAMES).flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

impl Differences {
    /// The fewest differences that explain why two names are not equal. `None` if they are equal or
    /// differ in other ways.
    fn between(one: &str, other: &str) -> Option<Self> {
        let combinations = (1_u8..8).map(|bits| Self {
            spaces: bits & 1 > 0,
            form: bits & 2 > 0,
            case: bits & 4 > 0,
        });
        let mut combinations: Vec<_> = combinations.collect();
        combinations.sort_by_key(|differences| {
            [differences.spaces, differences.form, differences.case]
                .iter()
                .filter(|differs| **differs)
                .count()
        });
        combinations
            .into_iter()
            .find(|differences| one != other && differences.fold(one) == differences.fold(other))
    }

    fn and(self, other: Self) -> Self {
        Self {
            spaces: self.spaces || other.spaces,
            form: self.form || other.form,
            case: self.case || other.case,
        }
    }

    /// The name without these differences.
    fn fold(self, name: &str) -> String {
        let mut name = name.to_owned();
        if self.spaces {
            let plain =
                |c: char| if is_odd_space(c) { c.is_whitespace().then_some(' ') } else { Some(c) };
            name = name.chars().filter_map(plain).collect();
        }
        if self.case {
            name = name.to_lowercase();
        }
        if self.form { name.nfc().collect() } else { name }
    }
}

impl Near {
    fn differences_text(&self) -> String {
        let spaces = self.spaces.iter().map(|space| match space {
            '\u{a0}' => "a no-break space (U+00A0)".to_owned(),
            '\u{202f}' => "a narrow no-break space (U+202F)".to_owned(),
            space if space.is_whitespace() => {
                format!("another space (U+{:04X})", u32::from(*space))
            }
            unseen => format!("an invisible character (U+{:04X})", u32::from(*unseen)),
        });
        let form = self.differences.form.then(|| "the form of its accents (NFC or NFD)".to_owned());
        let case = self.differences.case.then(|| "upper and lower case".to_owned());
        spaces.chain(form).chain(case).collect::<Vec<_>>().join(" and ")
    }
}

/// Whether a character is a non-ASCII space or invisible.
fn is_odd_space(character: char) -> bool {
    !character.is_ascii() && character.is_whitespace()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// A path as a JSON string to be copied into a call, with odd spaces and marks escaped.
fn in_json(path: &Path) -> String {
    let mut shown = String::from("\"");
    for character in path.to_string_lossy().chars() {
        let is_mark = character.general_category_group() == GeneralCategoryGroup::Mark;
        match character {
            '"' | '\\' => shown.extend(['\\', character]),
            character if character.is_control() || is_odd_space(character) || is_mark => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            character => shown.push(character),
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_name_differences_are_reported() {
        let differences = |spaces, form, case| Some(Differences { spaces, form, case });
        for (one, other, expected) in [
            ("a b", "a\u{a0}b", differences(true, false, false)),
            ("a\u{2003}b", "a\u{202f}b", differences(true, false, false)),
            ("ab", "a\u{200b}b", differences(true, false, false)),
            ("\u{e9}", "e\u{301}", differences(false, true, false)),
            ("README", "Readme", differences(false, false, true)),
            ("\u{c9}", "e\u{301}", differences(false, true, true)),
            ("A \u{e9}", "a\u{a0}e\u{301}", differences(true, true, true)),
            ("a", "a", None),
            ("a", "b", None),
            ("a b", "ab", None),
            ("e", "\u{e9}", None),
        ] {
            assert_eq!(Differences::between(one, other), expected, "{one:?} {other:?}");
            assert_eq!(Differences::between(other, one), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_path_is_shown_as_a_json_string() {
        for path in ["a\u{a0}b", "e\u{301}", "\"\\\n", "\u{1d165}", "é 漢"] {
            let shown = in_json(Path::new(path));
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), path, "{shown}");
            assert!(!shown.contains(['\u{a0}', '\u{301}']), "{shown}");
        }
    }
}
