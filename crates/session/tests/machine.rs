//! The pure machine, by table and by property: no actor, no clock, no disk.

mod machine {
    mod bench;
    mod model;
    mod stories;
    mod table;
    mod watches;
    mod words;
}
