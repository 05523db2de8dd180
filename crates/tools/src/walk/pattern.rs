//! The path patterns of the search tools.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::error::ToolError;
use crate::place::Place;

/// A pattern for paths below a folder.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    /// The pattern began with `!` and matches all other paths.
    inverted: bool,
    /// The pattern began with `/`, but not with the path of the folder.
    absolute: bool,
}

impl Pattern {
    /// Parses a pattern. `*` and `?` match anything but `/`, `**` matches folders, and `[…]` and
    /// `{…,…}` match a choice. A pattern without `/` matches a name in any folder, and one that
    /// ends in `/` matches everything in that folder. A leading `!` inverts the pattern.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the pattern is invalid.
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        let (inverted, glob) = split_inversion(pattern);
        let absolute = glob.starts_with('/');
        let glob = glob.trim_start_matches("./");
        if glob.is_empty() {
            return Err(ToolError::input("the pattern is empty"));
        }
        if glob.split('/').any(|part| part == "..") {
            return Err(ToolError::input(format!(
                "{pattern}: a pattern can't contain `..`; search another path"
            )));
        }
        let full = match (glob.trim_end_matches('/').contains('/'), glob.ends_with('/')) {
            (false, false) => format!("**/{glob}"),
            (false, true) => format!("**/{glob}**"),
            (true, false) => glob.trim_start_matches('/').to_owned(),
            (true, true) => format!("{}**", glob.trim_start_matches('/')),
        };
        let built = GlobBuilder::new(&full).literal_separator(true).build();
        let glob =
            built.map_err(|error| ToolError::input(format!("{pattern}: {}", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), inverted, absolute })
    }

    /// Parses a pattern that may begin with the path of `folder`.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the pattern is invalid.
    pub(crate) fn below(pattern: &str, folder: &Place) -> Result<Self, ToolError> {
        let (inverted, glob) = split_inversion(pattern);
        let below = |folder: &Path| glob.strip_prefix(folder.to_str()?)?.strip_prefix('/');
        match below(folder.path()).or_else(|| below(folder.given_path())) {
            // The leading `/` keeps a single name from matching in all folders.
            Some(rest) => Self::new(&format!("{}/{rest}", if inverted { "!" } else { "" }))
                .map(|pattern| Self { absolute: false, ..pattern }),
            None => Self::new(pattern),
        }
    }

    /// The likely mistake in a pattern that finds no files.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.absolute.then_some("patterns are relative to the searched folder")
    }

    /// Whether a path relative to the folder matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path) != self.inverted
    }
}

/// Whether a pattern is inverted, and the pattern without its `!`.
fn split_inversion(pattern: &str) -> (bool, &str) {
    pattern.strip_prefix('!').map_or((false, pattern), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_a_slash_match_in_any_folder() {
        for (pattern, path, matches) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "x/y/a.rs", true),
            ("x/*.rs", "x/a.rs", true),
            ("x/*.rs", "x/y/a.rs", false),
            ("x/*.rs", "z/x/a.rs", false),
            ("/*.rs", "a.rs", true),
            ("/*.rs", "x/a.rs", false),
            ("./x/**", "x/y/a.rs", true),
            ("**/*.{rs,toml}", "Cargo.toml", true),
            ("x/", "x/y/a.rs", true),
            ("y/", "x/y/a.rs", true),
            ("!*.rs", "a.rs", false),
            ("!*.rs", "a.c", true),
            ("[ab].rs", "c.rs", false),
            (".env*", "x/.env.local", true),
        ] {
            assert_eq!(
                Pattern::new(pattern).unwrap().matches(Path::new(path)),
                matches,
                "{pattern} {path}"
            );
        }
        for pattern in ["", "!", "../x", "[a", "{a"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
