//! Tests of the pure machine, by table and by property: no actor, no clock, no disk.
mod away;
mod bench;
mod denials;
mod describe;
mod fold;
mod gaps;
mod input;
mod keys;
mod moving;
mod runs;
mod stories;
mod table;
mod watches;
