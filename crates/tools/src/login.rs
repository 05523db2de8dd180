//! Logins at MCP servers, as a store keeps them. A *login* is the result of an OAuth authorization:
//! tokens that one server accepts, for one address.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The store of a user's logins. Clones share it.
pub type McpLoginStore = Arc<dyn McpLogins>;

/// Tokens for one address of an MCP server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpLogin {
    /// The name of the server.
    pub server: String,
    /// The address of the server, with its variables replaced. The tokens go to no other one.
    pub url: String,
    /// The authorization server that has issued the tokens, if it names itself.
    pub issuer: Option<String>,
    /// The address at which the tokens were issued. Refresh tokens go to no other one.
    pub token_endpoint: String,
    /// The header `WWW-Authenticate` with which the server has asked for a login. It can name the
    /// place of the server's metadata.
    pub challenge: Option<String>,
    /// The id of this program at the authorization server.
    pub client_id: String,
    /// The secret of this program there, if it has one.
    pub client_secret: Option<String>,
    /// The token for requests.
    pub access_token: String,
    /// The token for the next access token. `None` if there is none, or it was refused.
    pub refresh_token: Option<String>,
    /// The time at which the access token was issued, in seconds since 1970.
    pub issued_at: u64,
    /// The seconds for which the access token is valid, if that is known.
    pub valid_s: Option<u64>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
}

/// The longest time before the end of an access token at which it is refreshed, in seconds.
const REFRESH_EARLIER_S: u64 = 30;

impl McpLogin {
    /// The time at which the access token expires, in seconds since 1970, if that is known.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        self.valid_s.map(|valid| self.issued_at.saturating_add(valid))
    }

    /// Whether the access token has expired at this time.
    #[must_use]
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires_at().is_some_and(|end| end <= now)
    }

    /// Whether the access token is to be refreshed at this time: it expires within half a minute,
    /// or within half of its validity if that is shorter.
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        let earlier = self.valid_s.map_or(0, |valid| REFRESH_EARLIER_S.min(valid / 2));
        self.has_expired(now.saturating_add(earlier))
    }

    /// Whether requests can be made with it at this time, at least after a refresh.
    #[must_use]
    pub fn is_usable(&self, now: u64) -> bool {
        self.refresh_token.is_some() || !self.has_expired(now)
    }
}

/// Shows no secret.
impl fmt::Debug for McpLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpLogin")
            .field("server", &self.server)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Keeps the logins of a user. Errors are in words for the user. All methods block.
pub trait McpLogins: Send + Sync {
    /// The login at a server of this name and address.
    ///
    /// # Errors
    /// The login can't be read, or another user could have changed it.
    fn get(&self, server: &str, url: &str) -> Result<Option<McpLogin>, String>;

    /// Waits, for a limited time, until no other process changes this login. Dropping the result
    /// lets others change it.
    ///
    /// # Errors
    /// Another process does not finish, or the lock can't be taken.
    fn lock(&self, server: &str, url: &str) -> Result<Box<dyn Send>, String>;

    /// Saves a login in place of an earlier one. The caller holds the lock.
    ///
    /// # Errors
    /// The login can't be saved.
    fn save(&self, login: &McpLogin) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(valid_s: Option<u64>) -> McpLogin {
        McpLogin {
            server: "s".into(),
            url: "https://example.com/mcp".into(),
            issuer: None,
            token_endpoint: "https://example.com/token".into(),
            challenge: None,
            client_id: "id".into(),
            client_secret: Some("the-secret".into()),
            access_token: "the-token".into(),
            refresh_token: None,
            issued_at: 1_000,
            valid_s,
            scopes: Vec::new(),
        }
    }

    #[test]
    fn m_h2_a_token_is_due_before_it_expires() {
        let hour = login(Some(3_600));
        assert!(!hour.is_due(4_569) && hour.is_due(4_570) && !hour.has_expired(4_599));
        assert!(hour.has_expired(4_600) && !hour.is_usable(4_600));
        let refreshable = McpLogin { refresh_token: Some("next".into()), ..hour };
        assert!(refreshable.is_usable(4_600));
        let short = login(Some(10));
        assert!(!short.is_due(1_004) && short.is_due(1_005));
        let unknown = login(None);
        assert!(!unknown.is_due(u64::MAX) && unknown.is_usable(u64::MAX));
        let endless = login(Some(u64::MAX));
        assert!(!endless.is_due(5_000) && !endless.has_expired(5_000));
    }

    #[test]
    fn m_h2_t_h3_a_login_is_printed_without_its_secrets() {
        let shown = format!("{:?}", login(None));
        assert!(!shown.contains("the-") && shown.contains("\"s\""), "{shown}");
    }
}
