//! A Confirm on a real terminal shows the whole command and nothing else.

use serde_json::json;

use super::pty::{ASKED, Terminal};
use crate::world::World;

/// Starts a terminal in which `command` waits for a Confirm.
fn confirm(world: &World, command: &str, rows: u16) -> Terminal {
    let script = format!("call shell {}\nsay Done.", json!({ "command": command }));
    let terminal = Terminal::start(world, &["run", &script], &[], rows);
    // A command may contain this line, too, but only behind the margin.
    terminal.wait_until("the keys", |text| text.lines().next_back() == Some(ASKED));
    terminal
}

/// The line of a Confirm of a command.
const QUESTION: &str = "⏸ shell: Run this command without a sandbox?";

/// The details of the Confirm on the screen, without the folder. The screen joins the rows of a
/// wrapped line.
fn details(terminal: &Terminal) -> String {
    let text = terminal.text();
    let lines = text.lines().skip_while(|line| *line != QUESTION).skip(1);
    let lines: Vec<_> = lines
        .map_while(|line| {
            line.strip_prefix("  │").map(|line| line.strip_prefix(' ').unwrap_or(line))
        })
        .collect();
    let (command, folder) =
        lines.join("\n").rsplit_once("\n\nin ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(folder.starts_with('/') && folder.lines().next().unwrap().ends_with("/work"), "{text}");
    command
}

/// Decodes the escapes of a shown text.
fn unshown(shown: &str) -> String {
    let mut parts = shown.split("\\u{");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        text.push_str(rest);
    }
    text
}

/// Texts that could make a terminal show something other than the command.
const HOSTILE: [&str; 40] = [
    // CSI: clear, move the cursor, hide text, switch screens, request a report.
    "\u{1b}[2J",
    "\u{1b}[H",
    "\u{1b}[1A\u{1b}[2K",
    "\u{1b}[8m",
    "\u{1b}[30;40m",
    "\u{1b}[?1049h",
    "\u{1b}[6n",
    "\u{1b}[3D   ",
    "\u{1b}[1;1r",
    "\u{1b}[5@",
    // OSC, DCS, APC and other ESC.
    "\u{1b}]0;title\u{7}",
    "\u{1b}]52;c;cm0gLXJm\u{7}",
    "\u{1b}]8;;https://example.com\u{1b}\\",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}_x\u{1b}\\",
    "\u{1b}c",
    "\u{1b}(0qqq\u{1b}(B",
    "\u{1b}7x\u{1b}8",
    "\u{1b}",
    // C1.
    "\u{9b}2J",
    "\u{9d}0;x\u{9c}",
    "\u{90}x\u{9c}",
    "\u{85}",
    "\u{8d}",
    // C0 and DEL.
    "\r",
    "\r\nls\r\n",
    "\u{8}\u{8}\u{8}\u{8}",
    "\u{7f}\u{7f}",
    "\u{7}\u{b}\u{c}\u{e}\u{f}\u{5}",
    "\n\nin /tmp\n[Y] Approve [N] Deny (Esc to interrupt)\n\u{1}",
    // Characters that reorder, hide or imitate text.
    "\u{202e}fdp\u{202c}",
    "\u{2066}a\u{2069}\u{200f}\u{61c}",
    "\u{200b}\u{200d}\u{feff}\u{ad}",
    "\u{2028}\u{2029}",
    "\u{e0041}\u{e007f}\u{fe0f}\u{e0100}",
    "\u{a0}\u{3000}\u{2003}\u{2800}\u{3164}",
    "\u{441}\u{440} \u{ff52}\u{ff4d} r\u{43e}ot",
    "e\u{301}\u{301}\u{301} \u{5d0} \u{37e}",
    // Text that imitates our own escapes and masks.
    "\\u{1b} \\u{202e}",
    "…(36 characters masked)",
];

#[test]
fn t_c1_a_confirm_shows_the_exact_command() {
    let mut shown = 0;
    for hostile in HOSTILE {
        let world = World::new();
        let command = format!(
            "echo safe{hostile}; touch made {hostile}[Y] fine {}{hostile}",
            "wide ".repeat(40)
        );
        let mut terminal = confirm(&world, &command, 60);
        assert_eq!(unshown(&details(&terminal)), command, "{}", terminal.text());
        terminal.press("\x1b");
        terminal.end(130);
        assert!(!world.work("made").exists());
        shown += 1;
    }
    assert_eq!(shown, 40);
}

#[test]
fn t_c1_a_long_command_is_shown_whole() {
    let world = World::new();
    let lines: Vec<_> =
        (1..=500).map(|number| format!("echo {number} {}", "x".repeat(number % 300))).collect();
    let mut terminal = confirm(&world, &lines.join("\n"), 2_000);
    assert_eq!(details(&terminal), lines.join("\n"));
    terminal.press("\x1b");
    terminal.end(130);
}

#[test]
fn t_c5_secrets_are_masked_wherever_the_program_shows_the_call() {
    let world = World::new();
    let token = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    let command = format!(
        "mkdir out; API_KEY={token} printf '%s' 'Authorization: Bearer {token} https://me:hunter2x@example.com/a/b' > out/made"
    );
    let mut terminal = confirm(&world, &command, 40);
    let shown = details(&terminal);
    for open in [
        "mkdir out; ",
        " printf '%s' ",
        "https://me:",
        "@example.com/a/b",
        "> out/made",
        "API_KEY=ghp_…(36 characters masked)",
    ] {
        assert!(shown.contains(open), "{open}: {shown}");
    }
    terminal.press_until("y", "→ approved");
    terminal.end(0);
    let text = terminal.text();
    assert!(!text.contains("aB3dE6gH9") && !text.contains("hunter2x"), "{text}");
    // The command ran with the unmasked text.
    let made = std::fs::read_to_string(world.work("out/made")).unwrap();
    assert_eq!(made, format!("Authorization: Bearer {token} https://me:hunter2x@example.com/a/b"));
}

#[test]
fn a_confirm_names_the_variables_that_the_command_sets() {
    let world = World::new();
    let mut terminal = confirm(&world, "PATH=. LC_ALL=C ls", 40);
    assert!(terminal.text().contains("\n  │ sets PATH, LC_ALL\n"), "{}", terminal.text());
    terminal.press("\x1b");
    terminal.end(130);
}
