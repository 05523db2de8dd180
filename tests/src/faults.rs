//! Injection of crashes and full disks at one exact call of a program, by a preloaded library.
#![allow(clippy::expect_used, reason = "test support: a failure ends the test")]

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The fault at the chosen call.
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

/// The preloaded library, built for one test.
pub struct Faults {
    folder: TempDir,
}

impl Faults {
    /// Builds the library. `None` on systems other than Linux with glibc, where it can't be
    /// preloaded.
    ///
    /// # Panics
    /// If the C compiler fails. The workspace's SQLite needs a C compiler too.
    #[must_use]
    pub fn build() -> Option<Self> {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return None;
        }
        let faults = Self { folder: TempDir::new().expect("a folder") };
        let source = faults.folder.path().join("faults.c");
        std::fs::write(&source, include_str!("faults.c")).expect("a file is written");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .arg(faults.library())
            .arg(&source);
        let built = compiler.arg("-ldl").output().expect("cc runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(faults)
    }

    /// Makes `fault` happen at the program's `call`-th call that changes files, counted from 1.
    /// Child processes that inherit the environment count their own calls and have the fault too.
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

    /// Whether the program reached the call, according to its standard error.
    #[must_use]
    pub fn was_reached(output: &Output) -> bool {
        String::from_utf8_lossy(&output.stderr).contains("the fault was reached")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("faults.so")
    }
}
