//! Patterns of paths: globs, relative to the workspace, absolute, or below the home folder.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::impossible_patterns;
use super::matches::Match;
use crate::place::Place;

/// The paths that a rule matches.
#[derive(Debug)]
pub(super) struct PathRule {
    globs: GlobSet,
    /// Whether the pattern is relative to the workspace.
    relative: bool,
    /// Whether the rule matches every path.
    any: bool,
}

impl PathRule {
    pub(super) fn any() -> Self {
        Self { globs: GlobSet::empty(), relative: false, any: true }
    }

    /// Compiles a pattern. A rule that restricts ignores case on macOS, where file names do.
    pub(super) fn new(pattern: &str, home: Option<&str>, allows: bool) -> Result<Self, String> {
        impossible_patterns::check_path(pattern)?;
        let full = match pattern.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = home.ok_or("`~` needs HOME, which is not set")?;
                format!("{}{rest}", globset::escape(home))
            }
            _ => pattern.strip_prefix("./").unwrap_or(pattern).to_owned(),
        };
        if full.split('/').any(|part| part == "..") {
            return Err("a pattern can't contain `..`: write the resolved path".to_owned());
        }
        if let Some(instead) = corrected_pattern(pattern) {
            return Err(format!("no path matches this form: write `{instead}`"));
        }
        let mut globs = GlobSetBuilder::new();
        // `docs/**` also matches the folder itself.
        for pattern in [Some(full.as_str()), full.strip_suffix("/**")]
            .into_iter()
            .flatten()
            .filter(|pattern| !pattern.is_empty())
        {
            let mut glob = GlobBuilder::new(pattern);
            glob.literal_separator(true).case_insensitive(!allows && cfg!(target_os = "macos"));
            globs.add(glob.build().map_err(|error| error.kind().to_string())?);
        }
        let globs = globs.build().map_err(|error| error.to_string())?;
        Ok(Self { globs, relative: !full.starts_with('/'), any: false })
    }

    /// Whether the rule allows `place`. Only the resolved path counts, so that a link does not
    /// widen a rule.
    pub(super) fn allows(&self, place: &Place, root: &Path) -> bool {
        self.matches(place.path(), root)
    }

    /// Whether the rule allows a folder and everything below it: any name at any depth.
    pub(super) fn allows_below(&self, place: &Place, root: &Path) -> bool {
        let below = place.path().join("\u{fffd}/\u{fffd}");
        self.allows(place, root) && (!place.path().is_dir() || self.matches(&below, root))
    }

    /// Whether the rule restricts `place`. The given path counts as well as the resolved one. With
    /// `below`, the contents of a folder count too.
    pub(super) fn restricts(&self, place: &Place, below: bool, root: &Path) -> Match {
        if self.matches(place.path(), root) || self.matches(place.given_path(), root) {
            Match::Yes
        } else if below && place.path().is_dir() {
            Match::Maybe
        } else {
            Match::No
        }
    }

    /// Whether the rule matches exactly this path.
    pub(super) fn matches(&self, path: &Path, root: &Path) -> bool {
        if self.any {
            return true;
        }
        match path.strip_prefix(root) {
            Ok(inside) if self.relative => self.globs.is_match(inside),
            Err(_) if self.relative => false,
            _ => self.globs.is_match(path),
        }
    }
}

/// The pattern to write instead of `pattern`, if `pattern` matches no path because a part between
/// slashes is empty or `.`, or because it ends in a slash. A trailing slash is taken to mean the
/// folder and everything in it.
fn corrected_pattern(pattern: &str) -> Option<String> {
    let (start, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", pattern.strip_prefix("./").unwrap_or(pattern)),
    };
    let is_redundant = |part: &str| matches!(part, "" | ".");
    if pattern == "/" || !rest.split('/').any(is_redundant) {
        return None;
    }
    let mut parts: Vec<_> = rest.split('/').filter(|part| !is_redundant(part)).collect();
    if rest.rsplit('/').next().is_some_and(is_redundant) && parts.last() != Some(&"**") {
        parts.push("**");
    }
    Some(format!("{start}{}", parts.join("/")))
}
