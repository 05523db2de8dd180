//! The program as its users meet it: started as a process, in a pipe and in a terminal, and ended by signals.

mod config;
mod help;
mod run;
mod signals;
mod terminal;
mod world;
