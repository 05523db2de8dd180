//! Protected names: files that start or configure programs without asking the user, that instruct
//! agents, or that hold keys.

use std::path::{Component, Path};

use holdpoint_common::is_default_ignorable;
use unicode_normalization::UnicodeNormalization;

/// Names of folders and files, in lower case, that protect every path with such a part. They start
/// programs, configure them, instruct agents, or grant access.
pub(crate) const PROTECTED: [&str; 129] = [
    // Version control and its hooks, Holdpoint and other agents.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hg",
    ".hgrc",
    ".svn",
    ".jj",
    ".holdpoint",
    ".husky",
    ".githooks",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".windsurf",
    ".roo",
    ".kiro",
    ".continue",
    ".opencode",
    ".amp",
    ".clinerules",
    ".aider.conf.yml",
    ".qwen",
    ".goose",
    ".crush.json",
    "opencode.json",
    // Instructions to agents.
    "agents.md",
    "agents.override.md",
    "agent.md",
    ".agents",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "qwen.md",
    "crush.md",
    "warp.md",
    "replit.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".roorules",
    ".kilocode",
    ".rules",
    ".goosehints",
    ".junie",
    ".augment",
    ".augment-guidelines",
    ".amazonq",
    ".trae",
    ".openhands",
    ".factory",
    // Shells and sessions.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".login",
    ".logout",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".envrc",
    ".xprofile",
    ".xsession",
    ".xinitrc",
    ".config",
    ".tmux.conf",
    ".screenrc",
    ".direnv",
    ".direnvrc",
    // The user's own programs, and Holdpoint's state.
    ".local",
    // Build tools and interpreters.
    ".cargo",
    ".mise.toml",
    ".devcontainer",
    ".devcontainer.json",
    ".pdbrc",
    ".ghci",
    ".rprofile",
    ".irbrc",
    ".pryrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".mvn",
    ".m2",
    ".gradle",
    ".bundle",
    ".gemrc",
    ".condarc",
    ".pip",
    "pip.conf",
    ".pypirc",
    // Editors and debuggers.
    ".vscode",
    ".idea",
    ".ideavimrc",
    ".dir-locals.el",
    ".zed",
    ".vim",
    ".vimrc",
    ".gvimrc",
    ".nvim.lua",
    ".nvimrc",
    ".helix",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".emacs.el",
    ".gdbinit",
    ".lldbinit",
    // Keys and credentials.
    ".ssh",
    ".gnupg",
    ".netrc",
    ".rhosts",
    ".git-credentials",
    ".pgpass",
    ".aws",
    ".docker",
    ".kube",
];

/// Whether a part of `path` is a protected name, or one that some file system treats as equal. For
/// a path below `root`, the parts of `root` itself do not count.
pub(super) fn is_protected(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.components().any(|part| match part {
        // A name that is not UTF-8 equals no protected name.
        Component::Normal(name) => name.to_str().is_some_and(is_protected_name),
        _ => false,
    })
}

/// Whether a name is protected, or one that some file system treats as equal.
pub(crate) fn is_protected_name(name: &str) -> bool {
    let folded = folded(name);
    PROTECTED.contains(&&*folded) || PROTECTED.iter().any(|known| is_short_for(&folded, known))
}

/// Maps names that some file system treats as equal to one name. APFS, HFS+, NTFS, FAT, and folders
/// of ext4 and f2fs with case folding ignore case and Unicode's forms. HFS+, ext4 and f2fs skip
/// invisible characters. FAT and NTFS drop dots and spaces at the end, and NTFS names a stream of a
/// file after a colon.
pub(crate) fn folded(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(file, _)| file);
    // Go through upper case, to fold characters that have no lower case of their own (`ſ`, `ß`),
    // too. No file system folds compatible forms, but folding them does no harm.
    let upper = name.nfkc().flat_map(char::to_uppercase);
    let folded: String =
        upper.flat_map(char::to_lowercase).nfkc().filter(|c| !is_default_ignorable(*c)).collect();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

