//! Private hosts: what a person is told before the browser reaches one.

use super::guard::Ask;
use crate::shown;

/// The question about it alone.
pub(super) fn question(ask: &Ask) -> String {
    format!("Let the browser reach {}?", shown::line(&ask.host))
}

/// What agreeing means. Of two lines, so that no line of anybody else's can say it.
pub(super) fn meaning(ask: &Ask) -> String {
    let addresses: Vec<_> = ask.addresses.iter().map(ToString::to_string).collect();
    format!(
        "{} is on this machine or in a private network: {}\nIf you agree, pages of this session's browser reach it, at any \
         port, until the session ends.",
        shown::line(&ask.host),
        addresses.join(", ")
    )
}
