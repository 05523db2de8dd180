//! The places of this machine, folders on file systems that several machines share, and the homes of
//! sessions.
//!
//! The database has the home of a session as the name of a machine, or as `PLACE:PATH`, with the path
//! of the session's folder in that place. No name contains a colon.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Machine;
use crate::store::Home;

/// How long all links in the folders of places may take to be resolved. A file system may hang.
const RESOLVE_LIMIT: Duration = Duration::from_secs(2);

/// The name of this machine, and its places. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) machine: Arc<str>,
    /// The folders, with the names of their places. Each folder is there without links and, if it
    /// has some, as it was given.
    folders: Arc<[(String, PathBuf)]>,
}

impl Places {
    pub(super) async fn of(machine: &Machine) -> Self {
        let given: Vec<_> = machine
            .places
            .iter()
            .map(|(name, folder)| (name.clone(), PathBuf::from(folder)))
            .collect();
        let folders = if given.is_empty() { given } else { with_resolved(given).await };
        Self { machine: machine.name.as_str().into(), folders: folders.into() }
    }

    /// The home of a session that works in this folder of this machine, as the database has it.
    pub(super) fn home_of(&self, folder: &str) -> String {
        let places = self.folders.iter().filter_map(|(name, place)| {
            let path = Path::new(folder).strip_prefix(place).ok()?;
            Some((place.components().count(), name, path))
        });
        match places.max_by_key(|(depth, ..)| *depth) {
            Some((_, name, path)) => format!("{name}:{}", path.display()),
            None => self.machine.as_ref().to_owned(),
        }
    }

    /// A home of the database, for this machine.
    pub(super) fn read_home(&self, home: &str) -> Home {
        let Some((place, path)) = home.split_once(':') else {
            return match *home == *self.machine {
                true => Home::Here { shared: None },
                false => Home::Elsewhere(home.to_owned()),
            };
        };
        let path = Path::new(path);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        let known = self.folders.iter().find(|(name, _)| is_inside && name == place);
        let folder = known.and_then(|(_, folder)| {
            folder
                .components()
                .chain(path.components())
                .collect::<PathBuf>()
                .into_os_string()
                .into_string()
                .ok()
        });
        match folder {
            Some(folder) => Home::Here { shared: Some(folder) },
            None => Home::Elsewhere(place.to_owned()),
        }
    }
}

/// Adds the folders without links, before the given ones.
async fn with_resolved(given: Vec<(String, PathBuf)>) -> Vec<(String, PathBuf)> {
    let (done, resolved) = oneshot::channel();
    let folders = given.clone();
    let resolve = move || {
        let resolve = |(name, folder): (String, PathBuf)| Some((name, folder.canonicalize().ok()?));
        // The caller may have stopped waiting.
        let _ = done.send(folders.into_iter().filter_map(resolve).collect::<Vec<_>>());
    };
    // A blocking task of the runtime would keep it from ending.
    if let Err(error) = std::thread::Builder::new().spawn(resolve) {
        tracing::warn!(%error, "links in the folders of places can't be resolved");
        return given;
    }
    let mut folders = match tokio::time::timeout(RESOLVE_LIMIT, resolved).await {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let links: Vec<_> = given.into_iter().filter(|place| !folders.contains(place)).collect();
    folders.extend(links);
    folders
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    use super::*;

    async fn places(folders: &[(&str, &str)]) -> Places {
        let places: BTreeMap<_, _> = folders
            .iter()
            .map(|(name, folder)| ((*name).to_owned(), (*folder).to_owned()))
            .collect();
        let machine = Machine {
            name: "m1".to_owned(),
            id: String::new(),
            certificate: String::new(),
            address: None,
            places,
        };
        Places::of(&machine).await
    }

    #[tokio::test]
    async fn a_folder_below_a_place_has_its_home_there() {
        let places =
            places(&[("work", "/srv/work"), ("deep", "/srv/work/deep/"), ("b", "/b")]).await;
        for (folder, home) in [
            ("/srv/work", "work:"),
            ("/srv/work/a b/c", "work:a b/c"),
            ("/srv/work/deep/x", "deep:x"),
            ("/srv/workshop", "m1"),
            ("/srv", "m1"),
        ] {
            assert_eq!(places.home_of(folder), home);
            let shared = (home != "m1").then(|| folder.to_owned());
            assert_eq!(places.read_home(home), Home::Here { shared });
        }
        for (home, name) in [("m2", "m2"), ("none:x", "none"), ("work:../x", "work"), ("b:/x", "b")]
        {
            assert_eq!(places.read_home(home), Home::Elsewhere(name.to_owned()));
        }
    }

    #[tokio::test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    async fn a_place_can_be_a_link() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let places = places(&[("work", &path("link"))]).await;
        assert_eq!(places.home_of(&path("real/x")), "work:x");
        assert_eq!(places.home_of(&path("link/x")), "work:x");
        assert_eq!(places.read_home("work:x"), Home::Here { shared: Some(path("real/x")) });
    }
}
