//! The browser of the tool `web`.

use std::fs;
use std::sync::Arc;

use holdpoint_common::{SandboxLevel, WebSettings};
use holdpoint_tools::web::guard::SystemResolver;

use super::World;
use crate::web::server::{Server, html};
use crate::web::support::{Session, local};

/// Chromium's own sandbox does not work as root, and in most containers.
#[test]
fn m_g2_a_browser_without_its_own_sandbox_is_in_that_of_the_session() {
    let world = World::new();
    let server = Server::start(|_| html("<p>text</p>"));
    for level in world.levels() {
        let settings = WebSettings { sandbox: Some(false), ..local() };
        let folder = tempfile::tempdir_in(world.path("state")).unwrap();
        let mut session = Session::within(folder, settings, Arc::new(SystemResolver));
        session.bench = session.bench.sandbox(world.sandbox(level, world.profile()));
        assert!(session.open(&server.url("/")).contains("text"), "{level}");
        let mut living = session.census.living();
        living.retain(|(pid, _)| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with("chrom")
        });
        assert!(!living.is_empty(), "{level}: {:?}", session.census.living());
        for (pid, arguments) in living {
            let key = world.path("home/.ssh/id");
            let seen = format!("/proc/{pid}/root{}", key.display());
            // A process that has ended sees nothing. The browser itself is there.
            let is_seen = fs::read(seen).is_ok();
            let expected = level != SandboxLevel::Bwrap && !arguments.contains("--type=");
            assert!(is_seen || !expected, "{level}: {arguments}");
            assert!(!is_seen || level != SandboxLevel::Bwrap, "{level}: {arguments}");
        }
        session.close();
    }
}
