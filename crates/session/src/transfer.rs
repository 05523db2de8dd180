//! Export and import: sessions as text, from one store to another.
//!
//! The format is JSON lines: a header `{"format","version","id"}`, the session's facts as clients
//! see them, and a last line `{"end":{"facts","checkSum"}}`, which shows whether the text was cut
//! or changed. The same facts always make the same text.

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

/// The name of the format, in the header.
const FORMAT: &str = "holdpoint-session";

/// The newest version of the format.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    id: SessionId,
}

/// The maximum length of the last line in bytes.
#[cfg(feature = "remote")]
pub(crate) const MAX_LAST_LINE_BYTES: usize = 256;

/// Whether a text that ends with these bytes has its last line.
#[cfg(feature = "remote")]
pub(crate) fn has_footer(end: &[u8]) -> bool {
    let last = end.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next());
    last.is_some_and(|line| serde_json::from_slice::<Footer>(line).is_ok())
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    end: End,
}

/// The totals of all lines before the last.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct End {
    /// How many lines are between the first and the last.
    facts: u64,
    /// The XXH3 hash of all bytes before the last line, in hexadecimal.
    check_sum: String,
}

/// Computes the totals of the lines before the last.
#[derive(Default)]
struct Sum {
    lines: u64,
    hash: Xxh3,
}

impl Sum {
    /// Adds a line, including its end.
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.hash.update(line);
    }

    fn end(&self) -> End {
        End {
            facts: self.lines.saturating_sub(1),
            check_sum: format!("{:016x}", self.hash.digest()),
        }
    }
}
