//! Patterns of file names, as the search tools take them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::error::ToolError;
use crate::place::Place;

/// A pattern of paths below a folder.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    /// It began with `!`: all but these.
    inverted: bool,
    /// It began with `/`, and not with the folder.
    absolute: bool,
}

impl Pattern {
    /// Reads a pattern: `*` and `?` stand for anything but `/`, `**` for folders, `[…]` and `{…,…}` for a choice.
    /// Without a `/` it is a name, in any folder; with one at its end, all in that folder. After `!`, what does not
    /// match does.
    ///
    /// # Errors
    /// [`ToolError::Input`] if it is none.
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        let (inverted, glob) = inverted(pattern);
        let absolute = glob.starts_with('/');
        let glob = glob.trim_start_matches("./");
        if glob.is_empty() {
            return Err(ToolError::input("the pattern is empty"));
        }
        if glob.split('/').any(|part| part == "..") {
            return Err(ToolError::input(format!("{pattern}: a pattern has no `..`; begin at another path")));
        }
        let full = match (glob.trim_end_matches('/').contains('/'), glob.ends_with('/')) {
            (false, false) => format!("**/{glob}"),
            (false, true) => format!("**/{glob}**"),
            (true, false) => glob.trim_start_matches('/').to_owned(),
            (true, true) => format!("{}**", glob.trim_start_matches('/')),
        };
        let mut glob = GlobBuilder::new(&full);
        let glob = glob.literal_separator(true).build();
        let glob = glob.map_err(|error| ToolError::input(format!("{pattern}: {}", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), inverted, absolute })
    }

    /// The same below a folder, for one that may begin with where that is.
    ///
    /// # Errors
    /// [`ToolError::Input`] if it is none.
    pub(crate) fn below(pattern: &str, folder: &Place) -> Result<Self, ToolError> {
        let (inverted, glob) = inverted(pattern);
        let below = |folder: &Path| glob.strip_prefix(folder.to_str()?)?.strip_prefix('/');
        match below(folder.path()).or_else(|| below(folder.named())) {
            // What is left is one below the folder still, and not in any.
            Some(rest) => Self::new(&format!("{}/{rest}", if inverted { "!" } else { "" }))
                .map(|pattern| Self { absolute: false, ..pattern }),
            None => Self::new(pattern),
        }
    }

    /// What may be wrong with it if nothing is found.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        self.absolute.then_some("patterns of paths are relative to the folder that is searched")
    }

    /// Whether a path below the folder matches.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        self.matcher.is_match(path) != self.inverted
    }
}

/// Whether a pattern stands for all that it does not match, and without the sign for that.
fn inverted(pattern: &str) -> (bool, &str) {
    pattern.strip_prefix('!').map_or((false, pattern), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_itself_in_any_folder() {
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
            assert_eq!(Pattern::new(pattern).unwrap().matches(Path::new(path)), matches, "{pattern} {path}");
        }
        for pattern in ["", "!", "../x", "[a", "{a"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
