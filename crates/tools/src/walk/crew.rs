//! Going through a folder by several threads at once.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{Folder, Kind, Walk};

/// The most threads that go through a folder.
const MAX_THREADS: usize = 8;

/// Files that are handed on together.
const BATCH: usize = 64;

/// Threads that go through a folder together, each with a worker of its own.
pub(crate) struct Crew<'a> {
    walk: &'a Walk<'a>,
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    /// What is found and not yet looked at, newest last.
    todo: Vec<Work>,
    /// Threads that may yet find more.
    busy: usize,
}

enum Work {
    Folder(Folder),
    Files(Vec<PathBuf>),
}

impl<'a> Crew<'a> {
    /// Hands every file that is not ignored to one of the workers that `hire` makes, and gives the workers back. Files
    /// are named from the folder that is walked through. Stops early when the turn is cut.
    pub(crate) fn go<W: Send>(
        walk: &'a Walk<'a>,
        hire: impl Fn() -> W,
        work: impl Fn(&mut W, PathBuf) + Sync,
    ) -> Vec<W> {
        let state = State { todo: vec![Work::Folder(walk.top())], busy: 0 };
        let crew = Self { walk, state: Mutex::new(state), more: Condvar::new() };
        let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS));
        let mut workers: Vec<W> = (0..threads).map(|_| hire()).collect();
        let (first, others) = workers.split_at_mut(1);
        thread::scope(|scope| {
            for worker in others {
                // Without threads, the first does all of it.
                let _ = thread::Builder::new().spawn_scoped(scope, || crew.run(worker, &work));
            }
            first.iter_mut().for_each(|worker| crew.run(worker, &work));
        });
        workers
    }

    fn run<W>(&self, worker: &mut W, work: &impl Fn(&mut W, PathBuf)) {
        while let Some(next) = self.next() {
            // However this ends, the others do not wait for more from here.
            let _busy = Busy(self);
            match next {
                Work::Folder(folder) => self.open_up(&folder),
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

    /// What is to be done next; nothing if all is done or the turn is cut.
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

    /// Finds what is in a folder.
    fn open_up(&self, folder: &Folder) {
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
        let batches = files.chunks_mut(BATCH).map(|batch| Work::Files(batch.iter_mut().map(std::mem::take).collect()));
        found.extend(batches);
        self.lock().todo.append(&mut found);
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Busy<'a>(&'a Crew<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.more.notify_all();
    }
}
