//! The program in a terminal of its own, in which it writes lines.

use std::ops::{Deref, DerefMut};

use portable_pty::CommandBuilder;

use crate::tty::Tty;
use crate::world::{World, program};

/// A wide terminal with the program in it.
pub(crate) struct Terminal(Tty);

/// The keys of a Confirm.
pub(crate) const ASKED: &str = "[Y] Approve [N] Deny (Esc to interrupt)";

impl Terminal {
    /// Runs the program with these arguments.
    pub(crate) fn run(world: &World, args: &[&str]) -> Self {
        Self::start(world, args, &[], 40)
    }

    /// The same, with so many rows, and these variables as well.
    pub(crate) fn start(world: &World, args: &[&str], env: &[(&str, &str)], rows: u16) -> Self {
        let mut command = CommandBuilder::new(program());
        command.args(args);
        Self(Tty::start_on(world, command, env, 120, rows))
    }

    /// What is on the screen, blanks at the ends of lines and all.
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
