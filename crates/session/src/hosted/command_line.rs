//! The command of a terminal as a line for bash, so that the policy judges, and the user sees,
//! exactly the line that runs.

use std::fmt::Write;
use std::path::Path;

use super::permission::{line, quoted};
use super::protocol::NewTerminal;

/// The most variables.
const MAX_VARIABLES: usize = 256;

/// The line of a new terminal, for a shell in the workspace at `root`.
///
/// # Errors
/// The reason why the terminal can't be created.
pub(super) fn of(terminal: &NewTerminal, root: &Path) -> Result<String, String> {
    let NewTerminal { command, args, env, cwd, output_limit: _ } = terminal;
    if command.trim().is_empty() {
        return Err("`command` is empty".to_owned());
    }
    if env.len() > MAX_VARIABLES {
        return Err(format!("`env` has more than {MAX_VARIABLES} variables"));
    }
    let mut variables = String::new();
    for (name, value) in env {
        if !is_name(name) {
            return Err(format!("`env` has a variable that bash can't set: `{name}`"));
        }
        let _ = write!(variables, "{name}={} ", quoted(value));
    }
    // Without arguments, agents send a line with the syntax of a shell.
    let is_line = args.is_empty();
    let command = match is_line {
        true => command.clone(),
        false => {
            // A first word with `=` would set a variable.
            let program = match command.contains('=') {
                true => format!("'{}'", command.replace('\'', r"'\''")),
                false => quoted(command),
            };
            format!("{program} {}", line(args))
        }
    };
    let folder = cwd.as_ref().filter(|cwd| Path::new(cwd) != root);
    let folder = folder.map(|cwd| format!("cd {} || exit\n", quoted(cwd))).unwrap_or_default();
    let variables = match variables.trim_end() {
        "" => String::new(),
        set if is_line => format!("export {set}\n"),
        set => format!("{set} "),
    };
    Ok(format!("{folder}{variables}{command}"))
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_part) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(
        command: &str,
        args: &[&str],
        env: &[(&str, &str)],
        cwd: Option<&str>,
    ) -> NewTerminal {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        NewTerminal {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.collect(),
            cwd: cwd.map(str::to_owned),
            output_limit: None,
        }
    }

    #[test]
    fn m_h3_a_terminal_runs_the_line_that_it_means() {
        let of = |terminal: &NewTerminal| of(terminal, Path::new("/w"));
        for (given, expected) in [
            (terminal("ls -l | wc", &[], &[], None), "ls -l | wc"),
            (terminal("ls", &["-l", "a b", "it's"], &[], Some("/w")), r"ls -l 'a b' 'it'\''s'"),
            (terminal("ls", &["-l"], &[("CI", "1")], None), "CI=1 ls -l"),
            (terminal("ls; ls", &[], &[("A", "x y")], None), "export A='x y'\nls; ls"),
            (terminal("ls", &[], &[], Some("/a b")), "cd '/a b' || exit\nls"),
            (terminal("my program", &["x"], &[], None), "'my program' x"),
            (terminal("A=b", &["x"], &[], None), "'A=b' x"),
        ] {
            assert_eq!(of(&given).unwrap(), expected);
        }
        for wrong in [
            terminal(" ", &[], &[], None),
            terminal("ls", &[], &[("A;B", "1")], None),
            terminal("ls", &[], &[("", "1")], None),
            terminal("ls", &[], &[("1A", "1")], None),
            terminal("ls", &[], &[("A", "1"); MAX_VARIABLES + 1], None),
        ] {
            assert!(of(&wrong).is_err(), "{wrong:?}");
        }
    }
}
