//! Reads the settings in a file in the format of `.git/config`.

/// One setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In lower case.
    pub(super) section: Vec<u8>,
    /// Empty if there is none.
    pub(super) subsection: Vec<u8>,
    /// In lower case.
    pub(super) key: Vec<u8>,
    /// Empty for a key without a value.
    pub(super) value: Vec<u8>,
}

/// The settings in `text`. Git refuses a file with an error, so the rest of one may be read in any
/// way.
pub(super) fn settings(text: &[u8]) -> Vec<Setting> {
    let mut rest = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let (mut settings, mut section, mut subsection) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'[' => {
                let length = after.iter().take_while(|byte| is_name(**byte)).count();
                section = after[..length].to_ascii_lowercase();
                header(&after[length..], &mut subsection)
            }
            b'#' | b';' => skip_line(after),
            byte if is_name(*byte) => {
                let length = rest.iter().take_while(|byte| is_name(**byte)).count();
                let key = rest[..length].to_ascii_lowercase();
                let (value, after) = value(&rest[length..]);
                let (section, subsection) = (section.clone(), subsection.clone());
                settings.push(Setting { section, subsection, key, value });
                after
            }
            _ => after,
        };
    }
    settings
}

/// Whether the byte can be in the name of a section or a key. A `.` begins a subsection.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Reads the rest of the header of a section: its subsection, after a `.` or in quotes, which may
/// contain a `]`. Returns the text after the header.
fn header<'a>(text: &'a [u8], subsection: &mut Vec<u8>) -> &'a [u8] {
    subsection.clear();
    let is_old = text.starts_with(b".");
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        let is_part = match byte {
            b'\n' => return &text[at..],
            _ if escaped => true,
            b'\\' | b'"' => false,
            b']' if !quoted => return &text[at + 1..],
            _ => quoted || is_old && at > 0,
        };
        match byte {
            byte if is_part => {
                subsection.push(if quoted { *byte } else { byte.to_ascii_lowercase() })
            }
            b'"' => quoted = !quoted,
            _ => {}
        }
        escaped = !escaped && quoted && *byte == b'\\';
    }
    &[]
}

fn skip_line(text: &[u8]) -> &[u8] {
    text.iter().position(|byte| *byte == b'\n').map_or(&[], |at| &text[at..])
}

/// The value after a key, and the text after it.
fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let spaces = text.iter().take_while(|byte| b" \t".contains(byte)).count();
    let [b'=', rest @ ..] = &text[spaces..] else { return (Vec::new(), &text[spaces..]) };
    let mut rest = rest;
    let (mut value, mut spaces, mut quoted) = (Vec::new(), Vec::new(), false);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let byte = match byte {
            b'\n' => break,
            b'\r' if after.starts_with(b"\n") => continue,
            b'#' | b';' if !quoted => return (value, skip_line(after)),
            b' ' | b'\t' if !quoted => {
                // Spaces count only between words.
                if !value.is_empty() {
                    spaces.push(*byte);
                }
                continue;
            }
            b'"' => {
                quoted = !quoted;
                continue;
            }
            b'\\' => {
                let (escaped, after) = escape(after);
                rest = after;
                match escaped {
                    Some(byte) => byte,
                    None => continue,
                }
            }
            byte => *byte,
        };
        value.append(&mut spaces);
        value.push(byte);
    }
    (value, rest)
}

/// The byte after a backslash, and the text after it; `None` for a line that continues.
fn escape(text: &[u8]) -> (Option<u8>, &[u8]) {
    match text {
        [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => (None, rest),
        [b'n', rest @ ..] => (Some(b'\n'), rest),
        [b't', rest @ ..] => (Some(b'\t'), rest),
        [b'b', rest @ ..] => (Some(8), rest),
        [byte, rest @ ..] => (Some(*byte), rest),
        [] => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Git itself reads the same settings from the file.
    #[test]
    fn m_g4_settings_are_read_as_git_reads_them() {
        let text = "\u{feff}[core] hooksPath = a b \\\n  c ; comment\n\teditor\r\n\
            [Include \"x ] \\\" \\y\"]path=\"a # b \" c # d\r\n[a.B] n-1 = \\\\\\\"\\t|\n\
            # [core]\n  ; x = y\n[filter \"lfs\"]\nclean = git-lfs clean -- %f\nempty =\n[b]k=v\\";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, text).unwrap();
        let list = ["config", "--null", "--list", "--file"];
        let output = match Command::new("git").args(list).arg(&path).output() {
            Ok(output) => output,
            Err(error) => return println!("skipped: git does not run: {error}"),
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let expected: Vec<_> = entries
            .map(|entry| {
                let mut parts = entry.splitn(2, |byte| *byte == b'\n');
                let name = parts.next().unwrap();
                let dots = name.iter().enumerate().filter(|(_, byte)| **byte == b'.');
                let dots: Vec<_> = dots.map(|(at, _)| at).collect();
                let subsection = name.get(dots[0] + 1..dots[dots.len() - 1]).unwrap_or_default();
                Setting {
                    section: name.split(|byte| *byte == b'.').next().unwrap().to_vec(),
                    subsection: subsection.to_vec(),
                    key: name.rsplit(|byte| *byte == b'.').next().unwrap().to_vec(),
                    value: parts.next().unwrap_or_default().to_vec(),
                }
            })
            .collect();
        assert_eq!(expected.len(), 7);
        assert_eq!(settings(text.as_bytes()), expected);
    }
}
