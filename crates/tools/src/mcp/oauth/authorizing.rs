//! A login: the page that the user opens, the redirect of the browser, and the tokens.

use std::sync::Arc;

use holdpoint_common::McpServer;
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::error::words;
use super::fetch::{Answer, Fetch};
use super::{Tokens, now};
use crate::login::McpLogin;
use crate::mcp::content::cut;
use crate::mcp::http;
use crate::shown::prose_line;
use crate::source::HttpClients;

/// The name under which this program is registered.
const CLIENT_NAME: &str = "Holdpoint";

/// The most bytes of a header `WWW-Authenticate`, and of the address of a redirect.
const MAX_HEADER: usize = 8 * 1024;

/// The most bytes of a reason that an authorization server gives.
const MAX_REASON: usize = 300;

/// A request without effects, which a server that needs a login refuses.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

/// A server to log in to.
pub struct LoginRequest<'a> {
    /// The name of the server.
    pub name: &'a str,
    /// The settings of the server, with its variables replaced.
    pub settings: &'a McpServer,
    /// The address that the browser is redirected to.
    pub redirect: &'a str,
    /// The scopes to ask for. If there are none, the server chooses them.
    pub scopes: Vec<String>,
    /// Creates the HTTP clients.
    pub clients: HttpClients,
}

/// A login that waits for the user's consent.
pub struct Authorizing {
    manager: AuthorizationManager,
    fetch: Arc<Fetch>,
    name: String,
    url: String,
    challenge: Option<String>,
    issuer: Option<String>,
    token_endpoint: String,
    client: OAuthClientConfig,
    redirect: Url,
    page: String,
    /// The value that only a redirect of this login has.
    state: String,
}

/// The code of a redirect.
pub struct Code {
    code: String,
    issuer: Option<String>,
}

/// The address that a browser was redirected to.
pub enum Redirect {
    /// The user has agreed.
    Code(Code),
    /// The user or the authorization server has refused, for this reason.
    Refused(String),
    /// The address does not belong to this login, for this reason.
    Foreign(&'static str),
}

impl Authorizing {
    /// Finds the authorization server of a server, and registers this program there unless the
    /// settings have a client.
    ///
    /// # Errors
    /// The reason why a login is not possible, as a sentence about the server.
    pub async fn begin(request: LoginRequest<'_>) -> Result<Self, String> {
        let LoginRequest { name, settings, redirect, mut scopes, clients } = request;
        let url = settings.url.clone().unwrap_or_default();
        let headers: HeaderMap = http::headers(settings)?.into_iter().collect();
        if headers.contains_key(AUTHORIZATION) {
            return Err("its `headers` have a key, `Authorization`, which is used instead of a \
                        login"
                .to_owned());
        }
        let fetch = Arc::new(Fetch::new(&url, clients)?);
        let mut secrets = http::secrets(settings);
        secrets.extend(settings.client_secret.clone());
        let error = |error| words(&error, &fetch, &secrets);
        let (asks, challenge) = probe(&fetch, settings, &url, headers).await?;
        let manager =
            AuthorizationManager::new_with_oauth_http_client(&url, Arc::clone(&fetch) as _);
        let mut manager = manager.await.map_err(error)?;
        let found = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
        let found = found.map_err(error)?;
        if found.source == AuthorizationMetadataSource::LegacyEndpointFallback && !asks {
            return Err("it does not ask for a login".to_owned());
        }
        let metadata = found.metadata;
        check_endpoints(&metadata, &fetch)?;
        let (issuer, token_endpoint) = (metadata.issuer.clone(), metadata.token_endpoint.clone());
        fetch.check_source(issuer.as_deref())?;
        let can_register = metadata.registration_endpoint.is_some();
        let has_offline = metadata.scopes_supported.iter().flatten().any(|it| it == OFFLINE);
        manager.set_metadata(metadata);
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        } else if has_offline && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let client = match &settings.client_id {
            Some(id) => {
                let client = OAuthClientConfig::new(id, redirect);
                let client = match &settings.client_secret {
                    Some(secret) => client.with_client_secret(secret),
                    None => client,
                };
                manager.configure_client(client.clone()).map_err(error)?;
                client
            }
            None if !can_register => {
                return Err("its authorization server does not register programs by itself; \
                            register Holdpoint there, and set `client_id`"
                    .to_owned());
            }
            None => manager.register_client(CLIENT_NAME, redirect, &scopes).await.map_err(error)?,
        };
        let page = manager.get_authorization_url(&scopes).await.map_err(error)?;
        let state = Url::parse(&page).ok().and_then(|page| value(&page, "state"));
        let state = state.ok_or("its authorization server's address can't be used")?;
        let redirect = Url::parse(redirect).map_err(|error| error.to_string())?;
        let name = name.to_owned();
        Ok(Self {
            manager,
            fetch,
            name,
            url,
            challenge,
            issuer,
            token_endpoint,
            client,
            redirect,
            page,
            state,
        })
    }

