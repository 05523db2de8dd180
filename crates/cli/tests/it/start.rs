//! The program in a terminal, inside a world.

use portable_pty::CommandBuilder;

use crate::tty::Tty;
use crate::world::{World, program};

impl Tty {
    /// Runs the program with these arguments, on 80 × 24.
    pub(crate) fn run(world: &World, args: &[&str]) -> Self {
        let mut command = CommandBuilder::new(program());
        command.args(args);
        Self::start(world, command, &[])
    }

    /// An interactive shell in which `$P` is the program.
    pub(crate) fn shell(world: &World) -> Self {
        let mut command = CommandBuilder::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        Self::start(world, command, &[("P", program().to_str().unwrap()), ("PS1", "$ ")])
    }

    /// Runs `command` with `env` added to the world's environment.
    pub(crate) fn start(world: &World, command: CommandBuilder, env: &[(&str, &str)]) -> Self {
        Self::start_on(world, command, env, 80, 24)
    }

    /// Like `start`, on a terminal of this size.
    pub(crate) fn start_on(
        world: &World,
        mut command: CommandBuilder,
        env: &[(&str, &str)],
        columns: u16,
        rows: u16,
    ) -> Self {
        command.cwd(world.path("work"));
        command.env_clear();
        for (name, value) in world.env() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in env {
            command.env(name, value);
        }
        Self::spawn_on(command, columns, rows)
    }
}
