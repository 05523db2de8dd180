//! Errors of a login in words for the user.

use rmcp::transport::auth::AuthError;

use super::fetch::Fetch;
use crate::mcp::content::cut;
use crate::shown::{prose_line, without_values};

/// The most bytes of an error.
const MAX_TEXT: usize = 500;

/// The words of an error, on one line and without these secrets. `fetch` has the reason if a
/// request failed.
pub(super) fn words(error: &AuthError, fetch: &Fetch, secrets: &[String]) -> String {
    let fault = fetch.fault();
    let text = match error {
        AuthError::DiscoveryRequestFailed { source, .. } => {
            format!("its authorization server can't be found: {source}")
        }
        AuthError::ProtectedResourceMetadataInvalid { url, reason } => {
            format!("its metadata at {url} can't be used: {reason}")
        }
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => format!(
            "none of the authorization servers that it names can be used: {}",
            authorization_servers.join(", ")
        ),
        AuthError::PkceUnsupported => {
            "its authorization server does not protect codes by PKCE (S256)".to_owned()
        }
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => format!(
            "its authorization server should be {expected_issuer}, but answered as \
             {received_issuer}"
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("its authorization server {expected_issuer} does not name itself")
        }
        AuthError::TokenExchangeFailed(why) => {
            format!("no token was issued: {}", fault.as_ref().unwrap_or(why))
        }
        AuthError::TokenRefreshFailed(why) => fault.as_ref().unwrap_or(why).clone(),
        AuthError::RegistrationFailed(why) => format!(
            "its authorization server did not register this program: {}",
            fault.as_ref().unwrap_or(why)
        ),
        error => error.to_string(),
    };
    prose_line(cut(&without_values(&text, secrets), MAX_TEXT)).into_owned()
}