/// Whether `name` is a short name, such as `GIT~1`, that FAT and NTFS give a file with the name
/// `long`.
fn is_short_for(name: &str, long: &str) -> bool {
    let Some((stem, rest)) = name.split_once('~') else { return false };
    let number = rest.split_once('.').map_or(rest, |(number, _)| number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let long = long.trim_start_matches('.').split('.').next().unwrap_or_default();
    // The stem and the number have up to seven characters. A shorter stem is the whole long name.
    let is_start = !stem.is_empty()
        && stem.len() <= 6
        && long.starts_with(stem)
        && (stem.len() + number.len() == 7 || stem == long);
    // After several names with the same start, the stem is two characters and a hexadecimal number.
    let is_hashed = stem.len() == 6
        && stem.is_char_boundary(2)
        && long.starts_with(&stem[..2])
        && stem[2..].bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number && (is_start || is_hashed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_d5_spellings_that_a_file_system_maps_to_a_protected_name_are_protected() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".ＧＩＴ",
            ".gi\u{200c}t",
            "\u{feff}.git",
            ".git.",
            ".git ",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            "GIT~1",
            "git~12",
            "BASH_P~1",
            "BA1F2C~1",
            "BASH_~10",
            "bash~100",
            "OPENC~10.JSO",
            "bashrc~1",
            "MCP~1.JSO",
            ".ba\u{17f}hrc",
            ".conﬁg",
            ".Vs\u{ad}code",
            ".SSH",
            ".ßh",
            ".gıt",
            ".Cargo",
            ".RPROFILE",
            ".npmrc",
            ".Yarnrc.yml",
            ".mvn",
            ".helix",
            ".nvim.lua",
            "AIDER~1.YML",
            ".git-credentials",
            ".pgpass",
            ".docker",
            ".Kube",
            ".gemrc",
            ".condarc",
            ".pip",
            "pip.conf",
            "Pip.Conf",
            ".pypirc",
            "bunfig.toml",
            ".pnpmfile.cjs",
            ".gradle",
            ".m2",
            ".dir-locals.el",
            ".ideavimrc",
            ".rhosts",
            ".qwen",
            ".goose",
            ".crush.json",
            "opencode.json",
            "OPENCO~1.JSO",
            ".direnvrc",
            ".devcontainer.json",
        ] {
            assert!(is_protected_name(name), "{name:?}");
            assert!(
                is_protected(&Path::new("/w/sub").join(name).join("x"), Path::new("/w")),
                "{name:?}"
            );
        }
    }

    #[test]
    fn m_g5_instruction_files_are_protected_in_every_spelling() {
        for name in [
            "AGENTS.md",
            "agents.md",
            "AGENTS.override.md",
            "AGENTS~1.MD",
            "AGENTS.md.",
            "CLAUDE.md",
            "Claude.MD",
            "CLAUDE.local.md",
            "CLAUDE.md::$DATA",
            "GEMINI.md",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            "copilot-instructions.md",
            "COPILO~1.MD",
            ".goosehints",
        ] {
            assert!(is_protected(&Path::new("/w/sub").join(name), Path::new("/w")), "{name:?}");
        }
    }

    #[test]
    fn t_d5_names_that_only_resemble_a_protected_name_are_not_protected() {
        for name in [
            "git",
            ".github",
            ".gitignore",
            "README.md",
            "agents",
            "claude",
            "claude.txt",
            "myagents.md",
            "agents.md.bak",
            "git~",
            "git~x",
            "gitt~1",
            "ba~1",
            "bash_~1",
            "bas~100",
            "ba1f2g~1",
            "ba1f2~1",
            ".gi.t",
            "x.git",
            "~1",
            ":.git",
            "…",
        ] {
            assert!(!is_protected_name(name), "{name:?}");
        }
        assert!(!is_protected(Path::new("/home/.config/w/x"), Path::new("/home/.config/w")));
        assert!(is_protected(Path::new("/home/.config/v/x"), Path::new("/home/.config/w")));
    }
}
