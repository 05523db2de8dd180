//! The user's logins at MCP servers. Each has a private file of its own, which no process in a
//! sandbox can reach.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdpoint_tools::{McpLogin, McpLogins};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{FoldersError, private, record};

/// How long to wait for another process that changes a login. Its requests have limits that are
/// shorter together.
const LOCK_LIMIT: Duration = Duration::from_secs(90);

/// The time between two attempts to take a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The most files that are read to find the logins of a server.
const MAX_LOGINS: usize = 10_000;

/// The user's logins at MCP servers. Cheap to clone; every call reads or writes the files.
#[derive(Debug, Clone)]
pub struct LoginStore(PathBuf);

impl LoginStore {
    /// The store in this folder, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// All logins at servers of this name, whatever their addresses.
    ///
    /// # Errors
    /// [`FoldersError`] if a login can't be read, or another user could have changed it.
    pub fn of_server(&self, server: &str) -> Result<Vec<McpLogin>, FoldersError> {
        let failed = |error| FoldersError::Io { path: self.0.clone(), error };
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut logins = Vec::new();
        for entry in entries.take(MAX_LOGINS) {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                logins.extend(record::read::<McpLogin>(&path)?);
            }
        }
        logins.retain(|login| login.server == server);
        logins.sort_by(|one, other| one.url.cmp(&other.url));
        Ok(logins)
    }

    /// Removes a login, if there is one. The caller holds its lock.
    ///
    /// # Errors
    /// [`FoldersError`] if it can't be removed.
    pub fn remove(&self, login: &McpLogin) -> Result<bool, FoldersError> {
        record::remove(&self.path(&login.server, &login.url, "json"))
    }

    fn path(&self, server: &str, url: &str, kind: &str) -> PathBuf {
        let mut hash = blake3::Hasher::new();
        // The name of a server has no zero.
        hash.update(server.as_bytes()).update(b"\0").update(url.as_bytes());
        self.0.join(format!("{}.{kind}", hash.finalize().to_hex()))
    }

    fn take_lock(&self, server: &str, url: &str) -> Result<File, FoldersError> {
        private::make(&self.0)?;
        let path = self.path(server, url, "lock");
        let failed = |error| FoldersError::Io { path: path.clone(), error };
        let file = private::open(&path, OpenOptions::new().read(true).write(true))?;
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_INTERVAL);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let why = "another process has locked it for too long";
                    return Err(failed(io::Error::new(io::ErrorKind::TimedOut, why)));
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

impl McpLogins for LoginStore {
    fn get(&self, server: &str, url: &str) -> Result<Option<McpLogin>, String> {
        let login = record::read::<McpLogin>(&self.path(server, url, "json"));
        let login = login.map_err(|error| format!("its login can't be read: {error}"))?;
        // The tokens of another server or address are never used, wherever their file is.
        Ok(login.filter(|login| login.server == server && login.url == url))
    }

    fn lock(&self, server: &str, url: &str) -> Result<Box<dyn Send>, String> {
        match self.take_lock(server, url) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(format!("its login can't be locked: {error}")),
        }
    }

    fn save(&self, login: &McpLogin) -> Result<(), String> {
        let saved = record::write(&self.path(&login.server, &login.url, "json"), login);
        saved.map_err(|error| format!("its login can't be saved: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(server: &str, url: &str) -> McpLogin {
        McpLogin {
            server: server.into(),
            url: url.into(),
            issuer: None,
            token_endpoint: "https://example.com/token".into(),
            challenge: None,
            client_id: "id".into(),
            client_secret: None,
            access_token: format!("token of {server} at {url}"),
            refresh_token: None,
            issued_at: 1,
            valid_s: None,
            scopes: Vec::new(),
        }
    }

    #[test]
    fn m_h2_t_h3_a_login_is_kept_private_and_is_for_one_name_and_address() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data/logins");
        let store = LoginStore::new(folder.clone());
        assert_eq!(store.get("a", "https://x"), Ok(None));
        assert!(store.of_server("a").unwrap().is_empty());
        let (one, other) = (login("a", "https://x"), login("a", "https://y"));
        for login in [&one, &other, &login("b", "https://x")] {
            let _lock = store.lock(&login.server, &login.url).unwrap();
            store.save(login).unwrap();
        }
        assert_eq!(store.get("a", "https://x"), Ok(Some(one.clone())));
        for (server, url) in [("a", "https://x/"), ("c", "https://x"), ("ahttps://x", "")] {
            assert_eq!(store.get(server, url), Ok(None));
        }
        // A file that was moved to the place of another login.
        std::fs::copy(store.path("a", "https://x", "json"), store.path("c", "https://x", "json"))
            .unwrap();
        assert_eq!(store.get("c", "https://x"), Ok(None));
        std::fs::remove_file(store.path("c", "https://x", "json")).unwrap();
        assert_eq!(store.of_server("a").unwrap(), [one.clone(), other]);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(store.remove(&one).unwrap() && !store.remove(&one).unwrap());
        assert_eq!(store.get("a", "https://x"), Ok(None));
        let path = store.path("b", "https://x", "json");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(store.get("b", "https://x").is_err_and(|why| why.contains("other users")));
    }

    #[test]
    fn m_h2_a_login_is_changed_by_one_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let store = LoginStore::new(home.path().join("logins"));
        let lock = store.lock("a", "https://x").unwrap();
        let path = store.path("a", "https://x", "lock");
        let file = File::open(path).unwrap();
        assert_eq!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK));
        drop(lock);
        // Other logins have locks of their own.
        let _one = store.lock("a", "https://x").unwrap();
        let _other = store.lock("a", "https://y").unwrap();
    }
}
