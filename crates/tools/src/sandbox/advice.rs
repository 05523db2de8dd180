//! The advice to the model after a command has failed, if the sandbox is a likely cause.

use super::Sandbox;

/// Texts, in lower case, of programs that can't reach a host.
const NETWORK: [&str; 14] = [
    "could not resolve",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "failed to lookup address information",
    "network is unreachable",
    "network unreachable",
    "failed to establish a new connection",
    "connection refused",
    "eai_again",
    "enetunreach",
    "econnrefused",
    "could not find a version that satisfies",
];

/// Texts, in lower case, of programs that can't change a file.
const READ_ONLY: [&str; 4] =
    ["read-only file system", "erofs", "os error 30", "unable to create temporary"];

/// Texts, in lower case, of programs that may not do something.
const REFUSED: [&str; 4] = ["permission denied", "operation not permitted", "eacces", "eperm"];

/// Texts, in lower case, of programs that were refused a connection by the level `landlock`.
const CONNECTS: [&str; 2] = ["connect", "socket"];

/// How much of the end of the output is searched, in bytes.
pub(crate) const SEARCHED_BYTES: usize = 8 * 1024;

impl Sandbox {
    /// The narrowest widening that may help a command whose output ended like this, in words for
    /// the model; `None` if the sandbox does not seem to be the cause.
    pub(crate) fn advice(&self, end_of_output: &str) -> Option<&'static str> {
        let text = end_of_output.to_lowercase();
        let has = |texts: &[&str]| texts.iter().any(|found| text.contains(found));
        let is_refused = has(&REFUSED);
        if !self.has_network() && (has(&NETWORK) || is_refused && has(&CONNECTS)) {
            Some(
                "the sandbox has no network: if the command needs it, run it again with \
                 \"network\": true, which asks the user",
            )
        } else if has(&READ_ONLY) {
            Some(
                "the sandbox does not let the command change this file: if it must, run it again \
                 with \"writable\" set to the file or folder, which asks the user",
            )
        } else if is_refused {
            Some(
                "the sandbox may be the cause: if the command needs a file that it protects, run \
                 it again with \"writable\" set to the file or folder, or else with \"outside\": \
                 true; both ask the user",
            )
        } else {
            None
        }
    }
}
