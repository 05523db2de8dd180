//! The cost of masking and escaping text that is shown.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use holdpoint_tools::{secrets, shown};

use crate::table::{Samples, Table};

pub(crate) fn measure(table: &Table) {
    if !table.wants("shown", &["a command of 10 KiB, shown", "a text of 1 MiB"]) {
        return;
    }
    let line =
        "for file in src/*.rs; do TOKEN=$x cp \"$file\" out/ && echo 'done: naïve' >> log; done\n";
    let command = line.repeat(10 * 1024 / line.len());
    let code = "    let token = next_token(&mut rest)?; // the password: \"never\" stands here; see https://example.com/a\n";
    let text = code.repeat(1024 * 1024 / code.len());
    let names: String =
        (0..20_000).map(|number| format!("a{number}_token = \"abcdefgh\"\n")).collect();
    note(table, "a command of 10 KiB, shown", 200, || {
        shown::command(&command, Path::new("/work")).len()
    });
    note(table, "a text of 1 MiB, masked", 50, || secrets::mask(&text).len());
    note(table, "   … shown", 50, || shown::text(&text).len());
    note(table, "   … as prose", 200, || shown::prose(&text).len());
    note(table, "20,000 secrets under as many names, masked", 20, || secrets::mask(&names).len());
}

fn note(table: &Table, what: &str, rounds: usize, mut shows: impl FnMut() -> usize) {
    let took = Samples::of(rounds, || {
        let since = Instant::now();
        black_box(shows());
        since.elapsed()
    });
    table.note(what, took.median());
}
