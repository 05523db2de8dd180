//! A class whose every way in panics, behind the same guards as all else: for the tests.
#![allow(clippy::panic, clippy::unnecessary_wraps, reason = "that is what it is for")]

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Function, PromiseRaw, Task};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;

use crate::crossing::{Collected, caught, done, now};
use crate::engine;
use crate::failure::Failure;

/// Panics wherever it is touched.
#[napi]
pub struct Panics(#[expect(dead_code, reason = "it is dropped")] Collected<Option<PanicsWhenDropped>>);

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

#[napi]
impl Panics {
    /// One of them.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "a constructor of JavaScript")]
    pub fn new() -> Self {
        Self(Collected(Some(PanicsWhenDropped)))
    }

    /// Panics at once.
    #[napi(catch_unwind)]
    pub fn at_once(&self, env: &Env) -> napi::Result<()> {
        now(env, || panic!("at once"))
    }

    /// Panics at once, behind no guard but that of every function.
    #[napi(catch_unwind)]
    pub fn unguarded(&self) {
        panic!("unguarded")
    }

    /// Has a session's actor panic.
    #[napi(catch_unwind)]
    pub fn session<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, ()>> {
        done(env, async move {
            engine::sessions()?.0.get(&id).await?.panic_now().await;
            Ok(())
        })
    }

    /// Panics when it is read.
    #[napi(getter, catch_unwind)]
    pub fn property(&self, env: &Env) -> napi::Result<()> {
        now(env, || panic!("in a getter"))
    }

    /// Panics on another thread.
    #[napi(catch_unwind)]
    pub fn later<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        done(env, async { panic!("later") })
    }

    /// Panics on a thread of Node's own.
    #[napi(catch_unwind)]
    pub fn task(&self) -> AsyncTask<PanickingTask> {
        AsyncTask::new(PanickingTask)
    }

    /// Panics in what is done before a callback is called.
    #[napi(catch_unwind)]
    pub fn callback(&self, callback: Function<'_, String, ()>) -> napi::Result<()> {
        let callback = callback
            .build_threadsafe_function::<()>()
            .callee_handled::<true>()
            .build_callback(|context| now(&context.env, || -> Result<String, Failure> { panic!("in a callback") }))?;
        callback.call(Ok(()), ThreadsafeFunctionCallMode::NonBlocking);
        Ok(())
    }
}

/// A task of Node's own threads that panics.
pub struct PanickingTask;

impl Task for PanickingTask {
    type Output = Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> napi::Result<Self::Output> {
        Ok(caught(|| panic!("in a task")))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<()> {
        output.map_err(|failure| failure.into_js(&env))
    }
}
