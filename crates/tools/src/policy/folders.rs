//! Where a command may stand by the time it does something.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::place::Place;
use crate::script::Word;

/// How many folders are looked at for one command, and how many different ones it may go to: from each to each.
const MAX_FOLDERS: usize = 32;

/// Where relative paths of a command may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// In the folder it was called in.
    Here,
    /// In it or below: it goes to other folders.
    Below,
    /// That is not known, or outside.
    Anywhere,
}

impl Stands {
    /// For a command that goes to `targets` at some time: to any of them, in any order, as often as it likes.
    pub(super) fn of(targets: &[Option<Word>], root: &Path, home: Option<&str>) -> Self {
        let known: Option<BTreeSet<_>> = targets.iter().map(|word| word.as_ref()?.known(home)).collect();
        match known {
            Some(targets) if targets.is_empty() => Self::Here,
            Some(targets) if stays(&targets, root) => Self::Below,
            _ => Self::Anywhere,
        }
    }
}

fn stays(targets: &BTreeSet<Cow<'_, str>>, root: &Path) -> bool {
    if targets.len() > MAX_FOLDERS {
        return false;
    }
    let mut folders = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        for target in targets.iter().map(AsRef::as_ref) {
            // `..` may be taken before links or after them, and `-` is where it was before.
            let goes_up = Path::new(target).components().any(|part| part == Component::ParentDir);
            match Place::resolve(target, &folder) {
                Ok(place) if place.path().starts_with(root) && !place.varies() && !goes_up && target != "-" => {
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
