//! What it costs to show what would be done: `cargo bench -p holdpoint-tools --bench shown`.
#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use holdpoint_tools::{secrets, shown};

fn main() {
    let line = "for file in src/*.rs; do TOKEN=$x cp \"$file\" out/ && echo 'done: naïve' >> log; done\n";
    let command = line.repeat(10 * 1024 / line.len());
    let code =
        "    let token = next_token(&mut rest)?; // the password: \"never\" stands here; see https://example.com/a\n";
    let text = code.repeat(1024 * 1024 / code.len());
    report("a command of 10 KiB, shown", 200, || shown::command(&command, Path::new("/work")).len());
    report("a text of 1 MiB, masked", 50, || secrets::mask(&text).len());
    report("a text of 1 MiB, shown", 50, || shown::text(&text).len());
    report("a text of 1 MiB, as prose", 200, || shown::prose(&text).len());
    let names: String = (0..20_000).map(|number| format!("a{number}_token = \"abcdefgh\"\n")).collect();
    report("20,000 secrets under as many names, masked", 20, || secrets::mask(&names).len());
}

/// The median of so many rounds.
fn report(what: &str, rounds: usize, mut round: impl FnMut() -> usize) {
    let mut took: Vec<_> = (0..rounds)
        .map(|_| {
            let since = Instant::now();
            black_box(round());
            since.elapsed()
        })
        .collect();
    took.sort();
    println!("{what}: {:.3} ms", took[rounds / 2].as_secs_f64() * 1e3);
}
