//! The pictures of the README, drawn from the cells of the program's terminal and compared with its
//! current screen. `HOLDPOINT_SNAPSHOTS=overwrite` draws them again.

use std::fmt::Write;
use std::path::Path;

use holdpoint_tests::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::tty::Tty;
use crate::world::World;

/// A cell's width and a line's height, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);

/// The name of the work folder in the pictures.
const SHOP: &str = "~/shop";

/// The terminal's sixteen colours, for a dark background.
const COLOURS: [&str; 16] = [
    "#282c34", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
    "#7f848e", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
];

/// A screen as SVG: one line of text per row, split where the style changes. The folder of the
/// world is drawn as that of a user.
fn svg(screen: &vt100::Screen, work: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (width, height) = (f64::from(columns) * CELL.0 + 24.0, f64::from(rows) * CELL.1 + 24.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"14\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{}\"/>\n",
        COLOURS[0]
    );
    for row in 0..rows {
        let mut from = 0;
        while from < columns {
            let style = style(screen, row, from);
            let to = (from..columns)
                .find(|column| self::style(screen, row, *column) != style)
                .unwrap_or(columns);
            let text: String =
                (from..to).filter_map(|column| screen.cell(row, column)).map(text).collect();
            if !text.trim().is_empty() {
                let (x, y) =
                    (12.0 + f64::from(from) * CELL.0, 12.0 + f64::from(row + 1) * CELL.1 - 4.0);
                let spared = if text.contains(work) { work.len() - SHOP.len() } else { 0 };
                let cells = (f64::from(to - from) - spared as f64) * CELL.0;
                let text = text.replace(work, SHOP).replace('&', "&amp;").replace('<', "&lt;");
                writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{cells:.1}\" xml:space=\"preserve\" {style}>{text}</text>")
                    .unwrap();
            }
            from = to;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(cell: &vt100::Cell) -> &str {
    if cell.has_contents() {
        cell.contents()
    } else if cell.is_wide_continuation() {
        ""
    } else {
        " "
    }
}

/// The style of a cell as SVG attributes.
fn style(screen: &vt100::Screen, row: u16, column: u16) -> String {
    let cell = screen.cell(row, column).unwrap();
    let named = |colour: vt100::Color, default: usize| match colour {
        vt100::Color::Idx(number) => COLOURS[usize::from(number) % 16].to_owned(),
        vt100::Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        vt100::Color::Default => COLOURS[default].to_owned(),
    };
    let colour = if cell.inverse() { named(cell.bgcolor(), 7) } else { named(cell.fgcolor(), 7) };
    let weight = if cell.bold() || cell.inverse() { " font-weight=\"bold\"" } else { "" };
    let dim = if cell.dim() { " opacity=\"0.6\"" } else { "" };
    format!("fill=\"{colour}\"{weight}{dim}")
}

/// Checks that a picture shows the screen, apart from the numbers in it, which are times.
fn is_shown(tty: &Tty, name: &str, world: &World) {
    let work = world.path("work").display().to_string();
    let drawn = tty.look(|screen| svg(screen, &work));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("HOLDPOINT_SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        std::fs::write(&path, &drawn).unwrap();
    }
    let words =
        |svg: &str| svg.split(|letter: char| letter.is_ascii_digit()).collect::<Vec<_>>().join("0");
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        words(&there) == words(&drawn),
        "{name} is out of date: HOLDPOINT_SNAPSHOTS=overwrite draws it again"
    );
}

#[test]
fn m_e1_the_pictures_match_the_screen() {
    // A path of the same length everywhere, because lines break by it.
    let world = World::within(Path::new("/tmp"));
    std::fs::write(
        world.work("deploy.toml"),
        "[staging]\nhost = \"staging\"\nschema = 41\nreplicas = 2\n",
    )
    .unwrap();
    let server = ModelServer::start();
    world.config(&format!(
        "model = 'openai/gpt-5'\n[providers.openai]\nbase_url = '{}'\napi_key = 'sk-x'\n[sandbox]\n",
        server.base_url()
    ));
    server.reply(Reply::text(["The README says how to install it now."]));
    world.opens("docs", &["--policy", "all"], "Say in the README how to install it.");
    world.run(&["wait", "docs", "--for", "idle"]).code(0);
    server.reply(Reply::no_headers());
    world.opens("tests", &["--policy", "all"], "Find out why two tests fail.");
    let _asked = server.request(1);
    let edit =
        json!({"path": "deploy.toml", "old_string": "schema = 41", "new_string": "schema = 42"});
    let text = "I will bring it up to date: first the schema, then the service.";
    server.reply(
        Reply::stream()
            .say(text)
            .call(0, "edit_file", &edit.to_string())
            .finish("tool_calls")
            .end(),
    );
    world.opens("deploy", &[], "Bring the staging server up to date.");
    world.run(&["wait", "deploy", "--for", "ask"]).code(0);
    let mut tty = Tty::run(&world, &[]);
    tty.wait_for("1 ask needs you");
    is_shown(&tty, "hub.svg", &world);
    tty.press("\r");
    tty.wait_for("[Y] Approve [N] Deny (Esc to interrupt)");
    tty.wait_for("then the service.");
    tty.wait_for("Bring the staging server");
    tty.wait_for("○ edit_file");
    tty.wait_for("ctrl+x ? help");
    is_shown(&tty, "session.svg", &world);
    tty.press("\x18d");
    tty.end(0);
}
