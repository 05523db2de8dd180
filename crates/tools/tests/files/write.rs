//! `write_file`: whole files, at once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use holdpoint_tools::testing::Bench;
use serde_json::json;

use super::support::{read, write};

#[test]
fn a_file_is_written_whole() {
    let bench = Bench::new();
    let outcome = write(&bench, "a/b/c.txt", "hello\n").unwrap();
    assert_eq!(outcome.output, "wrote a/b/c.txt (6 bytes)");
    assert_eq!((outcome.wrote[0].path.as_str(), outcome.wrote[0].size), ("a/b/c.txt", 6));
    let path = bench.root().join("a/b/c.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello\n");
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666 & !umask.as_raw_mode());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    write(&bench, path.to_str().unwrap(), "again").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode() & 0o7777, after.ino() == before), (0o751, false));
    assert_eq!(fs::read_dir(bench.root().join("a/b")).unwrap().count(), 1, "nothing is left beside it");
    assert_eq!(outcome.wrote[0].hash.as_ref().unwrap().len(), 32);
    let marked = read(&bench, json!({"path": "a/b/c.txt"})).unwrap().read;
    assert_eq!(marked[0].size, 5);

    fs::create_dir(bench.root().join("folder")).unwrap();
    assert!(write(&bench, "folder", "").unwrap_err().contains("it is a folder"));
    assert!(write(&bench, "a/b/c.txt/d", "").unwrap_err().contains("Not a directory"));
    assert!(write(&bench, "/", "").is_err());
}
