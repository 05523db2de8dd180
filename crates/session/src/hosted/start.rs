//! The start of an agent: its program, and the messages until it can take a prompt.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{AgentSettings, AgentStart};
use holdpoint_tools::{ProcessSpec, SourceContext, environment};

use super::connection::{Connection, RpcError};
use super::link::Link;
use super::protocol::{self, AUTH_REQUIRED, Introduction, METHOD_NOT_FOUND, method};

/// How long an agent may take until it is ready.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts the agent, and opens a session of its own in the workspace. If this is dropped, the link
/// has a program that is not ready.
///
/// # Errors
/// The reason why the agent does not run.
pub(super) async fn start(
    link: &mut Link,
    settings: &AgentSettings,
    context: &SourceContext,
) -> Result<(), String> {
    let connection = spawn(settings, context).await?;
    link.started(connection, Arc::clone(&context.workspace));
    let why = match tokio::time::timeout(LIMIT, introduce(link, context)).await {
        Ok(Ok((session, how))) => {
            link.ready(session, how);
            return Ok(());
        }
        Ok(Err(why)) => why,
        Err(_) => format!("it was not ready within {} s", LIMIT.as_secs()),
    };
    let (why, _) = link.end(why).await;
    Err(why)
}

async fn spawn(settings: &AgentSettings, context: &SourceContext) -> Result<Connection, String> {
    let root = context.workspace.root();
    let [program, args @ ..] = &settings.command[..] else {
        return Err("its command is empty".to_owned());
    };
    let spec = ProcessSpec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: root.to_owned(),
        // Programs of the workspace are not found by their name.
        env: environment::outside(context.workspace.env(), root),
    };
    // An interrupt waits for half of the grace before the program is ended.
    let processes = context.processes.with_same_settings();
    let processes = processes.with_grace(processes.grace() / 2);
    let spawning = processes.clone();
    let spawned = tokio::task::spawn_blocking(move || spawning.spawn_duplex(spec)).await;
    let duplex = spawned.map_err(|error| format!("can't be started: {error}"))?;
    let duplex = duplex.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the program `{program}` is not found: {error}"),
        _ => format!("the program `{program}` can't be started: {error}"),
    })?;
    Connection::new(duplex, processes, context.background.clone())
        .map_err(|error| format!("its streams can't be used: {error}"))
}

/// Exchanges the first messages. Returns the id of the agent's session, which is the one from before
/// if the agent can continue it.
async fn introduce(
    link: &mut Link,
    context: &SourceContext,
) -> Result<(String, AgentStart), String> {
    let reply = link.request(method::INITIALIZE, protocol::initialize()).await?;
    let reply = reply.map_err(|error| reported(&error))?;
    let introduction = protocol::introduction(&reply)?;
    let folder = context.workspace.root();
    if let Some(session) = link.own_session().map(str::to_owned) {
        let (how, reply) = if introduction.resumes {
            let params = protocol::resume_session(&session, folder);
            (AgentStart::Resumed, link.request(method::RESUME, params).await?)
        } else if introduction.loads {
            let params = protocol::load_session(&session, folder);
            (AgentStart::Loaded, link.request(method::LOAD, params).await?)
        } else {
            let error = RpcError { code: METHOD_NOT_FOUND, message: String::new() };
            (AgentStart::Replayed, Err(error))
        };
        match reply {
            Ok(_) => return Ok((session, how)),
            Err(error) => tracing::info!(?error, "an agent can't continue its session"),
        }
    }
    let reply = link.request(method::NEW, protocol::new_session(folder)).await?;
    let reply = reply.map_err(|error| login_error(&introduction, &error))?;
    Ok((protocol::new_session_id(&reply)?, AgentStart::New))
}

fn reported(error: &RpcError) -> String {
    format!("it reported: {}", error.message)
}

fn login_error(introduction: &Introduction, error: &RpcError) -> String {
    let why = reported(error);
    match (error.code, &introduction.logins[..]) {
        (AUTH_REQUIRED, []) => format!("{why} (hint: log in with the agent's own program first)"),
        (AUTH_REQUIRED, logins) => {
            let logins = logins.join(", ");
            format!("{why} (hint: log in with the agent's own program first: {logins})")
        }
        _ => why,
    }
}
