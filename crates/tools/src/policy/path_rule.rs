//! Patterns of paths: globs, relative to the workspace, absolute, or below the home folder.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::matches::Match;
use super::unmatched;
use crate::place::Place;

/// The paths that a rule speaks of.
#[derive(Debug)]
pub(super) struct PathRule {
    globs: GlobSet,
    /// The pattern is relative to the workspace.
    relative: bool,
    /// It speaks of every path.
    any: bool,
}

impl PathRule {
    /// Every path.
    pub(super) fn any() -> Self {
        Self { globs: GlobSet::empty(), relative: false, any: true }
    }

    /// What restricts does so in any case of letters where file names have none.
    pub(super) fn new(pattern: &str, home: Option<&str>, allows: bool) -> Result<Self, String> {
        unmatched::path(pattern)?;
        let full = match pattern.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = home.ok_or("`~` needs HOME, which is not set")?;
                format!("{}{rest}", globset::escape(home))
            }
            _ => pattern.strip_prefix("./").unwrap_or(pattern).to_owned(),
        };
        if full.split('/').any(|part| part == "..") {
            return Err("a path has no `..`: write where it leads".to_owned());
        }
        if let Some(instead) = tidied(pattern) {
            return Err(format!("no path is written so: write `{instead}`"));
        }
        let mut globs = GlobSetBuilder::new();
        // `docs/**` is also the folder itself.
        for pattern in [Some(full.as_str()), full.strip_suffix("/**")].into_iter().flatten().filter(|it| !it.is_empty())
        {
            let mut glob = GlobBuilder::new(pattern);
            glob.literal_separator(true).case_insensitive(!allows && cfg!(target_os = "macos"));
            globs.add(glob.build().map_err(|error| error.kind().to_string())?);
        }
        let globs = globs.build().map_err(|error| error.to_string())?;
        Ok(Self { globs, relative: !full.starts_with('/'), any: false })
    }

    /// Only where a path leads counts: a link does not widen what is allowed.
    pub(super) fn allows(&self, place: &Place, root: &Path) -> bool {
        self.matches(place.path(), root)
    }

    /// The same for a folder with all that is below it: any name at any depth.
    pub(super) fn allows_below(&self, place: &Place, root: &Path) -> bool {
        let below = place.path().join("\u{fffd}/\u{fffd}");
        self.allows(place, root) && (!place.path().is_dir() || self.matches(&below, root))
    }

    /// What a path is called counts as much as where it leads. `below`: so does what is in a folder.
    pub(super) fn restricts(&self, place: &Place, below: bool, root: &Path) -> Match {
        if self.matches(place.path(), root) || self.matches(place.named(), root) {
            Match::Yes
        } else if below && place.path().is_dir() {
            Match::Maybe
        } else {
            Match::No
        }
    }

    /// Whether it speaks of this very path.
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

/// What to write for a pattern that no path can match: one with `.` or nothing between slashes, or a slash at its end,
/// which is meant to be a folder with all that is in it.
fn tidied(pattern: &str) -> Option<String> {
    let (start, rest) = match pattern.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => ("", pattern.strip_prefix("./").unwrap_or(pattern)),
    };
    let is_none = |part: &str| matches!(part, "" | ".");
    if pattern == "/" || !rest.split('/').any(is_none) {
        return None;
    }
    let mut parts: Vec<_> = rest.split('/').filter(|part| !is_none(part)).collect();
    if rest.rsplit('/').next().is_some_and(is_none) && parts.last() != Some(&"**") {
        parts.push("**");
    }
    Some(format!("{start}{}", parts.join("/")))
}
