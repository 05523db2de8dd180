//! End-to-end tests of `holdpoint acp`: an editor that speaks the protocol over the program's
//! standard input and output, and clients of others.

mod asks;
mod cancelling;
mod editor;
mod faults;
mod orders;
mod outside;
mod prompts;
mod servers;
mod sessions;
