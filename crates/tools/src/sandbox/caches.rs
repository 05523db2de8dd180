//! The caches of package managers and compilers. In a sandbox they are folders of the sandbox, so
//! that a process can't plant anything in the user's own caches that would run outside later.

use std::path::{Path, PathBuf};

/// A cache of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cache {
    /// The folder in the sandbox's own folder of caches.
    pub(super) name: &'static str,
    /// The user's folder: relative to the folder in a variable, or to the home folder.
    place: Place,
    /// The variable that moves the cache, where the user's folder can't be replaced.
    pub(super) variable: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The variable with the base folder.
    variable: Option<&'static str>,
    /// The base folder without that variable, relative to the home folder.
    base: &'static str,
    /// The cache in the base folder; empty for the base folder itself.
    below: &'static str,
}

const fn in_home(base: &'static str) -> Place {
    Place { variable: None, base, below: "" }
}

/// The known caches. Cargo keeps its programs and settings beside its caches, so only the caches
/// are replaced.
pub(super) const CACHES: [Cache; 9] = [
    Cache {
        name: "xdg",
        place: Place { variable: Some("XDG_CACHE_HOME"), base: ".cache", below: "" },
        variable: Some("XDG_CACHE_HOME"),
    },
    Cache {
        name: "cargo/registry",
        place: Place { variable: Some("CARGO_HOME"), base: ".cargo", below: "registry" },
        variable: None,
    },
    Cache {
        name: "cargo/git",
        place: Place { variable: Some("CARGO_HOME"), base: ".cargo", below: "git" },
        variable: None,
    },
    Cache { name: "npm", place: in_home(".npm"), variable: Some("npm_config_cache") },
    Cache {
        name: "go",
        place: Place { variable: Some("GOPATH"), base: "go", below: "pkg/mod" },
        variable: Some("GOMODCACHE"),
    },
    Cache { name: "pnpm", place: in_home(".local/share/pnpm/store"), variable: None },
    Cache {
        name: "bun",
        place: in_home(".bun/install/cache"),
        variable: Some("BUN_INSTALL_CACHE_DIR"),
    },
    Cache { name: "gradle", place: in_home(".gradle/caches"), variable: None },
    Cache { name: "maven", place: in_home(".m2/repository"), variable: None },
];

impl Cache {
    /// The user's folder; `None` if there is no home folder, or the path is not absolute.
    pub(super) fn real(&self, env: &[(String, String)], home: Option<&Path>) -> Option<PathBuf> {
        let Place { variable, base, below } = self.place;
        let set = variable.and_then(|variable| env.iter().rev().find(|(name, _)| name == variable));
        let base = match set {
            Some((_, base)) if !base.is_empty() => PathBuf::from(base),
            _ => home?.join(base),
        };
        Some(base.join(below)).filter(|path| path.is_absolute())
    }
}
