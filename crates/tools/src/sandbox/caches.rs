//! The caches of package managers and compilers. In a sandbox they are folders of the sandbox, so
//! that a process can't plant anything in the user's own caches that would run outside later.

use std::path::{Path, PathBuf};

/// Caches that a variable names: the folder in the sandbox, and the variable.
pub(super) const NAMED: [(&str, &str); 4] = [
    // Used by pip, uv, Go, Deno, Yarn and others.
    ("xdg", "XDG_CACHE_HOME"),
    ("npm", "npm_config_cache"),
    ("go", "GOMODCACHE"),
    ("bun", "BUN_INSTALL_CACHE_DIR"),
];

/// A cache that no variable names. The sandbox's folder takes the place of the user's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replaced {
    /// The folder in the sandbox.
    pub(super) name: &'static str,
    /// The variable with the folder that contains the cache, if there is one.
    variable: Option<&'static str>,
    /// That folder without the variable, relative to the home folder.
    default: &'static str,
    /// The cache in that folder.
    below: &'static str,
}

/// Cargo keeps its programs and settings beside its caches, so `CARGO_HOME` does not change.
pub(super) const REPLACED: [Replaced; 5] = [
    Replaced {
        name: "cargo/registry",
        variable: Some("CARGO_HOME"),
        default: ".cargo",
        below: "registry",
    },
    Replaced { name: "cargo/git", variable: Some("CARGO_HOME"), default: ".cargo", below: "git" },
    Replaced { name: "pnpm", variable: None, default: ".local/share/pnpm", below: "store" },
    Replaced { name: "gradle", variable: None, default: ".gradle", below: "caches" },
    Replaced { name: "maven", variable: None, default: ".m2", below: "repository" },
];

impl Replaced {
    /// The user's folder.
    pub(super) fn real(&self, env: &[(String, String)], home: &Path) -> PathBuf {
        let is_set = |(name, value): &&(String, String)| {
            self.variable == Some(name.as_str()) && value.starts_with('/')
        };
        let base = match env.iter().rev().find(is_set) {
            Some((_, base)) => PathBuf::from(base),
            None => home.join(self.default),
        };
        base.join(self.below)
    }
}
