//! The certificate authorities against which servers are checked: those that a session's
//! environment names, or else the system's. The environment of this process is ignored: a daemon's
//! is not that of its sessions.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use holdpoint_common::Certificates;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::model::ModelError;

/// The most bytes that are read from all files together. A system's authorities are less than 1
/// MiB.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The files in which systems other than Apple's keep all authorities. The first that exists is
/// read.
#[cfg(not(target_vendor = "apple"))]
const SYSTEM_FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt", // Debian, Arch, Gentoo
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",   // older Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",             // openSUSE
    "/etc/ssl/cert.pem",                  // Alpine
    "/usr/local/etc/ssl/cert.pem",        // FreeBSD
];

/// The folders in which these systems keep each authority in its own file.
#[cfg(not(target_vendor = "apple"))]
const SYSTEM_FOLDERS: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// The authorities that `certificates` names; `None` if it is empty.
///
/// # Errors
/// [`ModelError::Setup`] if the file can't be read or has no certificate, or if file and folders
/// together have no certificate.
pub(super) fn named(certificates: &Certificates) -> Result<Option<RootCertStore>, ModelError> {
    let Certificates { file, dir } = certificates;
    if file.is_none() && dir.is_none() {
        return Ok(None);
    }
    let mut roots = Roots::default();
    if let Some(file) = file {
        let read = roots.add_file(Path::new(file)).and_then(|()| roots.check_not_empty());
        read.map_err(|why| {
            variable_error("SSL_CERT_FILE", file, "a file of PEM certificates", &why)
        })?;
    }
    if let Some(dir) = dir {
        let mut failed = None;
        for folder in dir.split(':').filter(|folder| !folder.is_empty()) {
            if let Err(error) = roots.add_folder(Path::new(folder)) {
                tracing::warn!(folder, %error, "SSL_CERT_DIR: a folder can't be read");
                failed = failed.or(Some((folder, error)));
            }
        }
        if let Err(error) = roots.check_not_empty() {
            let (folder, why) = failed.unwrap_or((dir, error));
            return Err(variable_error(
                "SSL_CERT_DIR",
                folder,
                "folders of PEM certificates, separated by colons",
                &why,
            ));
        }
    }
    Ok(Some(roots.store))
}

/// The system's authorities.
///
/// # Errors
/// If no file of the system has an authority.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn of_system() -> io::Result<RootCertStore> {
    let mut roots = Roots::default();
    // If this fails, other places may still have authorities.
    if let Some(file) = SYSTEM_FILES.into_iter().find(|file| Path::new(file).exists())
        && let Err(error) = roots.add_file(Path::new(file))
    {
        tracing::warn!(file, %error, "the system's certificates can't be read");
    }
    for folder in SYSTEM_FOLDERS.into_iter().filter(|folder| Path::new(folder).exists()) {
        if let Err(error) = roots.add_folder(Path::new(folder)) {
            tracing::warn!(folder, %error, "the system's certificates can't be read");
        }
    }
    roots.check_not_empty().map(|()| roots.store)
}

/// The error for a variable that names no authority.
fn variable_error(variable: &str, path: &str, wanted: &str, why: &io::Error) -> ModelError {
    ModelError::Setup {
        message: format!("{variable} can't be used: {path}: {why}"),
        hint: format!("set {variable} to {wanted}, or unset it, before the session is opened"),
    }
}

/// Collects authorities from files.
struct Roots {
    store: RootCertStore,
    /// Device and inode of each file that was read, because a folder has several links to each.
    seen: HashSet<(u64, u64)>,
    /// Bytes that may still be read.
    bytes_left: u64,
}

impl Default for Roots {
    fn default() -> Self {
        Self { store: RootCertStore::empty(), seen: HashSet::new(), bytes_left: MAX_BYTES }
    }
}

impl Roots {
    /// Fails if there is no authority.
    fn check_not_empty(&self) -> io::Result<()> {
        if self.store.is_empty() {
            Err(io::Error::other("no certificate in PEM format found"))
        } else {
            Ok(())
        }
    }

    /// Adds the certificates of a file, and skips everything else in it.
    fn add_file(&mut self, path: &Path) -> io::Result<()> {
        // Opening a pipe would wait for its writer.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(self.bytes_left + 1).read_to_end(&mut bytes)?;
        let bytes_left = self.bytes_left.checked_sub(bytes.len() as u64);
        self.bytes_left = bytes_left
            .ok_or_else(|| io::Error::other(format!("there are more than {MAX_BYTES} bytes")))?;
        self.store.add_parsable_certificates(CertificateDer::pem_slice_iter(&bytes).flatten());
        Ok(())
    }

    /// Adds the certificates of each file in a folder, including links to files.
    fn add_folder(&mut self, path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            // Subfolders and dangling links are skipped.
            if !path.is_file() {
                continue;
            }
            match self.add_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    tracing::warn!(file = %path.display(), %error, "a certificate can't be read");
                }
                read => read?,
            }
        }
        Ok(())
    }
}
