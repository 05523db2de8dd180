//! The MCP servers that the folder of a session names. They run only if the user trusts exactly their
//! content, and programs always in the sandbox. Each turn looks at the folder again.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use holdpoint_common::{
    EndedProcesses, FOLDER_MCP_FILE, FolderServers, MAX_FOLDER_MCP_FILE, MAX_MCP_SERVERS,
    McpOrigin, McpServers,
};
use holdpoint_tools::shown::shell_word;
use holdpoint_tools::{McpTools, NamedContent, Refreshed, SourceContext, ToolSource, Workspace};

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
    /// The servers of the client, which come before those of the folder.
    own: McpServers,
    trust: TrustStore,
    inner: Box<dyn McpTools>,
    /// The result of the last look at the folder.
    seen: Look,
    /// Whether this turn has looked at the folder.
    has_looked: bool,
}

/// The result of a look at the folder: the servers that it adds, and messages for the user.
#[derive(Debug, Default, PartialEq, Eq)]
struct Look {
    servers: McpServers,
    notices: Vec<String>,
}

impl FolderSource {
    /// A maker of sources that also look at the folder, if there is a store of trusted folders.
    pub(crate) fn maker(make: Option<McpMaker>, trust: Option<TrustStore>) -> Option<SourceMaker> {
        let make = make?;
        let Some(trust) = trust else { return Some(source_maker(make)) };
        Some(Arc::new(move |own, http| {
            let (inner, trust) = (make(own.clone(), http), trust.clone());
            let seen = Look::default();
            Some(Box::new(Self { own, trust, inner, seen, has_looked: false }))
        }))
    }

    /// Looks at the folder. If anything is different from the last time, sets the servers, and
    /// returns the messages for the user.
    async fn look(&mut self, workspace: &Workspace) -> Vec<String> {
        let (trust, folder) = (self.trust.clone(), workspace.root().to_owned());
        let (env, has_sandbox) = (workspace.env().to_vec(), workspace.sandbox().is_some());
        let looked = tokio::task::spawn_blocking(move || look(&folder, &trust, has_sandbox, &env));
        // A panic is reported by its thread, and changes nothing.
        let Ok(looked) = looked.await else { return Vec::new() };
        self.has_looked = true;
        if looked == self.seen {
            return Vec::new();
        }
        let mut notices = looked.notices.clone();
        if looked.servers != self.seen.servers {
            let all = self.all(&looked.servers, &mut notices);
            self.inner.set_servers(all);
        }
        self.seen = looked;
        notices
    }

    /// The servers of the client, and those of the folder that can be added to them.
    fn all(&self, servers: &McpServers, notices: &mut Vec<String>) -> McpServers {
        let mut all = self.own.clone();
        for (name, server) in servers {
            let why = if all.contains_key(name) {
                "the session has another one with this name".to_owned()
            } else if all.len() >= MAX_MCP_SERVERS {
                format!("the session has {MAX_MCP_SERVERS} servers, which is the limit")
            } else {
                all.insert(name.clone(), server.clone());
                continue;
            };
            notices.push(format!(
                "the MCP server `{name}` of {FOLDER_MCP_FILE} is not started: {why}"
            ));
        }
        all
    }
}

/// Looks at the servers of a folder.
fn look(folder: &Path, trust: &TrustStore, has_sandbox: bool, env: &[(String, String)]) -> Look {
    let none = |notice| Look { servers: McpServers::new(), notices: vec![notice] };
    let servers = match folder_servers(folder) {
        Ok(Some(servers)) => servers,
        Ok(None) => return Look::default(),
        Err(error) => {
            return none(format!(
                "the MCP servers of this folder are not started: {FOLDER_MCP_FILE}: {error}"
            ));
        }
    };
    let reason = match is_trusted(trust, folder, &servers) {
        Ok(None) if has_sandbox => {
            let value = |name: &str| Some(env.iter().find(|(known, _)| known == name)?.1.clone());
            let (mut servers, unusable) = servers.expand(value);
            let file = folder.join(FOLDER_MCP_FILE).to_string_lossy().into_owned();
            for server in servers.values_mut() {
                server.origin = McpOrigin::File(file.clone());
            }
            let notices = unusable.into_iter();
            let notices =
                notices.map(|error| format!("{FOLDER_MCP_FILE}: {error}; it is not started"));
            return Look { servers, notices: notices.collect() };
        }
        Ok(None) => "they run only in a sandbox, and this session has none".to_owned(),
        Ok(Some(untrusted)) => untrusted,
        Err(error) => error.to_string(),
    };
    let names: Vec<_> = servers.names().collect();
    none(format!(
        "the MCP servers of {FOLDER_MCP_FILE} are not started ({}): {reason}",
        names.join(", ")
    ))
}

/// The reason why the servers are not trusted; `None` if they are.
fn is_trusted(
    trust: &TrustStore,
    folder: &Path,
    servers: &FolderServers,
) -> Result<Option<String>, FoldersError> {
    let command = format!("`holdpoint trust {}`", shell_word(&folder.to_string_lossy()));
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
            let mut notices = match self.has_looked {
                true => Vec::new(),
                false => self.look(&context.workspace).await,
            };
            let mut refreshed = self.inner.refresh(context).await;
            notices.append(&mut refreshed.notices);
            Refreshed { notices, ..refreshed }
        })
    }

    fn named_content<'a>(
        &'a mut self,
        prompt: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<NamedContent, String>> + Send + 'a>> {
        self.inner.named_content(prompt)
    }

    fn end_turn(&mut self, cut: bool) -> Pin<Box<dyn Future<Output = EndedProcesses> + Send + '_>> {
        self.has_looked = false;
        self.inner.end_turn(cut)
    }
}
