//! The program of a server.

use std::io;

use holdpoint_common::McpServer;

use super::launch::Launch;
use super::server::Control;
use crate::process::{Duplex, ProcessSpec};
use crate::sandbox::{Domains, Widening};

impl Launch {
    fn spec(&self) -> ProcessSpec {
        let root = self.session.workspace.root();
        let McpServer { command, args, env, cwd, .. } = &self.settings;
        // As the session's processes, but programs of the workspace are named by their path.
        let mut all = crate::environment::outside(self.session.workspace.env(), root);
        all.retain(|(name, _)| !env.contains_key(name));
        all.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
        ProcessSpec {
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd)),
            env: all,
        }
    }

    /// Starts the program in its sandbox.
    pub(super) fn spawn(&self, control: &Control) -> Result<Duplex, String> {
        let McpServer { network, domains, sandbox, .. } = &self.settings;
        let mut widenings = Vec::new();
        if *network {
            widenings.push(Widening::Network);
        } else if !domains.is_empty() {
            widenings.push(Widening::Domains(Domains::parse(domains)?));
        }
        if !sandbox {
            widenings.push(Widening::Outside);
        }
        let processes = &self.session.processes;
        let sandbox = processes.sandbox().and_then(|sandbox| sandbox.widened(&widenings));
        // A call waits for half of the grace before it ends the server, and for the end after that.
        let processes = processes.sandboxed(sandbox).with_grace(processes.grace() / 2);
        control.set_running(processes.clone());
        let spec = self.spec();
        processes.spawn_duplex(spec).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("the program `{}` is not found: {error}", self.settings.command)
            }
            _ => format!("the program can't be started: {error}"),
        })
    }
}