    /// The address of the page on which the user agrees.
    #[must_use]
    pub fn page(&self) -> &str {
        &self.page
    }

    /// Reads an address that a browser was redirected to, or its path and query.
    #[must_use]
    pub fn read(&self, given: &str) -> Redirect {
        let given = given.trim();
        let url = match self.redirect.join(given) {
            Ok(url) if given.len() <= MAX_HEADER => url,
            _ => return Redirect::Foreign("it is not an address"),
        };
        if url.path() != self.redirect.path() {
            return Redirect::Foreign("it is another address");
        }
        if value(&url, "state").as_ref() != Some(&self.state) {
            return Redirect::Foreign("it is not of this login: its `state` is another one");
        }
        if let Some(error) = value(&url, "error") {
            let more = value(&url, "error_description").map(|more| format!(": {more}"));
            let why = format!("{error}{}", more.unwrap_or_default());
            return Redirect::Refused(prose_line(cut(&why, MAX_REASON)).into_owned());
        }
        match value(&url, "code") {
            Some(code) => Redirect::Code(Code { code, issuer: value(&url, "iss") }),
            None => Redirect::Foreign("it has no `code`"),
        }
    }

    /// Exchanges a code for tokens.
    ///
    /// # Errors
    /// The code is of another authorization server, or no token was issued for it.
    pub async fn finish(&self, code: Code) -> Result<McpLogin, String> {
        let Code { code, issuer } = code;
        let exchanging =
            self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref());
        // `rmcp` logs the code and parts of the answer.
        let response = exchanging.with_subscriber(NoSubscriber::new()).await.map_err(|error| {
            let secrets: Vec<_> =
                self.client.client_secret.iter().cloned().chain([code.clone()]).collect();
            words(&error, &self.fetch, &secrets)
        })?;
        let Tokens { access_token, refresh_token, expires_in, .. } = Tokens::of(&response)?;
        Ok(McpLogin {
            server: self.name.clone(),
            url: self.url.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.token_endpoint.clone(),
            challenge: self.challenge.clone(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            access_token,
            refresh_token,
            issued_at: now(),
            valid_s: expires_in,
            scopes: self.manager.get_current_scopes().await,
        })
    }
}

/// The scope for a refresh token.
const OFFLINE: &str = "offline_access";

/// A value of the query of an address.
fn value(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Asks the server for something that needs a login. Returns whether it asks for one, and its
/// challenge.
async fn probe(
    fetch: &Fetch,
    settings: &McpServer,
    url: &str,
    headers: HeaderMap,
) -> Result<(bool, Option<String>), String> {
    let client = fetch.client(url)?;
    let request = match settings.sse {
        true => client.get(url).header(ACCEPT, "text/event-stream"),
        false => client
            .post(url)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(PROBE),
    };
    let request = request.headers(headers).build();
    let request = request.map_err(|_| "its address can't be used".to_owned())?;
    let answer = fetch.send(&client, request).await?;
    Ok((answer.status().as_u16() == 401, challenge(&answer)))
}

/// The challenge of an answer: the one that names metadata, or else the first.
fn challenge(answer: &Answer) -> Option<String> {
    let all = answer.headers().get_all(WWW_AUTHENTICATE).iter();
    let mut all = all.filter_map(|value| value.to_str().ok()).filter(|it| it.len() <= MAX_HEADER);
    let first = all.next()?;
    let names_metadata = |text: &&str| text.to_ascii_lowercase().contains("resource_metadata=");
    let chosen =
        if names_metadata(&first) { first } else { all.find(names_metadata).unwrap_or(first) };
    Some(chosen.to_owned())
}

/// Checks the addresses of an authorization server.
fn check_endpoints(metadata: &AuthorizationMetadata, fetch: &Fetch) -> Result<(), String> {
    let AuthorizationMetadata {
        authorization_endpoint, token_endpoint, registration_endpoint, ..
    } = metadata;
    let required = [authorization_endpoint, token_endpoint];
    for endpoint in required.into_iter().chain(registration_endpoint) {
        fetch.check(endpoint)?;
    }
    Ok(())
}
