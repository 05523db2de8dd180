//! Computes a fingerprint of the main code of a supervisor, by which a program recognizes a
//! supervisor of its own build.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::Path;
use std::{fs, io};

/// The code of a supervisor, and of the orders that it gets.
const SOURCES: [&str; 4] = ["src/process.rs", "src/process", "src/sandbox.rs", "src/sandbox"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        hash(Path::new(source), &mut hasher)?;
    }
    println!("cargo::rustc-env=SUPERVISOR_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// Hashes a file, or all files in a folder in the order of their names.
fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        return entries.iter().try_for_each(|entry| hash(&entry.path(), hasher));
    }
    hasher.write(path.as_os_str().as_encoded_bytes());
    hasher.write(&fs::read(path)?);
    Ok(())
}
