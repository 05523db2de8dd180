//! The login at one server over HTTP: the token for its requests, and the reason if it has none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdpoint_common::{McpOrigin, McpServer};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::http;
use super::oauth::{self, RenewalError};
use crate::login::{McpLogin, McpLoginStore};
use crate::shown::{shell_word, without_values};
use crate::source::HttpClients;

/// How long a refresh may take with all its requests.
const RENEWAL_LIMIT: Duration = Duration::from_secs(60);

/// The most bytes of scopes in a hint.
const MAX_SCOPES: usize = 300;

/// The login at one server. Clones share it.
#[derive(Clone)]
pub(super) struct ServerLogin(Arc<Inner>);

struct Inner {
    name: String,
    url: String,
    /// `None` if there is no store.
    logins: Option<McpLoginStore>,
    clients: HttpClients,
    /// Whether the settings have a key, which is used instead of a login.
    has_key: bool,
    /// The command that logs in.
    command: String,
    /// One refresh at a time. Other processes wait for the lock of the store.
    renewing: tokio::sync::Mutex<()>,
    /// The access token with which the server required another login, if it did.
    refused: Mutex<Option<Refused>>,
}

/// The access token at the time when a server required a login; `None` if there was none.
type Refused = Option<String>;

impl ServerLogin {
    pub(super) fn new(
        name: &str,
        settings: &McpServer,
        logins: Option<McpLoginStore>,
        clients: HttpClients,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            url: settings.url.clone().unwrap_or_default(),
            logins,
            clients,
            has_key: settings.headers.keys().any(|key| key.eq_ignore_ascii_case("authorization")),
            command: command(name, settings),
            renewing: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        }))
    }

    /// The saved login, if the server uses one.
    fn saved(&self) -> Result<Option<McpLogin>, String> {
        let Inner { name, url, logins, has_key, .. } = &*self.0;
        match logins {
            Some(logins) if !has_key => logins.get(name, url),
            _ => Ok(None),
        }
    }

    /// The token for a request; `None` if there is no login, or it has ended. Read again for each
    /// request, so that a login or logout takes effect at once.
    ///
    /// # Errors
    /// The login can't be read, or an expired token can't be refreshed now.
    pub(super) async fn token(&self) -> Result<Option<String>, String> {
        let Some(login) = self.saved()? else { return Ok(None) };
        let McpLogin { access_token, refresh_token, .. } = &login;
        let usable = || (!login.has_expired(oauth::now())).then(|| access_token.clone());
        if !login.is_due(oauth::now()) {
            return Ok(Some(access_token.clone()));
        }
        if refresh_token.is_none() {
            return Ok(usable());
        }
        match (self.renewed(access_token).await, usable()) {
            (Err(_), Some(token)) => Ok(Some(token)),
            (renewed, _) => renewed,
        }
    }

    /// Makes a request with the token, if there is a login. If the server refuses the token, it is
    /// refreshed once. Returns the answer, and the tokens that were sent.
    ///
    /// # Errors
    /// The token can't be had: see [`token`](Self::token).
    pub(super) async fn authorized<A, F: Future<Output = A>>(
        &self,
        request: impl Fn(Option<String>) -> F,
        is_refused: impl Fn(&A) -> bool,
    ) -> Result<(A, Vec<String>), String> {
        let token = self.token().await?;
        let mut sent = Vec::from_iter(token.clone());
        let mut answer = request(token.clone()).await;
        if let Some(old) = token
            && is_refused(&answer)
            && let Some(new) = self.renewed(&old).await?
        {
            sent.push(new.clone());
            answer = request(Some(new)).await;
        }
        Ok((answer, sent))
    }

    /// The token in place of one that has expired, or that the server has refused; `None` if only a
    /// login helps.
    ///
    /// # Errors
    /// The token can't be refreshed now.
    pub(super) async fn renewed(&self, old: &str) -> Result<Option<String>, String> {
        let _renewing = self.0.renewing.lock().await;
        let (this, old) = (self.clone(), old.to_owned());
        let (sender, renewed) = oneshot::channel();
        // A thread of its own: it waits for other processes, and the new token is saved even if the
        // session ends in the meantime.
        let thread = std::thread::Builder::new().name("mcp login".to_owned());
        let spawned = thread.spawn(move || {
            let _ = sender.send(this.renew(&old));
        });
        spawned.map_err(|error| format!("no thread to refresh its login: {error}"))?;
        let renewed = renewed.await.unwrap_or_else(|_| Err("the refresh has ended".to_owned()));
        renewed.map_err(|why| format!("its login can't be refreshed: {why}"))
    }

    /// Refreshes the login, unless another process has done so. Blocks.
    fn renew(&self, old: &str) -> Result<Option<String>, String> {
        let Inner { name, url, logins, clients, .. } = &*self.0;
        let Some(logins) = logins else { return Ok(None) };
        let _lock = logins.lock(name, url)?;
        let Some(login) = logins.get(name, url)? else { return Ok(None) };
        if login.access_token != old {
            return Ok(Some(login.access_token));
        }
        if login.refresh_token.is_none() {
            return Ok(None);
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let refreshing = oauth::refresh(&login, clients);
        let refreshed =
            runtime.block_on(async { tokio::time::timeout(RENEWAL_LIMIT, refreshing).await });
        match refreshed {
            Ok(Ok(login)) => {
                logins.save(&login)?;
                Ok(Some(login.access_token))
            }
            Ok(Err(RenewalError::Refused(why))) => {
                tracing::warn!(server = name, why, "the login at an MCP server has ended");
                // Not tried again.
                logins.save(&McpLogin { refresh_token: None, ..login })?;
                Ok(None)
            }
            Ok(Err(RenewalError::Failed(why))) => Err(why),
            Err(_) => Err(format!("no answer within {} s", RENEWAL_LIMIT.as_secs())),
        }
    }

    /// Forgets that the server has required a login.
    pub(super) fn begin(&self) {
        *self.refused() = None;
    }

    /// Whether the server has required a login, and there is another one now.
    pub(super) fn has_changed(&self) -> bool {
        let Some(before) = self.refused().clone() else { return false };
        self.saved().is_ok_and(|now| now.map(|login| login.access_token) != before)
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, Option<Refused>> {
        self.0.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words for a request that the server has not authorized, with its status and the scopes
    /// that it requires.
    pub(super) fn unauthorized(&self, status: u16, scopes: Option<&str>) -> String {
        let Inner { logins, has_key, command, .. } = &*self.0;
        if *has_key {
            return format!(
                "it does not accept the key in its header `Authorization` (HTTP {status}); check \
                 the key"
            );
        }
        if logins.is_none() {
            return format!(
                "it requires authorization (HTTP {status}); set a key in `headers`, such as \
                 Authorization"
            );
        }
        let saved = self.saved().ok().flatten();
        let is_usable = saved.as_ref().is_some_and(|login| login.is_usable(oauth::now()));
        *self.refused() = Some(saved.map(|login| login.access_token));
        match (status, scopes.and_then(scope_word)) {
            (403, Some(scopes)) => {
                format!("it needs a login with more scopes (hint: {command} --scope {scopes})")
            }
            (403, None) if is_usable => {
                format!("it does not permit this with the login (HTTP 403; hint: {command})")
            }
            _ => format!("it needs a login (hint: {command})"),
        }
    }
}

/// The command that logs in to a server, wherever its settings are. A word that would show a key is
/// left to the user.
fn command(name: &str, settings: &McpServer) -> String {
    let command = format!("holdpoint mcp login {name}");
    let url = settings.url.as_deref().unwrap_or_default();
    let (option, value, left) = match &settings.origin {
        McpOrigin::Configuration => return command,
        McpOrigin::File(path) => ("--mcp", path.as_str(), "FILE"),
        McpOrigin::Client => ("--url", url, "URL"),
    };
    let word = shell_word(value);
    let shown = without_values(&word, &http::secrets(settings));
    let is_exact = shown == word && shlex::split(&word).is_some_and(|words| words == [value]);
    format!("{command} {option} {}", if is_exact { &word } else { left })
}

/// The scopes of a server as a word of a command, if they are scopes and not too long.
fn scope_word(scopes: &str) -> Option<String> {
    let is_scope = |byte: u8| byte == b' ' || byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    let is_usable = !scopes.trim().is_empty() && scopes.len() <= MAX_SCOPES;
    (is_usable && scopes.bytes().all(is_scope)).then(|| shell_word(scopes.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_the_command_for_a_login_names_the_settings() {
        let server = McpServer::address("https://example.com/mcp?a=b");
        let file = |path: &str| McpOrigin::File(path.to_owned());
        for (origin, expected) in [
            (McpOrigin::Configuration, "holdpoint mcp login s"),
            (file("/w/.mcp.json"), "holdpoint mcp login s --mcp /w/.mcp.json"),
            (file("/a b/it's"), "holdpoint mcp login s --mcp \"/a b/it's\""),
            (file("/w/\u{202e}"), "holdpoint mcp login s --mcp FILE"),
            (McpOrigin::Client, "holdpoint mcp login s --url 'https://example.com/mcp?a=b'"),
        ] {
            assert_eq!(command("s", &McpServer { origin, ..server.clone() }), expected);
        }
        let with_key = McpServer::address("https://example.com/mcp?key=a-long-key");
        assert_eq!(command("s", &with_key), "holdpoint mcp login s --url URL");
    }

    #[test]
    fn m_h2_t_h3_scopes_of_a_server_are_one_word_of_a_command() {
        for (scopes, word) in [
            ("files:read", Some("files:read")),
            (" a b ", Some("'a b'")),
            ("x;rm$(y)`z`", Some("'x;rm$(y)`z`'")),
            ("", None),
            (" ", None),
            ("a\nb", None),
            ("a\"b", None),
            ("ä", None),
            (&"x".repeat(400), None),
        ] {
            assert_eq!(scope_word(scopes).as_deref(), word, "{scopes}");
        }
    }
}
