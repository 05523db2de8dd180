//! The command `holdpoint config`.

use std::collections::BTreeMap;

use clap::Subcommand;
use holdpoint_common::{Config, ProviderSettings};
use holdpoint_session::folders::Folders;

use crate::daemon::{Daemon, RESTART_HINT};
use crate::error::CliError;
use crate::runtime::runtime;
use crate::tone::Tone;
use crate::ui::Ui;
use crate::{log, mcp, policy, tui, web};

/// Show the configuration, its location or its schema
///
/// The configuration is one TOML file, and every key in it is optional:
/// `$XDG_CONFIG_HOME/holdpoint/config.toml` (without XDG_CONFIG_HOME: `~/.config`), or with
/// `--state-dir DIR`: `DIR/config/config.toml`. Nothing in a workspace is ever read as
/// configuration.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the effective configuration as TOML, with defaults and with its secrets masked, or
    /// its errors; warn if the running daemon has read a different one
    Show,
    /// Print the path of the configuration file, even if the file does not exist
    Path,
    /// Print the JSON Schema of the configuration file, which documents every key
    Schema,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match args.command {
        ConfigCommand::Show => {
            let config = folders.config()?;
            check(&config, folders)?;
            let shown = masked(config.clone());
            let path = folders.config_file();
            let state = if path.exists() { "" } else { " (no such file: defaults)" };
            let text = toml::to_string(&shown).map_err(CliError::failed)?;
            ui.print(&format!("# {}{state}\n{text}", path.display()))?;
            // `holdpoint status` reports a daemon that does not answer.
            let daemon = runtime()?.block_on(Daemon::find(folders)).ok().flatten();
            if let Some(changes) = daemon.and_then(|daemon| daemon.config_changes(&config)) {
                ui.line(Tone::Warning, &format!("the configuration has {changes}"))?;
                ui.line(Tone::Plain, &format!("hint: {RESTART_HINT}"))?;
                ui.flush()?;
            }
        }
        ConfigCommand::Path => ui.print(&format!("{}\n", folders.config_file().display()))?,
        ConfigCommand::Schema => ui.print(&format!("{:#}\n", Config::schema()))?,
    }
    Ok(0)
}

/// Checks the whole configuration. The screen, the daemon and the sessions each check only their
/// own part, when they start.
fn check(config: &Config, folders: &Folders) -> Result<(), CliError> {
    tui::check(config)?;
    log::levels_from_config(config.log.as_deref())?;
    web::browsers(config, folders)?;
    policy::build_policy(config.policy, &config.rules).map(drop)
}

/// The configuration without its secrets.
fn masked(config: Config) -> Config {
    let mask = |(name, provider): (String, ProviderSettings)| {
        let api_key = provider.api_key.map(|_| "***".into());
        let base_url = provider.base_url.as_deref().map(without_password);
        (name, ProviderSettings { api_key, base_url })
    };
    Config {
        providers: config.providers.into_iter().map(mask).collect::<BTreeMap<_, _>>(),
        mcp: mcp::masked(config.mcp),
        ..config
    }
}

/// A URL without the parts that may be secret: the user and password, and everything after a `?` or
/// `#`.
pub(crate) fn without_password(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::ApiKey;

    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let text =
            "[providers.openai]\napi_key = 'sk-1'\nbase_url = 'https://me:pw@host:8/v1?k=@x'";
        let shown = masked(Config::parse(text).unwrap());
        let provider = &shown.providers["openai"];
        assert_eq!(provider.api_key.as_ref().map(ApiKey::expose), Some("***"));
        assert_eq!(provider.base_url.as_deref(), Some("https://***@host:8/v1"));
    }
}
