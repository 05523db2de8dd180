//! The desktops of the most recent clients, for the command of `notify`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdpoint_tools::environment;
use percent_encoding::percent_decode_str;

/// The maximum number of clients remembered. A forgotten client that returns counts as a new one.
const MAX_CLIENTS: usize = 64;

/// Environment variables, as names and values.
pub(super) type Variables = Vec<(String, String)>;

/// The desktops of clients, the latest client last.
pub(super) struct Desktops(Mutex<VecDeque<Client>>);

#[derive(PartialEq)]
struct Client {
    pid: Option<u32>,
    desktop: Variables,
}

impl Client {
    fn has_display(&self) -> bool {
        self.desktop.iter().any(|(name, _)| name.ends_with("DISPLAY"))
    }
}

impl Desktops {
    /// Starts with the daemon's own environment, before any client has connected.
    pub(super) fn new(env: impl IntoIterator<Item = (String, String)>) -> Self {
        let desktops = Self(Mutex::default());
        desktops.add(Client { pid: Some(std::process::id()), desktop: environment::desktop(env) });
        desktops
    }

    /// Records the desktop header of a request by this process. Only a client's first request
    /// counts: if another client has connected since, that one is newer.
    pub(super) fn record(&self, pid: Option<u32>, header: &str) {
        let vars = header.split('&').filter_map(|pair| pair.split_once('='));
        let vars = vars.filter_map(|(name, value)| {
            let value = percent_decode_str(value).decode_utf8().ok()?;
            // An environment variable can't contain NUL.
            (!value.contains('\0')).then(|| (name.to_owned(), value.into_owned()))
        });
        self.add(Client { pid, desktop: environment::desktop(vars) });
    }

    /// The desktop of the latest client with a display. If no client has a display, the desktop of
    /// the latest client, if any.
    pub(super) fn current(&self) -> Option<Variables> {
        let clients = self.lock();
        clients
            .iter()
            .rfind(|client| client.has_display())
            .or_else(|| clients.back())
            .map(|client| client.desktop.clone())
    }

    fn add(&self, client: Client) {
        let mut clients = self.lock();
        if client.desktop.is_empty() || clients.contains(&client) {
            return;
        }
        if clients.len() == MAX_CLIENTS {
            // Forgets the oldest client, but not the one whose desktop is `current`.
            let kept = clients.iter().rposition(Client::has_display);
            clients.remove(usize::from(kept == Some(0)));
        }
        clients.push_back(client);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Client>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(desktops: &Desktops) -> Option<String> {
        desktops.current()?.into_iter().find(|(name, _)| name == "DISPLAY").map(|(_, value)| value)
    }

    #[test]
    fn the_client_that_connected_last_counts() {
        let desktops = Desktops::new([("PATH".to_owned(), "/bin".to_owned())]);
        assert_eq!(desktops.current(), None);
        desktops.record(Some(1), "DISPLAY=%3A1&PATH=/evil");
        assert_eq!(desktops.current().unwrap(), [("DISPLAY".to_owned(), ":1".to_owned())]);
        desktops.record(Some(2), "DISPLAY=%3A2");
        // A later request of an older client changes nothing, and neither does one without a
        // display.
        desktops.record(Some(1), "DISPLAY=%3A1");
        desktops.record(Some(3), "DBUS_SESSION_BUS_ADDRESS=unix%3Apath%3D%2Fbus");
        for empty in ["", "DISPLAY=", "DISPLAY", "XDG_RUNTIME_DIR=%2Frun", "DISPLAY=%00"] {
            desktops.record(Some(4), empty);
        }
        assert_eq!(display(&desktops).as_deref(), Some(":2"));
        // The same process id with another display is another client.
        desktops.record(Some(1), "DISPLAY=%3A4");
        assert_eq!(display(&desktops).as_deref(), Some(":4"));
    }

    #[test]
    fn the_number_of_remembered_clients_is_bounded() {
        let desktops = Desktops::new([("DISPLAY".to_owned(), ":start".to_owned())]);
        for pid in 0..3 * MAX_CLIENTS {
            desktops.record(u32::try_from(pid).ok(), "DISPLAY=%3A1");
        }
        assert_eq!(desktops.lock().len(), MAX_CLIENTS);
    }

    #[test]
    fn clients_without_a_display_do_not_replace_the_latest_display() {
        let desktops = Desktops::new([("DISPLAY".to_owned(), ":1".to_owned())]);
        for pid in 0..3 * MAX_CLIENTS {
            desktops.record(u32::try_from(pid).ok(), "DBUS_SESSION_BUS_ADDRESS=unix%3Apath%3D%2Fb");
        }
        assert_eq!(desktops.lock().len(), MAX_CLIENTS);
        assert_eq!(display(&desktops).as_deref(), Some(":1"));
    }
}
