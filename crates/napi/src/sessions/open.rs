//! The function that opens a session, and its options.

use std::collections::HashMap;

use holdpoint_common::{
    AgentSettings, AsksMode, Config, PolicyMode, PolicyRules, Rule, SandboxLevel, SessionError,
};
use holdpoint_session::OpenSession;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::Sessions;
use super::environment::Environment;
use crate::convert::{promise, read_argument};
use crate::failure::Failure;

/// The options of `sessionOpen`. The configuration, if it has a value, overrides the default of an
/// option.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OpenOptions {
    /// Workspace of the session. Default: the current folder of this process.
    pub cwd: Option<String>,
    /// Name of the session, unique among live sessions: one line of at most 255 bytes. Default: the
    /// name of the workspace's folder, with a number if it is taken.
    pub name: Option<String>,
    /// Model of the session, as `PROVIDER/NAME` or `PROVIDER`. Default: the model of the
    /// configuration, else the first provider whose key is set, else `rehearsal`.
    pub model: Option<String>,
    /// Agent that the session hosts, instead of a model and tools of its own: a program with its
    /// arguments, or the name of a known agent alone, such as `['opencode']`. `model` is then the id
    /// of one of the agent's models. Default: none.
    pub agent: Option<Vec<String>>,
    /// Mode of the session's policy. Default: `ask`.
    #[napi(ts_type = "PolicyMode")]
    pub policy: Option<PolicyMode>,
    /// Rules of the session's policy, in addition to those of the configuration.
    pub rules: Option<OpenRules>,
    /// Level of the sandbox of tool processes. Default: that of the configuration, or `auto`.
    #[napi(ts_type = "SandboxLevel")]
    pub sandbox: Option<SandboxLevel>,
    /// Asks mode of the session. Default: `wait`.
    #[napi(ts_type = "AsksMode")]
    pub asks: Option<AsksMode>,
    /// Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0.
    pub max_steps: Option<u32>,
    /// Maximum number of tokens that one turn may use; 0 means no limit. The limit is checked
    /// before each request. Default: 0.
    #[napi(ts_type = "number")]
    pub max_turn_tokens: Option<u64>,
    /// Environment of the session. Tools get the variables on an allow-list, and keys of models are
    /// read from it. Default: the environment of this process.
    #[napi(ts_type = "Record<string, string | undefined>")]
    pub env: Option<HashMap<String, String>>,
}

/// Policy rules, written `TOOL` or `TOOL(PATTERN)`, for example `shell(git status)`. They override
/// the mode. Deny overrides ask, and ask overrides allow.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenRules {
    /// Calls that run without an ask.
    pub allow: Option<Vec<String>>,
    /// Calls that are asked about, even if they would be allowed.
    pub ask: Option<Vec<String>>,
    /// Calls that are denied without an ask.
    pub deny: Option<Vec<String>>,
}

#[napi]
impl Sessions {
    /// Opens a new session, and resolves to its id.
    ///
    /// Rejects with `workspace`, `sandbox`, `modelSetup`, `policy`, `nameTaken`, `badName` or
    /// `tooManySessions`.
    #[napi(
        catch_unwind,
        ts_args_type = "options?: OpenOptions",
        ts_return_type = "Promise<SessionId>"
    )]
    pub fn session_open<'env>(
        &self,
        env: &'env Env,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        let mut options = read_argument::<Option<OpenOptions>>(env, "options", options)
            .map(Option::unwrap_or_default);
        let given = options.as_mut().ok().and_then(|options| options.env.take());
        let environment = Environment::or_current(given);
        promise(env, async move {
            let (sessions, config) = client.sessions_with(environment)?;
            let session = client.remember(sessions.open(open_request(&config, options?)?).await?);
            Ok(session.id().clone())
        })
    }
}

fn open_request(config: &Config, options: OpenOptions) -> Result<OpenSession, Failure> {
    let OpenOptions {
        cwd,
        name,
        model,
        agent,
        policy,
        rules,
        sandbox,
        asks,
        max_steps,
        max_turn_tokens,
        env: _,
    } = options;
    let cwd = match cwd {
        Some(cwd) => cwd.into(),
        None => std::env::current_dir().map_err(|error| SessionError::Workspace {
            path: ".".to_owned(),
            message: error.to_string(),
        })?,
    };
    let opened = OpenSession::in_folder(cwd).configured(config);
    let mut request = match agent {
        Some(command) => {
            let agent = AgentSettings::from_command(command).with_model(model);
            OpenSession { name, model: None, agent: Some(agent), ..opened }
        }
        None => OpenSession { name, model, ..opened },
    };
    request.policy = policy.unwrap_or(request.policy);
    if let (Some(level), Some(settings)) = (sandbox, &mut request.sandbox) {
        settings.level = level;
    }
    request.asks = asks.unwrap_or(request.asks);
    request.max_steps = max_steps.unwrap_or(request.max_steps);
    request.max_turn_tokens = max_turn_tokens.unwrap_or(request.max_turn_tokens);
    add_rules(&mut request.rules, rules.unwrap_or_default())?;
    Ok(request)
}

/// Adds the given rules to those of the configuration.
fn add_rules(
    configured: &mut PolicyRules,
    OpenRules { allow, ask, deny }: OpenRules,
) -> Result<(), Failure> {
    for (rules, given) in
        [(&mut configured.allow, allow), (&mut configured.ask, ask), (&mut configured.deny, deny)]
    {
        for rule in given.unwrap_or_default() {
            rules.push(rule.parse::<Rule>().map_err(|error| Failure::new("policy", error))?);
        }
    }
    Ok(())
}
