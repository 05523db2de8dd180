//! Logins at servers over HTTP, by OAuth 2.1. `rmcp` finds the authorization server, registers this
//! program, and exchanges codes and tokens; this module limits its requests and keeps it to addresses
//! that are safe.

mod authorizing;
mod error;
mod fetch;
mod renewal;

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderValue;
use rmcp::transport::auth::OAuthTokenResponse;
use serde::Deserialize;

pub use authorizing::{Authorizing, Code, LoginRequest, Redirect};
pub use renewal::revoke;
pub(super) use renewal::{RenewalError, refresh};

/// The most bytes of a token.
const MAX_TOKEN: usize = 16 * 1024;

/// Now, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Tokens as an authorization server issues them.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

impl Tokens {
    /// # Errors
    /// A token is of another type, or can't be sent.
    fn of(response: &OAuthTokenResponse) -> Result<Self, String> {
        let json = serde_json::to_value(response);
        let tokens: Self = json
            .and_then(serde_json::from_value)
            .map_err(|_| "the authorization server's tokens can't be used".to_owned())?;
        if !tokens.token_type.eq_ignore_ascii_case("bearer") {
            return Err("the authorization server's token is not of the type Bearer".to_owned());
        }
        let all = [Some(&tokens.access_token), tokens.refresh_token.as_ref()];
        if all.iter().flatten().any(|token| token.len() > MAX_TOKEN) {
            return Err(format!(
                "the authorization server's token has more than {MAX_TOKEN} bytes, which is the \
                 limit"
            ));
        }
        match HeaderValue::from_str(&tokens.access_token) {
            Ok(_) if !tokens.access_token.is_empty() => Ok(tokens),
            _ => Err("the authorization server's token can't be sent in a header".to_owned()),
        }
    }
}
