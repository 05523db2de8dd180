//! The thread of a proxy, with a runtime of its own.

use std::convert::Infallible;
use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// How many names are looked up at once; other lookups wait.
const MAX_LOOKUPS: usize = 16;

/// The thread of a proxy. It ends, with all connections, when this is dropped.
#[derive(Debug)]
pub(super) struct ProxyThread {
    runtime: Handle,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// The runtime of a proxy.
pub(super) fn runtime() -> io::Result<Runtime> {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_io().enable_time().max_blocking_threads(MAX_LOOKUPS).build()
}

impl ProxyThread {
    /// Spawns a thread that runs `serving` until it is dropped.
    pub(super) fn spawn(
        name: &str,
        runtime: Runtime,
        serving: impl Future<Output = Infallible> + Send + 'static,
    ) -> io::Result<Self> {
        let handle = runtime.handle().clone();
        let end = CancellationToken::new();
        let thread_end = end.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(thread_end.run_until_cancelled(serving));
            // Does not wait for a lookup that is still running.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, end, thread: Some(thread) })
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Drop for ProxyThread {
    fn drop(&mut self) {
        self.end.cancel();
        // A panic of the thread can't be reported from here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
