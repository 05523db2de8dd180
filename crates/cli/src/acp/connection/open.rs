//! Requests that take the daemon's time: opening, listing and deleting sessions.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    DeleteSessionResponse, Error, ErrorCode, ListSessionsRequest, LoadSessionRequest,
    NewSessionRequest, RequestId, ResumeSessionRequest, SessionId,
};
use holdpoint_common::{McpServers, SessionId as OwnId, check_mcp_servers};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::{AttachFrom, OpenSession, SessionHandle, Sessions};
use serde_json::Value;

use super::{Finished, check_folders, check_system_prompt};
use crate::acp::list::ListPage;
use crate::acp::modes::Models;
use crate::acp::rpc::{Failure, failure};
use crate::acp::servers::servers;
use crate::acp::session::{OpenedSession, Opening};
use crate::error::CliError;
use crate::sessions::{daemon_sessions, discard_unused, supplies};

/// The notice to an editor that brings MCP servers to a session that is live.
const KEEPS_SERVERS: &str = "the session is open already and keeps the MCP servers that it has; \
                             close it and open it again to add those of this editor";

/// The notice to an editor that brings MCP servers to a session that hosts an agent.
const HAS_NO_SERVERS: &str = "the session hosts an agent, which has MCP servers of its own; those \
                              of this editor are not used";

/// The name of this client, which other clients show as the editor.
const CLIENT: &str = "acp";

/// A session to open.
pub(super) enum Open {
    New { cwd: PathBuf, servers: McpServers },
    Saved { id: SessionId, servers: McpServers, from: AttachFrom, opening: Opening },
}

/// A new session.
///
/// # Errors
/// An error for the editor, if the request can't be carried out.
pub(super) fn new(request: NewSessionRequest) -> Result<Open, Error> {
    let NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    check_folders(&cwd, &additional_directories)?;
    check_system_prompt(system_prompt.as_ref())?;
    Ok(Open::New { cwd, servers: servers(mcp_servers)? })
}

/// A session with its history.
///
/// # Errors
/// An error for the editor, if the request can't be carried out.
pub(super) fn load(request: LoadSessionRequest) -> Result<Open, Error> {
    let LoadSessionRequest {
        session_id: id,
        cwd,
        additional_directories,
        mcp_servers,
        system_prompt,
        ..
    } = request;
    check_folders(&cwd, &additional_directories)?;
    check_system_prompt(system_prompt.as_ref())?;
    let servers = servers(mcp_servers)?;
    Ok(Open::Saved { id, servers, from: AttachFrom::start(), opening: Opening::Load })
}

/// A session without its history. With `_meta.holdpoint.cursor`, the events after that number are
/// shown.
///
/// # Errors
/// An error for the editor, if the request can't be carried out.
pub(super) fn resume(request: ResumeSessionRequest) -> Result<Open, Error> {
    let ResumeSessionRequest {
        session_id: id,
        cwd,
        additional_directories,
        mcp_servers,
        system_prompt,
        meta,
        ..
    } = request;
    check_folders(&cwd, &additional_directories)?;
    check_system_prompt(system_prompt.as_ref())?;
    let servers = servers(mcp_servers)?;
    let cursor = meta.as_ref().and_then(|meta| meta.get("holdpoint")?.get("cursor"));
    let from = match cursor.map(Value::as_u64) {
        None => AttachFrom::now(),
        Some(Some(cursor)) => AttachFrom::after(cursor),
        Some(None) => {
            let message = "`_meta.holdpoint.cursor` must be the number of an event";
            return Err(failure(ErrorCode::InvalidParams, message));
        }
    };
    Ok(Open::Saved { id, servers, from, opening: Opening::Resume })
}

