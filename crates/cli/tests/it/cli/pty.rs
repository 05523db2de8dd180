//! A wide terminal for the commands that print lines.

use std::ops::{Deref, DerefMut};

use portable_pty::CommandBuilder;

use crate::tty::Tty;
use crate::world::{World, program};

/// A terminal of 120 columns that runs the program.
pub(crate) struct Terminal(Tty);

/// The keys of a Confirm.
pub(crate) const ASKED: &str = "[Y] Approve [N] Deny (Esc to interrupt)";

impl Terminal {
    /// Runs the program with these arguments.
    pub(crate) fn run(world: &World, args: &[&str]) -> Self {
        Self::start(world, args, &[], 40)
    }

    /// Runs the program on a terminal of `rows` rows, with `env` added to its environment.
    pub(crate) fn start(world: &World, args: &[&str], env: &[(&str, &str)], rows: u16) -> Self {
        let mut command = CommandBuilder::new(program());
        command.args(args);
        Self(Tty::start_on(world, command, env, 120, rows))
    }

    /// The screen's text, with trailing blanks.
    pub(crate) fn text(&self) -> String {
        self.0.contents()
    }
}

impl Deref for Terminal {
    type Target = Tty;

    fn deref(&self) -> &Tty {
        &self.0
    }
}

impl DerefMut for Terminal {
    fn deref_mut(&mut self) -> &mut Tty {
        &mut self.0
    }
}
