//! The command `holdpoint models`.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{
    Catalog, Message, Model, ModelError, ModelEvent, ModelRequest, ProviderSetup,
};

use crate::commands::config::without_password;
use crate::error::CliError;
use crate::runtime::block_on;
use crate::ui::Ui;
use holdpoint_tools::shown::prose_line;

/// The timeout of `--check`.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// Show the configured model providers, and the model that new sessions use
///
/// Keys are read from the configuration or the environment and are never shown. `--check` sends one
/// short request to see whether a model answers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the providers were shown; with --check, the model answers
  1  the model does not answer
  2  the command line or the configuration is wrong, or a key is missing")]
pub(crate) struct Args {
    /// The model to check, as PROVIDER/NAME or PROVIDER; by default, the one that new sessions use
    #[arg(value_name = "MODEL", requires = "check")]
    model: Option<String>,

    /// Send a short request to the model and report whether it answers
    #[arg(long)]
    check: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = folders.config()?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let default = catalog.default_name();
    if args.check {
        let name = args.model.as_deref().unwrap_or(&default.name);
        return check(&*catalog.get(name)?, ui);
    }
    let width =
        catalog.providers().iter().map(|setup| setup.default_model.len()).max().unwrap_or_default();
    for setup in catalog.providers() {
        ui.print(&line(&setup, width))?;
    }
    ui.print(&format!("{:width$}  built in, needs no key\n", "rehearsal"))?;
    ui.print(&format!("\nNew sessions use {} ({}).\n", prose_line(&default.name), default.why))?;
    if let Err(error) = catalog.get(&default.name) {
        ui.print(&format!("This model can't be used yet: {}.\n", prose_line(&error.to_string())))?;
    }
    Ok(0)
}

/// The line of a provider: its default model, its address and the source of its key.
fn line(setup: &ProviderSetup, width: usize) -> String {
    let address = without_password(&setup.base_url);
    let address_source =
        setup.base_url_from.as_ref().map(|from| format!(" ({from})")).unwrap_or_default();
    let key = match (&setup.key_from, setup.provider.key_variable()) {
        (Some(from), _) => format!("key: {from}"),
        // The server at this address may need no key.
        (None, Some(variable)) if setup.base_url_from.is_some() => {
            format!("no key, may not need one ({variable})")
        }
        (None, Some(variable)) => format!("key missing: set {variable}"),
        (None, None) => "needs no key".to_owned(),
    };
    format!("{:width$}  {key}, {}{address_source}\n", setup.default_model, prose_line(&address))
}

/// Sends a short request to a model.
fn check(model: &dyn Model, ui: &mut Ui) -> Result<i32, CliError> {
    let started = Instant::now();
    block_on(async {
        let timed_out = || {
            CliError::failed(format!(
                "{} did not answer in {} s",
                model.name(),
                CHECK_TIMEOUT.as_secs()
            ))
        };
        tokio::time::timeout(CHECK_TIMEOUT, first_output(model))
            .await
            .map_err(|_| timed_out())?
            .map_err(CliError::from)
    })?;
    let name = prose_line(model.name());
    ui.print(&format!("{name} answers ({:.1} s)\n", started.elapsed().as_secs_f64()))?;
    Ok(0)
}

/// Waits for the first output of a model.
async fn first_output(model: &dyn Model) -> Result<(), ModelError> {
    let prompt = Message::User("Reply with the word ok and nothing else.".to_owned());
    let mut events =
        model.stream(&ModelRequest { messages: vec![prompt], ..ModelRequest::default() });
    while let Some(event) = events.next().await {
        if matches!(event?, ModelEvent::Text(_) | ModelEvent::Thought(_) | ModelEvent::OutputLimit)
        {
            return Ok(());
        }
    }
    Err(ModelError::Failed { message: "the answer was empty".into() })
}
