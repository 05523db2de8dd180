//! Tests of the effects of single keys and messages.

mod asks;
mod hub;
mod leaving;
mod session;

use holdpoint_common::Answer;

use super::super::message::Command;
use super::super::scene::Scene;

fn draft(scene: &Scene) -> String {
    scene.state.session.as_ref().unwrap().prompt.text()
}

fn asking() -> Scene {
    let mut scene = Scene::session();
    scene.turn("Go.").confirms("touch made");
    scene
}

fn answers(commands: &[Command]) -> Vec<&Answer> {
    commands
        .iter()
        .filter_map(|command| match command {
            Command::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect()
}
