//! The refresh of an access token, and the end of a login at its authorization server.

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::error::words;
use super::fetch::Fetch;
use super::{Tokens, now};
use crate::login::McpLogin;
use crate::source::HttpClients;

/// The address of a redirect, which a refresh does not use.
const NO_REDIRECT: &str = "http://127.0.0.1/callback";

/// The reason why a token was not refreshed.
#[derive(Debug)]
pub(in crate::mcp) enum RenewalError {
    /// The login has ended: only a new one helps.
    Refused(String),
    /// A later attempt may succeed.
    Failed(String),
}

/// The authorization server of a login, found again.
struct Authority {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    fetch: Arc<Fetch>,
}

impl Authority {
    /// Finds the authorization server that has issued a login. Its refresh token and its client are
    /// for no other one.
    async fn of(login: &McpLogin, clients: &HttpClients) -> Result<Self, RenewalError> {
        let fetch = Fetch::new(&login.url, Arc::clone(clients)).map_err(RenewalError::Failed)?;
        let fetch = Arc::new(fetch);
        let failed = |error| RenewalError::Failed(words(&error, &fetch, &[]));
        let url = login.url.as_str();
        let manager =
            AuthorizationManager::new_with_oauth_http_client(url, Arc::clone(&fetch) as _);
        let mut manager = manager.await.map_err(failed)?;
        let found = manager.resolve_metadata_from_challenge(login.challenge.as_deref()).await;
        let metadata = found.map_err(failed)?.metadata;
        // The metadata can be false or missing for a while.
        if metadata.issuer != login.issuer || metadata.token_endpoint != login.token_endpoint {
            return Err(RenewalError::Failed("its authorization server has changed".to_owned()));
        }
        fetch.check(&metadata.token_endpoint).map_err(RenewalError::Failed)?;
        manager.set_metadata(metadata.clone());
        let client = OAuthClientConfig::new(&login.client_id, NO_REDIRECT);
        let client = match &login.client_secret {
            Some(secret) => client.with_client_secret(secret),
            None => client,
        };
        manager.configure_client(client).map_err(failed)?;
        Ok(Self { manager, metadata, fetch })
    }
}

/// Refreshes the access token of a login.
///
/// # Errors
/// The login has ended, or the refresh failed.
pub(in crate::mcp) async fn refresh(
    login: &McpLogin,
    clients: &HttpClients,
) -> Result<McpLogin, RenewalError> {
    let Authority { mut manager, fetch, .. } = Authority::of(login, clients).await?;
    let store = InMemoryCredentialStore::new();
    let response = serde_json::from_value(json!({
        "access_token": login.access_token,
        "token_type": "bearer",
        "refresh_token": login.refresh_token,
    }));
    let response = response.map_err(|error| RenewalError::Refused(error.to_string()))?;
    let id = login.client_id.clone();
    let stored = StoredCredentials::new(id, Some(response), login.scopes.clone(), None);
    let secrets = secrets(login);
    let failed = |error| match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
            RenewalError::Refused("the authorization server has ended the login".to_owned())
        }
        error => {
            let why = words(&error, &fetch, &secrets);
            // The program is not registered any more: a login registers it again.
            match ["invalid_client", "unauthorized_client"].iter().any(|code| why.contains(code)) {
                true => RenewalError::Refused(why),
                false => RenewalError::Failed(why),
            }
        }
    };
    store.save(stored).await.map_err(failed)?;
    manager.set_credential_store(store);
    // `rmcp` logs parts of the answer.
    let refreshing = manager.refresh_token().with_subscriber(NoSubscriber::new());
    let response = refreshing.await.map_err(failed)?;
    let Tokens { access_token, refresh_token, expires_in, .. } =
        Tokens::of(&response).map_err(RenewalError::Failed)?;
    Ok(McpLogin {
        access_token,
        refresh_token,
        issued_at: now(),
        valid_s: expires_in,
        ..login.clone()
    })
}

fn secrets(login: &McpLogin) -> Vec<String> {
    let McpLogin { access_token, refresh_token, client_secret, .. } = login;
    [access_token].into_iter().chain(refresh_token).chain(client_secret).cloned().collect()
}

/// Revokes the tokens of a login, each one also if others can't be revoked. Returns whether its
/// authorization server can do that.
///
/// # Errors
/// The authorization server can't be reached, or refuses: the reason for each token.
pub async fn revoke(login: &McpLogin, clients: &HttpClients) -> Result<bool, String> {
    let (RenewalError::Refused(why) | RenewalError::Failed(why)) =
        match Authority::of(login, clients).await {
            Ok(authority) => return authority.revoke(login).await,
            Err(error) => error,
        };
    Err(why)
}

impl Authority {
    async fn revoke(&self, login: &McpLogin) -> Result<bool, String> {
        let more = &self.metadata.additional_fields;
        let Some(endpoint) = more.get("revocation_endpoint").and_then(Value::as_str) else {
            return Ok(false);
        };
        let origin = |url: &str| Url::parse(url).map(|url| url.origin());
        if origin(endpoint) != origin(&login.token_endpoint) {
            return Ok(false);
        }
        let methods = more.get("revocation_endpoint_auth_methods_supported");
        let methods = methods.or_else(|| more.get("token_endpoint_auth_methods_supported"));
        let has = |method: &str| {
            methods.and_then(Value::as_array).is_some_and(|all| all.iter().any(|it| it == method))
        };
        let in_body = has("client_secret_post") && !has("client_secret_basic");
        let tokens = [
            ("refresh_token", login.refresh_token.as_ref()),
            ("access_token", Some(&login.access_token)),
        ];
        let mut failures = Vec::new();
        for (kind, token) in tokens {
            let Some(token) = token else { continue };
            let form = [("token", token.as_str()), ("token_type_hint", kind)];
            if let Err(why) = self.send(endpoint, login, in_body, &form).await {
                failures.push(format!("{kind}: {why}"));
            }
        }
        if failures.is_empty() { Ok(true) } else { Err(failures.join("; ")) }
    }

    /// Sends a form in the name of the client of a login. Its secret is `in_body` or in a header.
    async fn send(
        &self,
        endpoint: &str,
        login: &McpLogin,
        in_body: bool,
        form: &[(&str, &str)],
    ) -> Result<(), String> {
        let client = self.fetch.client(endpoint)?;
        let mut form = form.to_vec();
        let mut request = client.post(endpoint);
        match &login.client_secret {
            Some(secret) if !in_body => {
                let id = encoded(&[("", &login.client_id)]);
                let secret = encoded(&[("", secret)]);
                request = request.basic_auth(&id[1..], Some(&secret[1..]));
            }
            secret => {
                form.push(("client_id", &login.client_id));
                form.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
            }
        }
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(encoded(&form))
            .build()
            .map_err(|_| "the request can't be made".to_owned())?;
        let answer = self.fetch.send(&client, request).await?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("the authorization server answered with {}", answer.status())),
        }
    }
}

/// The text of a form.
fn encoded(pairs: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://localhost") else { return String::new() };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}
