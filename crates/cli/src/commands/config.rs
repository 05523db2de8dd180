//! `holdpoint config`

use std::collections::BTreeMap;

use clap::Subcommand;
use holdpoint_common::{Config, Provider};
use holdpoint_session::folders::Folders;

use crate::daemon::{Daemon, READS_ANEW};
use crate::error::CliError;
use crate::runtime::runtime;
use crate::ui::{Style, Ui};
use crate::{log, policy, tui, web};

/// Shows the configuration: what holds, where it is, what it can say
///
/// The configuration is one TOML file, and every key in it may be left out:
/// `$XDG_CONFIG_HOME/holdpoint/config.toml` (without XDG_CONFIG_HOME: `~/.config`), or with
/// `--state-dir DIR`: `DIR/config/config.toml`. Nothing in a workspace is ever read as configuration.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Prints the configuration that holds, defaults included, as TOML, keys of providers masked; or what is wrong with
    /// it. Says so where a daemon runs that has read another one
    Show,
    /// Prints where the configuration file is, or would be
    Path,
    /// Prints the JSON Schema of the configuration file, every key documented
    Schema,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match args.what {
        What::Show => {
            let config = folders.config()?;
            check(&config, folders)?;
            let shown = masked(config.clone());
            let path = folders.config_file();
            let state = if path.exists() { "" } else { " (not there: defaults)" };
            let text = toml::to_string(&shown).map_err(CliError::failed)?;
            ui.print(&format!("# {}{state}\n{text}", path.display()))?;
            // One that does not answer has its own command to be told of.
            let daemon = runtime()?.block_on(Daemon::find(folders)).ok().flatten();
            if let Some(outdated) = daemon.and_then(|daemon| daemon.outdated(&config)) {
                ui.line(Style::Warning, &format!("the configuration was {outdated}"))?;
                ui.line(Style::Plain, &format!("hint: {READS_ANEW}"))?;
                ui.flush()?;
            }
        }
        What::Path => ui.print(&format!("{}\n", folders.config_file().display()))?,
        What::Schema => ui.print(&format!("{:#}\n", Config::schema()))?,
    }
    Ok(0)
}

/// Whether all of it can be used: by the screen, by the daemon and by sessions, each of which looks at its own only when
/// it begins.
fn check(config: &Config, folders: &Folders) -> Result<(), CliError> {
    tui::check(config)?;
    log::configured(config.log.as_deref())?;
    web::browsers(config, folders)?;
    policy::of(config.policy, &config.rules).map(drop)
}

/// The configuration without its secrets.
fn masked(config: Config) -> Config {
    let mask = |(name, provider): (String, Provider)| {
        let api_key = provider.api_key.map(|_| "***".to_owned());
        let base_url = provider.base_url.as_deref().map(without_password);
        (name, Provider { api_key, base_url })
    };
    Config { providers: config.providers.into_iter().map(mask).collect::<BTreeMap<_, _>>(), ..config }
}

/// An address without what may be secret in it: a name and password, and what follows a `?` or `#`.
pub(crate) fn without_password(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host_ends);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let text = "[providers.openai]\napi_key = 'sk-1'\nbase_url = 'https://me:pw@host:8/v1?k=@x'";
        let shown = masked(Config::parse(text).unwrap());
        let provider = &shown.providers["openai"];
        assert_eq!(provider.api_key.as_deref(), Some("***"));
        assert_eq!(provider.base_url.as_deref(), Some("https://***@host:8/v1"));
    }
}
