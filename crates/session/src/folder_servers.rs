//! The MCP servers that the folder of a session names. They are started only if the user trusts
//! exactly their content, and always in the sandbox.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use holdpoint_common::{
    FOLDER_MCP_FILE, FolderServers, MAX_FOLDER_MCP_FILE, MAX_MCP_SERVERS, McpServers,
};
use holdpoint_tools::{Refreshed, SourceContext, ToolSource, Workspace};

use crate::folders::{FoldersError, TrustStore, read_untrusted};
use crate::session_env::{McpMaker, SourceMaker, source_maker};

/// Reads the servers of a folder; `None` if it names none.
///
/// # Errors
/// The reason why its file can't be used.
pub fn folder_servers(folder: &Path) -> Result<Option<FolderServers>, String> {
    let text = read_untrusted(&folder.join(FOLDER_MCP_FILE), MAX_FOLDER_MCP_FILE)
        .map_err(|error| error.to_string())?;
    let servers = text.map(|text| FolderServers::parse(&text)).transpose();
    let servers = servers.map_err(|error| error.to_string())?;
    Ok(servers.filter(|servers| !servers.is_empty()))
}

/// The tools of the servers of a client, and of those that its folder names.
pub(crate) struct FolderSource {
    make: McpMaker,
    /// The servers of the client, which come before those of the folder.
    own: McpServers,
    trust: TrustStore,
    inner: Box<dyn ToolSource>,
    progress: Progress,
}

/// The progress of looking at the folder.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    New,
    /// The servers are reported as not started. They start once nothing prevents it any more.
    Untrusted,
    Done,
}

/// The result of a look at the folder.
struct Look {
    progress: Progress,
    servers: McpServers,
    notices: Vec<String>,
}

impl FolderSource {
    /// A maker of sources that also look at the folder, if there is a store of trusted folders.
    pub(crate) fn maker(make: Option<McpMaker>, trust: Option<TrustStore>) -> Option<SourceMaker> {
        let make = make?;
        let Some(trust) = trust else { return Some(source_maker(make)) };
        Some(Arc::new(move |own| Some(Box::new(Self::new(Arc::clone(&make), own, trust.clone())))))
    }

    fn new(make: McpMaker, own: McpServers, trust: TrustStore) -> Self {
        let inner = make(own.clone());
        Self { make, own, trust, inner, progress: Progress::New }
    }

    /// Looks at the folder, unless everything about it is known. Returns messages for the user.
    async fn look(&mut self, workspace: &Workspace) -> Vec<String> {
        if self.progress == Progress::Done {
            return Vec::new();
        }
        let (trust, folder) = (self.trust.clone(), workspace.root().to_owned());
        let (env, has_sandbox) = (workspace.env().to_vec(), workspace.sandbox().is_some());
        let looked =
            tokio::task::spawn_blocking(move || look(&folder, &trust, has_sandbox, &env)).await;
        // A panic is reported by its thread, and leaves the folder without servers.
        let Ok(Look { progress, servers, mut notices }) = looked else { return Vec::new() };
        let is_first = std::mem::replace(&mut self.progress, progress) == Progress::New;
        if self.progress == Progress::Untrusted && !is_first {
            return Vec::new();
        }
        let mut all = self.own.clone();
        for (name, server) in servers {
            if all.contains_key(&name) {
                notices.push(format!(
                    "the MCP server `{name}` of {FOLDER_MCP_FILE} is not started: the session has \
                     another one with this name"
                ));
            } else if all.len() >= MAX_MCP_SERVERS {
                notices.push(format!(
                    "the MCP server `{name}` of {FOLDER_MCP_FILE} is not started: the session has \
                     {MAX_MCP_SERVERS} servers, which is the limit"
                ));
            } else {
                all.insert(name, server);
            }
        }
        if all.len() > self.own.len() {
            self.inner = (self.make)(all);
        }
        notices
    }
}

/// Looks at the servers of a folder.
fn look(folder: &Path, trust: &TrustStore, has_sandbox: bool, env: &[(String, String)]) -> Look {
    let done = |notices| Look { progress: Progress::Done, servers: McpServers::new(), notices };
    let servers = match folder_servers(folder) {
        Ok(Some(servers)) => servers,
        Ok(None) => return done(Vec::new()),
        Err(error) => {
            return done(vec![format!(
                "the MCP servers of this folder are not started: {FOLDER_MCP_FILE}: {error}"
            )]);
        }
    };
    let reason = match is_trusted(trust, folder, &servers) {
        Ok(None) if has_sandbox => {
            let value = |name: &str| Some(env.iter().find(|(known, _)| known == name)?.1.clone());
            let (servers, unusable) = servers.expand(value);
            let notices = unusable.into_iter();
            let notices =
                notices.map(|error| format!("{FOLDER_MCP_FILE}: {error}; it is not started"));
            return Look { progress: Progress::Done, servers, notices: notices.collect() };
        }
        Ok(None) => "they run only in a sandbox, and this session has none".to_owned(),
        Ok(Some(untrusted)) => untrusted,
        Err(error) => error.to_string(),
    };
    let names: Vec<_> = servers.names().collect();
    let notice = format!(
        "the MCP servers of {FOLDER_MCP_FILE} are not started ({}): {reason}",
        names.join(", ")
    );
    Look { progress: Progress::Untrusted, servers: McpServers::new(), notices: vec![notice] }
}

/// The reason why the servers are not trusted; `None` if they are.
fn is_trusted(
    trust: &TrustStore,
    folder: &Path,
    servers: &FolderServers,
) -> Result<Option<String>, FoldersError> {
    let command = format!("`holdpoint trust {}`", folder.display());
    Ok(match trust.get(folder)? {
        Some(trusted) if trusted.content == servers.content() => None,
        Some(_) => Some(format!(
            "they have changed since you trusted them; {command} shows the difference and asks"
        )),
        None => Some(format!("you have not trusted them; {command} shows them and asks")),
    })
}

impl ToolSource for FolderSource {
    fn refresh<'a>(
        &'a mut self,
        context: &'a SourceContext,
    ) -> Pin<Box<dyn Future<Output = Refreshed> + Send + 'a>> {
        Box::pin(async {
            let mut notices = self.look(&context.workspace).await;
            let mut refreshed = self.inner.refresh(context).await;
            notices.append(&mut refreshed.notices);
            Refreshed { notices, ..refreshed }
        })
    }
}