impl Open {
    /// The session, if it is not a new one.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::New { .. } => None,
            Self::Saved { id, .. } => Some(id),
        }
    }

    /// Opens the session and attaches to it.
    pub(super) async fn carry_out(self, request: RequestId, folders: Arc<Folders>) -> Finished {
        match self.open(&folders).await {
            Ok(session) => Finished::Opened { request, session: Box::new(session) },
            Err(error) => Finished::Reply { request, result: Err(error.into()) },
        }
    }

    async fn open(self, folders: &Folders) -> Result<OpenedSession, Failure> {
        let brought = match &self {
            Self::New { servers, .. } | Self::Saved { servers, .. } => servers.clone(),
        };
        let brings_servers = !brought.is_empty();
        let Client { sessions, catalog, config } = Client::with_servers(folders, brought).await?;
        let mut servers_remark = None;
        let (handle, from, opening): (SessionHandle, _, _) = match self {
            Self::New { cwd, .. } => {
                let open = OpenSession::in_folder(cwd)
                    .configured(&config)
                    .model(catalog.default_name().name);
                (sessions.open(open).await?, AttachFrom::now(), Opening::New)
            }
            Self::Saved { id, from, opening, .. } => {
                let id = own_id(&id)?;
                if brings_servers && is_live(&sessions, &id).await {
                    servers_remark = Some(KEEPS_SERVERS);
                }
                (sessions.get(id.as_str()).await?, from, opening)
            }
        };
        let attachment = match handle.attach(from).await {
            Ok(attachment) => attachment,
            Err(error) => {
                if opening == Opening::New {
                    discard_unused(&sessions, handle.id()).await;
                }
                return Err(error.into());
            }
        };
        // Without history, the editor continues from the present.
        let after = match from.limit {
            Some(0) => attachment.snapshot().seq,
            _ => from.after,
        };
        if brings_servers && attachment.snapshot().settings.agent.is_some() {
            servers_remark = Some(HAS_NO_SERVERS);
        }
        let models = Models::new(&catalog);
        Ok(OpenedSession { sessions, handle, attachment, models, opening, after, servers_remark })
    }
}

/// Whether the session has an actor, and so keeps its servers.
async fn is_live(sessions: &Sessions, id: &OwnId) -> bool {
    match sessions.reach(id).await {
        Ok(session) => session.attach(AttachFrom::now()).await.is_ok(),
        Err(_) => false,
    }
}

/// The id of a session. A name or a prefix is not enough.
fn own_id(id: &SessionId) -> Result<OwnId, CliError> {
    id.0.parse().map_err(CliError::usage)
}

/// Lists sessions. The page is made from them by the connection, which knows the earlier ones.
pub(super) async fn list(
    request: RequestId,
    folders: Arc<Folders>,
    list: ListSessionsRequest,
) -> Finished {
    let ListSessionsRequest { cwd, cursor, .. } = list;
    let listed = async {
        // The folder may be gone; its sessions are still listed.
        let folder = cwd.map(|cwd| cwd.canonicalize().unwrap_or(cwd));
        let sessions = Client::new(&folders).await?.sessions.list().await?;
        Ok::<_, Failure>((sessions, ListPage { folder, cursor }))
    };
    match listed.await {
        Ok((sessions, page)) => Finished::Listed { request, sessions, page },
        Err(error) => Finished::Reply { request, result: Err(error.into()) },
    }
}

/// Deletes a saved session.
pub(super) async fn delete(request: RequestId, folders: Arc<Folders>, id: SessionId) -> Finished {
    let deleted = async {
        let id = own_id(&id)?;
        Client::new(&folders).await?.sessions.delete(id.as_str()).await?;
        Ok::<_, Failure>(json(DeleteSessionResponse::new()))
    };
    let result = deleted.await.map_err(Error::from);
    Finished::Reply { request, result }
}

fn json(reply: impl serde::Serialize) -> Value {
    serde_json::to_value(reply).unwrap_or_default()
}

/// The daemon's sessions, and the configuration at this moment.
struct Client {
    sessions: Sessions,
    catalog: Catalog,
    config: holdpoint_common::Config,
}

impl Client {
    async fn new(folders: &Folders) -> Result<Self, CliError> {
        Self::with_servers(folders, McpServers::new()).await
    }

    /// Starts the daemon if none runs. Sessions that are opened have these servers, too. One of
    /// them replaces a configured one of the same name. Their texts are taken literally: a project's
    /// settings in an editor must not insert the user's variables.
    async fn with_servers(folders: &Folders, brought: McpServers) -> Result<Self, CliError> {
        let config = folders.config()?;
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        let mut supplies = supplies(&config, &catalog);
        supplies.mcp.extend(brought);
        check_mcp_servers(&supplies.mcp).map_err(|error| CliError::usage(error.to_string()))?;
        let sessions = daemon_sessions(folders, CLIENT, supplies).await?;
        Ok(Self { sessions, catalog, config })
    }
}
