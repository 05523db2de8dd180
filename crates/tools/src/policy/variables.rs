//! Variables that can be set without changing which programs run.

use crate::script::Assignment;

/// Variables that change how programs look or how much they print.
const HARMLESS: [&str; 13] = [
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Locales in which every byte below 0x80 is its ASCII character.
const LOCALES: [&str; 5] = ["", "C", "POSIX", "C.UTF-8", "en_US.UTF-8"];

/// Values of `DEBIAN_FRONTEND` that are plain names. Debconf evaluates every value.
const FRONTENDS: [&str; 4] = ["dialog", "noninteractive", "readline", "teletype"];

/// Variables that bash treats as numbers: it evaluates any value that they are set to.
const NUMBERS: [&str; 8] =
    ["BASHPID", "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM", "BASH_SUBSHELL"];

/// Whether bash evaluates the variable, runs the file that it names, or reads scripts differently
/// because of it.
pub(super) fn is_evaluated(name: &str) -> bool {
    let is_run = matches!(name, "BASH_ENV" | "ENV" | "PROMPT_COMMAND" | "PS0" | "PS4")
        || name.starts_with("BASH_FUNC_");
    is_run || matches!(name, "BASHOPTS" | "HOME" | "SHELLOPTS") || NUMBERS.contains(&name)
}

/// Whether bash evaluates the value of this assignment. A plain number is safe for a numeric
/// variable.
pub(super) fn evaluates(assignment: &Assignment) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = assignment.name.as_str();
    is_evaluated(name)
        && !(NUMBERS.contains(&name) && assignment.value.literal().is_some_and(is_number))
}

/// Whether setting the variable for a program is harmless.
pub(super) fn is_harmless(name: &str, value: Option<&str>) -> bool {
    let is_one_of = |values: &[&str]| value.is_some_and(|value| values.contains(&value));
    match name {
        "DEBIAN_FRONTEND" => is_one_of(&FRONTENDS),
        "LANG" => is_one_of(&LOCALES),
        _ if name.starts_with("LC_") => is_one_of(&LOCALES),
        _ => HARMLESS.contains(&name),
    }
}

/// Whether setting the variable for the rest of the script is harmless. Most lower-case names are,
/// because only the script itself uses them.
pub(super) fn is_harmless_here(assignment: &Assignment) -> bool {
    let name = assignment.name.as_str();
    let is_lower_case =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    // Programs read the proxies and the settings of npm. Bash reads the last two.
    let is_read_by_others = name.ends_with("_proxy")
        || name.starts_with("npm_")
        || name == "histchars"
        || name == "auto_resume";
    let is_script_variable =
        is_lower_case && !name.bytes().all(|byte| byte == b'_') && !is_read_by_others;
    is_script_variable || is_harmless(name, assignment.value.literal())
}
