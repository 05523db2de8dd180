//! The program as its users meet it: started as a process, in a pipe and in a terminal, and ended by signals.

mod asking;
mod config;
mod confirm;
mod help;
mod looping;
mod looping_followed;
mod model_faults;
mod models;
mod pages;
mod policy;
mod pty;
mod run;
mod sessions;
mod several;
mod signals;
mod terminal;
