//! A class that panics in every possible way, behind the same guards as all other code. For the
//! tests.
#![allow(clippy::panic, clippy::unnecessary_wraps, reason = "the class exists to panic")]

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Function, PromiseRaw, Task};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;

use crate::convert::{CatchDrop, catch_panic, promise_void, run_sync};
use crate::engine;
use crate::failure::Failure;

/// Panics in each of its methods, for tests.
#[napi]
pub struct Panics(
    #[expect(dead_code, reason = "only its drop matters")] CatchDrop<Option<PanicsWhenDropped>>,
);

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

#[napi]
impl Panics {
    /// Creates an object that panics when it is dropped.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "a constructor of JavaScript")]
    pub fn new() -> Self {
        Self(CatchDrop(Some(PanicsWhenDropped)))
    }

    /// Panics at once.
    #[napi(catch_unwind)]
    pub fn at_once(&self, env: &Env) -> napi::Result<()> {
        run_sync(env, || panic!("at once"))
    }

    /// Panics at once, guarded only by the `catch_unwind` that every function has.
    #[napi(catch_unwind)]
    pub fn unguarded(&self) {
        panic!("unguarded")
    }

    /// Makes a session's actor panic.
    #[napi(catch_unwind)]
    pub fn session<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, ()>> {
        promise_void(env, async move {
            engine::sessions()?.0.get(&id).await?.panic_now().await;
            Ok(())
        })
    }

    /// Panics when the property is read.
    #[napi(getter, catch_unwind)]
    pub fn property(&self, env: &Env) -> napi::Result<()> {
        run_sync(env, || panic!("in a getter"))
    }

    /// Panics on another thread.
    #[napi(catch_unwind)]
    pub fn later<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        promise_void(env, async { panic!("later") })
    }

    /// Panics on a thread of Node's own pool.
    #[napi(catch_unwind)]
    pub fn task(&self) -> AsyncTask<PanickingTask> {
        AsyncTask::new(PanickingTask)
    }

    /// Panics in the code that runs before a callback.
    #[napi(catch_unwind)]
    pub fn callback(&self, callback: Function<'_, String, ()>) -> napi::Result<()> {
        let callback = callback
            .build_threadsafe_function::<()>()
            .callee_handled::<true>()
            .build_callback(|context| {
                run_sync(&context.env, || -> Result<String, Failure> { panic!("in a callback") })
            })?;
        callback.call(Ok(()), ThreadsafeFunctionCallMode::NonBlocking);
        Ok(())
    }
}

/// A task for Node's own thread pool that panics.
pub struct PanickingTask;

impl Task for PanickingTask {
    type Output = Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(catch_panic(|| panic!("in a task")))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<()> {
        output.map_err(|failure| failure.into_js(&env))
    }
}
