//! Sources of tools whose set can change while a session lives.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use holdpoint_common::{EndedProcesses, McpServers};

use crate::background::BackgroundJobs;
use crate::process::Processes;
use crate::tool::Tool;
use crate::workspace::Workspace;

/// The parts of a session that a source of tools works with.
#[derive(Clone)]
pub struct SourceContext {
    /// The workspace of the session.
    pub workspace: Arc<Workspace>,
    /// The settings of the session's processes: their supervisor, their sandbox and their grace.
    pub processes: Processes,
    /// Keeps the session from ending while a clone of it exists.
    pub background: BackgroundJobs,
}

/// Tools that are known only when a turn runs, and can change then, such as those of MCP servers.
///
/// A source is created with its session's toolbox, and dropped with it.
pub trait ToolSource: Send {
    /// Brings the tools up to date before a step of a turn, and waits for those that are starting.
    /// If the turn is cut, the future is dropped, and a later call continues.
    fn refresh<'a>(
        &'a mut self,
        context: &'a SourceContext,
    ) -> Pin<Box<dyn Future<Output = Refreshed> + Send + 'a>>;

    /// Reads the content that a prompt names, after a refresh. If the turn is cut, the future is
    /// dropped.
    ///
    /// # Errors
    /// The prompt can't be used without the content. The reason is on one line.
    fn named_content<'a>(
        &'a mut self,
        prompt: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<NamedContent, String>> + Send + 'a>> {
        let _ = prompt;
        Box::pin(std::future::ready(Ok(NamedContent::default())))
    }

    /// Ends what the turn has left running. `cut` says whether the turn was cut. Called at the end of
    /// each turn, after its calls. Takes at most the grace of the processes and one second more.
    /// Returns the count of processes that had to be ended, for the receipt.
    fn end_turn(&mut self, cut: bool) -> Pin<Box<dyn Future<Output = EndedProcesses> + Send + '_>> {
        let _ = cut;
        Box::pin(std::future::ready(EndedProcesses::default()))
    }
}

/// The tools of MCP servers. The servers can be changed.
pub trait McpTools: ToolSource {
    /// Sets the servers. At the next refresh, those that are new or have other settings start, those
    /// that are not named any more end, and the others keep running.
    fn set_servers(&mut self, servers: McpServers);
}

/// Creates the HTTP client for an address, for the MCP servers of one session: with its proxies and
/// certificate authorities. An error is in words for the user.
///
/// The client follows redirects only within the origin of the address, so that headers go to no
/// other server.
#[cfg(feature = "http-clients")]
pub type HttpClients = Arc<dyn Fn(&str) -> Result<reqwest::Client, String> + Send + Sync>;

/// The result of a refresh.
#[derive(Default)]
pub struct Refreshed {
    /// All tools of the source, if they have changed since the last refresh.
    pub tools: Option<Vec<MakeTool>>,
    /// Messages for the user, each on one line, such as the reason why tools are missing.
    pub notices: Vec<String>,
}

/// The content that a prompt names.
#[derive(Debug, Default)]
pub struct NamedContent {
    /// The name, as the prompt has it, and the text of each part.
    pub parts: Vec<(String, String)>,
    /// Messages for the user, each on one line: the reasons why parts are missing.
    pub notices: Vec<String>,
}

/// Creates an instance of a tool for each call that needs one.
pub type MakeTool = Box<dyn FnMut() -> Box<dyn Tool> + Send>;
