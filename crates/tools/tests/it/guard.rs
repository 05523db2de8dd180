//! The browser's network access: the pages that are judged, the addresses that are dialled, and
//! pages that try to evade the guard in Chromium.

mod addresses;
// Only on Linux are all addresses of 127.0.0.0/8 local.
#[cfg(target_os = "linux")]
mod chromium;
mod client;
mod domains;
mod names;
pub(crate) mod network;
mod properties;
mod proxy;
pub(crate) mod server;

use holdpoint_tools::web::guard::{Ask, Guard, RefusalReason, Verdict};

/// The guard's verdict on a page.
fn judge(guard: &Guard, url: &str) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(guard.judge(url))
}

/// The question to the user about a page.
fn asked(guard: &Guard, url: &str) -> Ask {
    match judge(guard, url) {
        Verdict::Ask(ask) => ask,
        other => panic!("{url}: {other:?}"),
    }
}

/// The reason why a page is refused.
fn refused(guard: &Guard, url: &str) -> RefusalReason {
    match judge(guard, url) {
        Verdict::Refused { why } => why,
        other => panic!("{url}: {other:?}"),
    }
}

/// Allows a page as the user would.
fn allow(guard: &Guard, url: &str) {
    guard.allow(&asked(guard, url));
}
