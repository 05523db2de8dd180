//! Where the browser may go: what is judged, what is dialled, and what Chromium can't get round.

mod addresses;
// All of 127.0.0.0/8 is this machine there, and nowhere else.
#[cfg(target_os = "linux")]
mod chromium;
mod client;
mod domains;
mod names;
mod network;
mod properties;
mod proxy;
mod server;

use holdpoint_tools::web::guard::{Ask, Guard, Verdict, Why};

/// What a guard says of a page.
fn judge(guard: &Guard, url: &str) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(guard.judge(url))
}

/// What a person is asked about a page.
fn asked(guard: &Guard, url: &str) -> Ask {
    match judge(guard, url) {
        Verdict::Ask(ask) => ask,
        other => panic!("{url}: {other:?}"),
    }
}

/// Why a page is refused.
fn refused(guard: &Guard, url: &str) -> Why {
    match judge(guard, url) {
        Verdict::Refused { why } => why,
        other => panic!("{url}: {other:?}"),
    }
}

/// A person says yes to a page.
fn allow(guard: &Guard, url: &str) {
    guard.allow(&asked(guard, url));
}
