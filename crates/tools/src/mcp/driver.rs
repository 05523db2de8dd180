//! The thread that drives the servers of a session.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// The size of the thread's stack in bytes.
const STACK: usize = 1024 * 1024;

/// How long a thread that has started or ended a program is kept for the next one.
const KEEP_ALIVE: Duration = Duration::from_millis(100);

/// A thread for all servers of a session: threads of their own would take most of the memory of idle
/// servers. It ends when this value is dropped and all tasks have ended.
pub(super) struct Driver(mpsc::UnboundedSender<Task>);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Driver {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime can't be created.
    pub(super) fn start() -> io::Result<Self> {
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().thread_keep_alive(KEEP_ALIVE).build()?;
        // A session has a bounded number of servers.
        let (tasks, new_tasks) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new().name("mcp".to_owned()).stack_size(STACK);
        thread.spawn(move || {
            runtime.block_on(run(new_tasks));
            // Tasks that wait for a user's answer end here.
            runtime.shutdown_background();
        })?;
        Ok(Self(tasks))
    }

    /// Runs a task on the thread. It must not block; see [`blocking`].
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The thread ends after this sender.
        let _ = self.0.send(Box::pin(task));
    }
}

async fn run(mut new_tasks: mpsc::UnboundedReceiver<Task>) {
    let running = TaskTracker::new();
    while let Some(task) = new_tasks.recv().await {
        running.spawn(task);
    }
    running.close();
    running.wait().await;
}

/// Runs a function that blocks on another thread.
///
/// # Panics
/// If the function panics.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The runtime lasts as long as its tasks, so the work was not cancelled.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
