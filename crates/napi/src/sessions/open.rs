//! Opening a session.

use std::collections::HashMap;

use holdpoint_common::{AsksMode, Config, PolicyMode, PolicyRules, Rule};
use holdpoint_session::OpenSession;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::Sessions;
use super::supplies::Environment;
use crate::crossing::{promise, read};
use crate::failure::Failure;

/// What a session is opened with. What is left out is as the configuration says, else as usual.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OpenOptions {
    /// The folder it works in; without it, that of this process.
    pub cwd: Option<String>,
    /// What it is called; without it, as the folder is, with a number where that is taken.
    pub name: Option<String>,
    /// The model, as `PROVIDER/NAME` or `PROVIDER`. Without it: the configuration's, else the first provider whose key
    /// is set, else `rehearsal`.
    pub model: Option<String>,
    /// What its tools may do unasked: `ask`.
    #[napi(ts_type = "PolicyMode")]
    pub policy: Option<PolicyMode>,
    /// What is allowed, asked or denied besides.
    pub rules: Option<OpenRules>,
    /// Who answers its asks: `wait`.
    #[napi(ts_type = "AsksMode")]
    pub asks: Option<AsksMode>,
    /// The most steps (requests to the model) one turn may take; 0, as usual, for no limit.
    pub max_steps: Option<u32>,
    /// The most tokens one turn may take; 0, as usual, for no limit.
    #[napi(ts_type = "number")]
    pub max_turn_tokens: Option<u64>,
    /// The environment, of which an allow-list goes to its tools, and where keys of models are found; without it, that of
    /// this process.
    #[napi(ts_type = "Record<string, string | undefined>")]
    pub env: Option<HashMap<String, String>>,
}

/// Rules that say more than the policy: `TOOL` or `TOOL(PATTERN)`, for example `shell(git status)`. Deny beats ask beats
/// allow.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenRules {
    /// What is allowed unasked.
    pub allow: Option<Vec<String>>,
    /// What is asked, even where it would be allowed.
    pub ask: Option<Vec<String>>,
    /// What is denied, unasked.
    pub deny: Option<Vec<String>>,
}

#[napi]
impl Sessions {
    /// Opens a fresh session, and gives its id.
    ///
    /// Rejects with `workspace`, `modelSetup`, `policy`, `nameTaken`, `badName` or `tooManySessions`.
    #[napi(catch_unwind, ts_args_type = "options?: OpenOptions", ts_return_type = "Promise<SessionId>")]
    pub fn session_open<'env>(
        &self,
        env: &'env Env,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        let mut options = read::<Option<OpenOptions>>(env, "options", options).map(Option::unwrap_or_default);
        let given = options.as_mut().ok().and_then(|options| options.env.take());
        let environment = Environment::or_ours(given);
        promise(env, async move {
            let (sessions, config) = place.sessions_with(environment)?;
            let session = place.know(sessions.open(open(&config, options?)?).await?);
            Ok(session.id().clone())
        })
    }
}

fn open(config: &Config, options: OpenOptions) -> Result<OpenSession, Failure> {
    let OpenOptions { cwd, name, model, policy, rules, asks, max_steps, max_turn_tokens, env: _ } = options;
    let cwd = match cwd {
        Some(cwd) => cwd.into(),
        None => std::env::current_dir().map_err(|error| Failure::new("workspace", error))?,
    };
    let open = OpenSession::in_folder(cwd)
        .policy(policy.unwrap_or(config.policy))
        .rules(merged(&config.rules, rules.unwrap_or_default())?)
        .asks(asks.or(config.asks).unwrap_or_default())
        .max_steps(max_steps.unwrap_or(config.max_steps))
        .max_turn_tokens(max_turn_tokens.unwrap_or(config.max_turn_tokens));
    let open = name.into_iter().fold(open, OpenSession::name);
    Ok(model.into_iter().fold(open, OpenSession::model))
}

/// The configuration's rules and these: a rule is never lost.
fn merged(configured: &PolicyRules, OpenRules { allow, ask, deny }: OpenRules) -> Result<PolicyRules, Failure> {
    let mut merged = configured.clone();
    for (rules, given) in [(&mut merged.allow, allow), (&mut merged.ask, ask), (&mut merged.deny, deny)] {
        for rule in given.unwrap_or_default() {
            rules.push(rule.parse::<Rule>().map_err(|error| Failure::new("policy", error))?);
        }
    }
    Ok(merged)
}
