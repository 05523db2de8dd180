//! Links the program with packed relative relocations if its loader can unpack them. Otherwise each
//! of its processes, including the supervisor of every tool call, reads and keeps 1.9 MiB of
//! relocations.

use std::env;
use std::process::Command;

/// The first glibc with a loader that unpacks these relocations.
const UNPACKS: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if glibc().is_some_and(|version| version >= UNPACKS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the glibc that the program is linked with. Returns `None` for another C library,
/// or when cross-compiling.
fn glibc() -> Option<(u32, u32)> {
    let of_cargo = |name: &str| env::var(name).ok();
    let is_glibc =
        of_cargo("CARGO_CFG_TARGET_OS")? == "linux" && of_cargo("CARGO_CFG_TARGET_ENV")? == "gnu";
    if !is_glibc || of_cargo("HOST")? != of_cargo("TARGET")? {
        return None;
    }
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let (major, minor) =
        std::str::from_utf8(&output).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
