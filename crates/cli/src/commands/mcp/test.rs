//! The command `holdpoint mcp test`.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};

use holdpoint_common::{McpServers, OpenSession};
use holdpoint_session::Engine;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{MakeTool, McpTools, Refreshed, SourceContext, Supervisor, ToolSource};
use serde::Serialize;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::sessions::{supplies, who};
use crate::tone::Tone;
use crate::ui::Ui;
use crate::{mcp, web};

/// Start or reach a server in the current folder as a session would, and list its tools
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the server has started
  1  the server did not start
  2  the configuration is wrong, or has no such server")]
pub(super) struct TestArgs {
    /// The name of the server
    name: String,

    /// Print the tools as JSON, with their schemas
    #[arg(long)]
    json: bool,
}

/// A tool of a server.
#[derive(Serialize)]
struct Found {
    name: String,
    description: String,
    schema: serde_json::Value,
}

/// The first refresh of a source.
type Seen = (Option<Vec<Found>>, Vec<String>);

/// A source that also sends its first refresh.
struct Watched {
    source: Box<dyn McpTools>,
    seen: Option<Sender<Seen>>,
}

impl ToolSource for Watched {
    fn refresh<'a>(
        &'a mut self,
        context: &'a SourceContext,
    ) -> Pin<Box<dyn Future<Output = Refreshed> + Send + 'a>> {
        Box::pin(async {
            let mut refreshed = self.source.refresh(context).await;
            if let Some(seen) = self.seen.take() {
                let found = |make: &mut MakeTool| {
                    let tool = make();
                    Found {
                        name: tool.name().to_owned(),
                        description: tool.description().to_owned(),
                        schema: tool.schema(),
                    }
                };
                let tools = refreshed.tools.as_mut();
                let tools = tools.map(|tools| tools.iter_mut().map(found).collect());
                // The command may be gone.
                let _ = seen.send((tools, refreshed.notices.clone()));
            }
            refreshed
        })
    }
}

impl McpTools for Watched {
    fn set_servers(&mut self, servers: McpServers) {
        self.source.set_servers(servers);
    }
}

pub(super) fn carry_out(args: &TestArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let mut config = folders.config()?;
    let Some(server) = config.mcp.remove(&args.name) else {
        return Err(CliError::usage(format!(
            "there is no MCP server `{}`",
            prose_line(&args.name)
        ))
        .hint("`holdpoint mcp list` shows the configured servers"));
    };
    config.mcp = McpServers::from([(args.name.clone(), server)]);
    let (sender, seen) = channel();
    let catalog = Catalog::new(&config, |_| None);
    let supplies = supplies(&config, &catalog);
    let browsers = web::browsers(&config, folders)?;
    let source = mcp::source(folders.logins());
    let engine = Engine::builder(catalog)
        .configured(&config, folders)
        .tools(web::tools(&browsers))
        .supervisor(Supervisor::beside_this_program())
        .mcp(move |servers, http| {
            Box::new(Watched { source: source(servers, http), seen: Some(sender.clone()) })
        })
        .start()?;
    let open = OpenSession::in_folder(".").configured(&config).model("rehearsal");
    block_on(async {
        let sessions = engine.sessions(who("mcp")).with_supplies(supplies);
        let session = sessions.open(open).await?;
        let settings = session.snapshot().settings.clone();
        ui.line(Tone::Dim, &format!("sandbox: {}", settings.sandbox.level))?;
        session.prompt("say The server was tested.").await?;
        session.settled().await?;
        Ok::<_, CliError>(())
    })?;
    let (tools, notices) = seen.try_recv().unwrap_or_default();
    for notice in &notices {
        ui.line(Tone::Warning, notice)?;
    }
    let Some(tools) = tools else { return Ok(1) };
    if args.json {
        ui.json(&tools)?;
        return Ok(0);
    }
    let plural = if tools.len() == 1 { "" } else { "s" };
    ui.print(&format!("{} tool{plural}\n", tools.len()))?;
    for Found { name, description, .. } in &tools {
        let first = description.lines().next().unwrap_or_default();
        ui.print(&format!("  {}  {}\n", prose_line(name), prose_line(first)))?;
    }
    Ok(0)
}
