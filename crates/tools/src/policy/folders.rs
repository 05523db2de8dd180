//! The working folders that a command may have when it uses a relative path.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::place::Place;
use crate::script::Word;

/// The most folders that are checked for one command, and the most distinct targets that it
/// may change to. Each target is resolved from each checked folder.
const MAX_FOLDERS: usize = 32;

/// Where the relative paths of a command may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkingFolder {
    /// In the folder in which the command was started.
    Here,
    /// In the folder in which the command was started or below it, because the command changes
    /// folders.
    Below,
    /// In an unknown folder, or outside the workspace.
    Anywhere,
}

impl WorkingFolder {
    /// For a command that may change to any of `targets`, in any order and any number of times.
    pub(super) fn from_targets(targets: &[Option<Word>], root: &Path, home: Option<&str>) -> Self {
        let known: Option<BTreeSet<_>> =
            targets.iter().map(|word| word.as_ref()?.known(home)).collect();
        match known {
            Some(targets) if targets.is_empty() => Self::Here,
            Some(targets) if stays_in_workspace(&targets, root) => Self::Below,
            _ => Self::Anywhere,
        }
    }
}

fn stays_in_workspace(targets: &BTreeSet<Cow<'_, str>>, root: &Path) -> bool {
    if targets.len() > MAX_FOLDERS {
        return false;
    }
    let mut folders = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        for target in targets.iter().map(AsRef::as_ref) {
            // `..` may apply before or after links are resolved, and `-` is the previous folder.
            let goes_up = Path::new(target).components().any(|part| part == Component::ParentDir);
            match Place::resolve(target, &folder) {
                Ok(place)
                    if place.path().starts_with(root)
                        && !place.differs_per_process()
                        && !goes_up
                        && target != "-" =>
                {
                    let path = place.path().to_owned();
                    if !folders.contains(&path) && path.is_dir() {
                        folders.push(path);
                    }
                }
                _ => return false,
            }
        }
        at += 1;
        if folders.len() > MAX_FOLDERS {
            return false;
        }
    }
    true
}
