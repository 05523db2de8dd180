//! The start of an agent: its program, and the messages until it can take a prompt.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::AgentStart;
use holdpoint_tools::{ProcessSpec, SourceContext, environment};

use super::agent::Agent;
use super::connection::{Connection, RpcError};
use super::link::Link;
use super::needs::Needs;
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
    agent: &Agent,
    needs: &Needs,
    context: &SourceContext,
) -> Result<(), String> {
    spawn(link, agent, needs, context).await?;
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

/// Starts the program, with everything that it needs. It has to introduce itself.
///
/// # Errors
/// The reason why the program does not run.
pub(super) async fn spawn(
    link: &mut Link,
    agent: &Agent,
    needs: &Needs,
    context: &SourceContext,
) -> Result<(), String> {
    let root = context.workspace.root();
    let [program, args @ ..] = &needs.command[..] else {
        return Err("its command is empty".to_owned());
    };
    // Programs of the workspace are not found by their name.
    let mut env = environment::outside(context.workspace.env(), root);
    env.extend(agent.vars.iter().cloned());
    let spec = ProcessSpec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: root.to_owned(),
        env,
    };
    let sandbox = context.workspace.sandbox();
    let sandbox = sandbox.and_then(|sandbox| sandbox.widened(&needs.widenings));
    // An interrupt waits for half of the grace before the program is ended.
    let processes = context.processes.sandboxed(sandbox);
    let processes = processes.with_grace(processes.grace() / 2);
    let (spawning, needed) = (processes.clone(), needs.clone());
    let spawned = tokio::task::spawn_blocking(move || {
        needed.create_files()?;
        Ok::<_, String>(spawning.spawn_duplex(spec))
    });
    let spawned = spawned.await.map_err(|error| format!("can't be started: {error}"))?;
    let duplex = spawned?.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the program `{program}` is not found: {error}"),
        _ => format!("the program `{program}` can't be started: {error}"),
    })?;
    let values = agent.vars.iter().map(|(_, value)| value.clone()).collect();
    let connection = Connection::new(duplex, processes, context.background.clone(), values)
        .map_err(|error| format!("its streams can't be used: {error}"))?;
    link.started(connection, Arc::clone(&context.workspace));
    Ok(())
}

/// The introduction of a program that was started.
///
/// # Errors
/// The reason why the program has to be ended.
pub(super) async fn introduction(link: &mut Link) -> Result<Introduction, String> {
    let reply = link.request(method::INITIALIZE, protocol::initialize()).await?;
    protocol::introduction(&reply.map_err(|error| reported(&error))?)
}

/// Exchanges the first messages. Returns the id of the agent's session, which is the one from before
/// if the agent can continue it.
async fn introduce(
    link: &mut Link,
    context: &SourceContext,
) -> Result<(String, AgentStart), String> {
    let introduction = introduction(link).await?;
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
            Ok(reply) => {
                link.choose_model(&reply, &session, true).await?;
                return Ok((session, how));
            }
            Err(error) => tracing::info!(?error, "an agent can't continue its session"),
        }
    }
    let how = if link.is_used() { AgentStart::Replayed } else { AgentStart::New };
    let session = new_session(link, Some(&introduction), folder).await?;
    Ok((session, how))
}

/// Opens a new session of the agent, with the model that it is to use. Returns its id.
///
/// # Errors
/// The reason why the agent has to be ended.
pub(super) async fn new_session(
    link: &mut Link,
    introduction: Option<&Introduction>,
    folder: &Path,
) -> Result<String, String> {
    let reply = link.request(method::NEW, protocol::new_session(folder)).await?;
    let reply = reply.map_err(|error| match introduction {
        Some(introduction) => login_error(introduction, &error),
        None => reported(&error),
    })?;
    let session = protocol::new_session_id(&reply)?;
    link.choose_model(&reply, &session, false).await?;
    Ok(session)
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
