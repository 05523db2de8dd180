//! Crashes and full disks at one exact call of a program: a library that is preloaded into it.
#![allow(clippy::expect_used, reason = "a part of tests: what goes wrong here ends the test")]

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// What happens at the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program is killed.
    Kill,
    /// The program is killed; if the call writes, after half of the bytes.
    Torn,
    /// The disk is full for this call.
    FullOnce,
    /// The disk is full from this call on.
    Full,
}

/// The library, built for one test.
pub struct Faults {
    folder: TempDir,
}

impl Faults {
    /// Builds the library. `None` where nothing can be preloaded: it is for Linux with glibc.
    ///
    /// # Panics
    /// If the C compiler, which the SQLite of this workspace needs too, refuses it.
    #[must_use]
    pub fn build() -> Option<Self> {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return None;
        }
        let faults = Self { folder: TempDir::new().expect("a folder") };
        let source = faults.folder.path().join("faults.c");
        std::fs::write(&source, include_str!("faults.c")).expect("a file is written");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]).arg(faults.library()).arg(&source);
        let built = compiler.arg("-ldl").output().expect("cc runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(faults)
    }

    /// Sets `fault` for the program at its `call`-th call that changes files, counted from 1. Processes that it
    /// starts have a fault of their own if they inherit its environment.
    pub fn inject(&self, program: &mut Command, fault: Fault, call: usize) {
        let fault = match fault {
            Fault::Kill => "kill",
            Fault::Torn => "torn",
            Fault::FullOnce => "once",
            Fault::Full => "full",
        };
        program.env("LD_PRELOAD", self.library()).env("HOLDPOINT_FAULT", fault);
        program.env("HOLDPOINT_FAULT_AT", call.to_string());
    }

    /// Whether the program made that many calls, by its standard error.
    #[must_use]
    pub fn was_reached(output: &Output) -> bool {
        String::from_utf8_lossy(&output.stderr).contains("the fault was reached")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("faults.so")
    }
}
