//! A walk through a folder by several threads at once.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{Folder, Kind, Walk};

/// The most threads of one walk.
const MAX_THREADS: usize = 8;

/// Files that a thread takes at once.
const BATCH: usize = 64;

/// The threads of one walk, each with its own worker.
pub(crate) struct ParallelWalk<'a> {
    walk: &'a Walk<'a>,
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    /// Work that was found and not yet done, newest last.
    todo: Vec<Work>,
    /// Threads that may still find more.
    busy: usize,
}

enum Work {
    Folder(Folder),
    Files(Vec<PathBuf>),
}

impl<'a> ParallelWalk<'a> {
    /// Passes every file that is not ignored to one of the workers that `new_worker` creates, and
    /// returns the workers. Paths are relative to the walked folder. Stops early if the turn is
    /// cut.
    pub(crate) fn walk_files<W: Send>(
        walk: &'a Walk<'a>,
        new_worker: impl Fn() -> W,
        work: impl Fn(&mut W, PathBuf) + Sync,
    ) -> Vec<W> {
        let state = State { todo: vec![Work::Folder(walk.top())], busy: 0 };
        let crew = Self { walk, state: Mutex::new(state), more: Condvar::new() };
        let threads =
            thread::available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS));
        let mut workers: Vec<W> = (0..threads).map(|_| new_worker()).collect();
        let (first, others) = workers.split_at_mut(1);
        thread::scope(|scope| {
            for worker in others {
                // If no thread can be started, the first worker does everything.
                let _ =
                    thread::Builder::new().spawn_scoped(scope, || crew.run_worker(worker, &work));
            }
            first.iter_mut().for_each(|worker| crew.run_worker(worker, &work));
        });
        workers
    }

    fn run_worker<W>(&self, worker: &mut W, work: &impl Fn(&mut W, PathBuf)) {
        while let Some(next) = self.next() {
            // Dropped even after a panic, so that the other threads do not wait for this one.
            let _busy = Busy(self);
            match next {
                Work::Folder(folder) => self.expand(&folder),
                Work::Files(files) => {
                    for file in files {
                        if self.walk.is_cancelled() {
                            return;
                        }
                        work(worker, file);
                    }
                }
            }
        }
    }

    /// Waits for the next piece of work. `None` if all is done or the turn was cut.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if self.walk.is_cancelled() {
                return None;
            }
            if let Some(work) = state.todo.pop() {
                state.busy += 1;
                return Some(work);
            }
            if state.busy == 0 {
                return None;
            }
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lists a folder and adds its entries to the work.
    fn expand(&self, folder: &Folder) {
        let listing = self.walk.list(folder);
        let mut found = Vec::new();
        let mut files = Vec::new();
        for entry in listing.entries.iter().filter(|entry| !entry.ignored) {
            match entry.kind {
                Kind::Folder => found.push(Work::Folder(Walk::enter(folder, &listing, entry))),
                Kind::File => files.push(folder.path.join(&entry.name)),
                Kind::Link | Kind::Other => {}
            }
        }
        let batches = files
            .chunks_mut(BATCH)
            .map(|batch| Work::Files(batch.iter_mut().map(std::mem::take).collect()));
        found.extend(batches);
        self.lock().todo.append(&mut found);
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Busy<'a>(&'a ParallelWalk<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.more.notify_all();
    }
}
