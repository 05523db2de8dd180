//! What the program says about itself: every `--help`, word for word.

/// `TRYCMD=overwrite cargo test -p holdpoint help` writes them anew.
#[test]
fn every_help_is_as_it_was() {
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/help/*.trycmd");
}
