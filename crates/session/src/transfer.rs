//! Sessions as text: out of one store and into another.
//!
//! The form is JSON lines: a header `{"format","version","id"}`, the session's facts as clients see them, and a last
//! line `{"end":{"facts","checkSum"}}`, so that a text that was cut or changed is known as such. The same facts always
//! make the same text.

mod export;
mod import;
mod possible;
mod read;

use holdpoint_common::SessionId;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

pub use export::{ExportError, export};
pub use import::{ImportError, import};
pub use read::Facts;

/// What the header calls the form.
const FORMAT: &str = "holdpoint-session";

/// The newest version of the form.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    id: SessionId,
}

/// Bytes that the last line has at most.
#[cfg(feature = "remote")]
pub(crate) const LAST_LINE: usize = 256;

/// Whether a text that ends like this has its last line.
#[cfg(feature = "remote")]
pub(crate) fn is_whole(end: &[u8]) -> bool {
    let last = end.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next());
    last.is_some_and(|line| serde_json::from_slice::<Footer>(line).is_ok())
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    end: End,
}

/// What the lines before the last come to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct End {
    /// How many lines there are between the first and the last.
    facts: u64,
    /// Of all bytes before the last line: XXH3, in hexadecimal.
    check_sum: String,
}

/// Adds up the lines before the last.
#[derive(Default)]
struct Sum {
    lines: u64,
    hash: Xxh3,
}

impl Sum {
    /// Adds a line, its end included.
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.hash.update(line);
    }

    fn end(&self) -> End {
        End { facts: self.lines.saturating_sub(1), check_sum: format!("{:016x}", self.hash.digest()) }
    }
}
