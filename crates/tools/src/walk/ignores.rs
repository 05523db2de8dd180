//! Ignore files: `.ignore` anywhere, and in a git repository `.gitignore` and `.git/info/exclude`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Entry, Kind};
use crate::place::{OpenParent, Place};

/// The most bytes read of an ignore file.
const MAX_BYTES: u64 = 1024 * 1024;

/// The entries that define the rules of a folder. Only the last two, which are git's, count above
/// the workspace.
const RULE_ENTRIES: [&str; 3] = [".ignore", ".gitignore", ".git"];

/// The ignore rules of a folder and of those above it.
#[derive(Debug)]
pub(super) struct Ignores {
    above: Option<Arc<Ignores>>,
    /// The rules of `.ignore`, which take precedence over git's.
    plain: Gitignore,
    /// The rules of `.gitignore`, then those of `.git/info/exclude`. Both count only in a
    /// repository.
    git: Gitignore,
    exclude: Gitignore,
    /// A repository begins here. The git rules of folders above do not apply.
    is_repository: bool,
}

impl Ignores {
    /// The rules that a folder inherits from those above it. In a repository, these reach up to its
    /// root, even above the workspace. Above the workspace, only git's files are read, and only to
    /// leave files out.
    pub(super) fn above(place: &Place, root: &Path) -> Option<Arc<Self>> {
        // Above this folder, only git's files count.
        let base = if place.is_inside() { root } else { place.path() };
        let exists = |path: PathBuf| path.symlink_metadata().is_ok();
        let repository = base.ancestors().find(|folder| exists(folder.join(".git")));
        let topmost = repository.unwrap_or(base);
        let folders_above: Vec<_> = place
            .path()
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(topmost))
            .collect();
        let mut ignores = None;
        for folder in folders_above.into_iter().rev() {
            let entry = |name: &str| {
                let kind = folder.join(name).symlink_metadata().ok()?.file_type();
                let kind = if kind.is_dir() {
                    Kind::Folder
                } else if kind.is_file() {
                    Kind::File
                } else {
                    Kind::Other
                };
                Some(Entry { name: name.into(), kind, ignored: false })
            };
            let names: &[_] =
                if folder.starts_with(base) { &RULE_ENTRIES } else { &RULE_ENTRIES[1..] };
            let entries: Vec<_> = names.iter().copied().filter_map(entry).collect();
            ignores = Self::below(ignores.as_ref(), folder, &entries, |path| {
                let file = OpenParent::open_existing(&folder.join(path))?.open()?;
                file.map(|(file, _)| file).ok_or_else(|| io::ErrorKind::NotFound.into())
            });
        }
        ignores
    }

    /// The rules of a folder with these entries. `open` opens a path relative to the folder.
    pub(super) fn below(
        above: Option<&Arc<Self>>,
        folder: &Path,
        entries: &[Entry],
        open: impl Fn(&Path) -> io::Result<File>,
    ) -> Option<Arc<Self>> {
        let kind =
            |name: &str| entries.iter().find(|entry| entry.name == name).map(|entry| entry.kind);
        let read = |exists: bool, path: &str| match exists {
            true => open(Path::new(path))
                .map_or_else(|_| Gitignore::empty(), |file| rules(folder, file)),
            false => Gitignore::empty(),
        };
        let has_plain = kind(".ignore") == Some(Kind::File);
        let has_git = kind(".gitignore") == Some(Kind::File);
        let repository = kind(".git");
        if !has_plain && !has_git && repository.is_none() {
            return above.cloned();
        }
        Some(Arc::new(Self {
            above: above.cloned(),
            plain: read(has_plain, ".ignore"),
            git: read(has_git, ".gitignore"),
            exclude: read(repository == Some(Kind::Folder), ".git/info/exclude"),
            is_repository: repository.is_some(),
        }))
    }

    /// Whether an absolute path is ignored. The folders above it must not be ignored.
    pub(super) fn is_ignored(ignores: Option<&Arc<Self>>, path: &Path, is_folder: bool) -> bool {
        let levels = || std::iter::successors(ignores, |level| level.above.as_ref());
        let in_repository = levels().any(|level| level.is_repository);
        // Git's rules count up to the repository's root.
        let mut below_root = true;
        let git = levels().take_while(|level| {
            let counts = below_root;
            below_root &= !level.is_repository;
            counts && in_repository
        });
        let git = git.flat_map(|level| [&level.git, &level.exclude]);
        let verdict = levels().map(|level| &level.plain).chain(git).find_map(|rules| {
            if rules.is_empty() {
                return None;
            }
            let matched = rules.matched(path, is_folder);
            (!matched.is_none()).then(|| matched.is_ignore())
        });
        verdict.unwrap_or(false)
    }
}

/// The rules of an ignore file. Like git, this skips invalid lines.
fn rules(folder: &Path, file: File) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let mut text = Vec::new();
    if file.take(MAX_BYTES).read_to_end(&mut text).is_ok() {
        for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
