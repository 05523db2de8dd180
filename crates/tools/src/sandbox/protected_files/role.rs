//! Which files below a workspace are compared.

use crate::place::{PROTECTED, folded, is_protected_name};

/// Folders of dependencies and of build results, which are not searched. Installers put many
/// protected names there.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "venv"];

/// How a folder is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// For protected names.
    Plain,
    /// Like `Plain`, and also as a git directory: a bare repository.
    Bare,
    /// For every file.
    Whole,
    /// For the files of these names. Other programs write the rest in their normal work.
    Parts(&'static [&'static str]),
    /// A git directory: for the files that git reads as configuration, or runs.
    Git,
    /// `modules` or `worktrees` of a git directory: folders that contain git directories.
    GitGroup,
    GitHooks,
    GitInfo,
}

/// The part that an entry of a folder has in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    File { is_git_config: bool },
    Folder(Role),
}

const FILE: Option<Part> = Some(Part::File { is_git_config: false });

impl Role {
    /// The part of an entry; `None` if it has none.
    pub(super) fn part(self, name: &str, is_folder: bool) -> Option<Part> {
        match self {
            Self::Plain => plain(name, is_folder),
            Self::Bare => git(&folded(name), is_folder, false).or_else(|| plain(name, is_folder)),
            Self::Whole if !is_folder => FILE,
            Self::Whole if is_skipped(name) => None,
            Self::Whole => Some(Part::Folder(protected_folder(name).unwrap_or(Self::Whole))),
            Self::Parts(parts) => {
                let name = folded(name);
                let role = if name.ends_with(".d") { Self::Whole } else { self };
                let is_part = parts.contains(&&*name);
                is_part.then_some(if is_folder { Part::Folder(role) } else { FILE? })
            }
            Self::Git => git(&folded(name), is_folder, false),
            Self::GitGroup => git(&folded(name), is_folder, true),
            Self::GitHooks if !is_folder && !name.ends_with(".sample") => FILE,
            Self::GitInfo if !is_folder && folded(name) == "attributes" => FILE,
            Self::GitHooks | Self::GitInfo => None,
        }
    }

    /// Whether the role applies below a protected name.
    pub(super) fn is_protected(self) -> bool {
        !matches!(self, Self::Plain | Self::Bare)
    }
}

/// Whether a folder with these entries is a git directory of another name than `.git`.
pub(super) fn is_bare_repository<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let (mut head, mut data) = (false, 0);
    for name in names {
        head |= name == "HEAD";
        data +=
            usize::from(matches!(name, "objects" | "refs")) + 2 * usize::from(name == "commondir");
    }
    head && data >= 2
}

fn plain(name: &str, is_folder: bool) -> Option<Part> {
    match is_folder {
        true if is_skipped(name) => None,
        true => Some(Part::Folder(protected_folder(name).unwrap_or(Role::Plain))),
        false if is_protected(name) => FILE,
        false => None,
    }
}

fn is_skipped(name: &str) -> bool {
    SKIPPED.contains(&name)
}

/// Like [`is_protected_name`], but faster for most names.
pub(super) fn is_protected(name: &str) -> bool {
    match name.is_ascii() && !name.contains(['~', ':']) && !name.ends_with(['.', ' ']) {
        true => PROTECTED.iter().any(|known| known.eq_ignore_ascii_case(name)),
        false => is_protected_name(name),
    }
}

/// The role of a folder with a protected name.
fn protected_folder(name: &str) -> Option<Role> {
    if !is_protected(name) {
        return None;
    }
    Some(match &*folded(name) {
        ".git" => Role::Git,
        ".hg" => Role::Parts(&["hgrc", "hgrc-not-shared", "sharedpath"]),
        ".jj" => Role::Parts(&["repo", "config.toml", "workspace-config.toml"]),
        ".svn" => Role::Parts(&[]),
        ".cargo" => {
            Role::Parts(&["config", "config.toml", "credentials", "credentials.toml", "env"])
        }
        ".gradle" => {
            Role::Parts(&["gradle.properties", "init.gradle", "init.gradle.kts", "init.d"])
        }
        ".m2" => Role::Parts(&["settings.xml", "settings-security.xml", "toolchains.xml"]),
        _ => Role::Whole,
    })
}

/// The part of an entry of a git directory; in a group, of a folder that may be one.
fn git(name: &str, is_folder: bool, is_group: bool) -> Option<Part> {
    match (name, is_folder) {
        ("config" | "config.worktree", false) => Some(Part::File { is_git_config: true }),
        // A file or a link in the place of one of these folders is compared, too.
        ("commondir" | "hooks" | "info" | "modules" | "worktrees", false) => FILE,
        ("hooks", true) => Some(Part::Folder(Role::GitHooks)),
        ("info", true) => Some(Part::Folder(Role::GitInfo)),
        ("modules" | "worktrees", true) => Some(Part::Folder(Role::GitGroup)),
        // A submodule can have any name, such as `objects`.
        (_, true) if is_group => Some(Part::Folder(Role::GitGroup)),
        _ => None,
    }
}
