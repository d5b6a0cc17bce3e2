//! Images in conversations, as far as the screen is concerned.

use std::io::Cursor;

use consort_model::image::base64;
use consort_model::{Attachment, Image, PromptId, PromptOrigin};
use ratatui::style::Color;

use super::*;
use crate::testing::agent;
use crate::text::picture::Means;

const BLOCKS: Means = Means::Blocks { true_colour: true };

/// A square of one colour.
fn square(colour: [u8; 3]) -> Image {
    let mut png = Vec::new();
    let pixels = image::RgbImage::from_pixel(48, 48, image::Rgb(colour));
    pixels.write_to(&mut Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
    Image { mime_type: "image/png".into(), data: base64(&png) }
}

/// A prompt with an image, a tool that read one, and one that the agent showed.
fn scene() -> Scene {
    let prompt = ItemBody::User {
        prompt: PromptId::new(Uuid::from_u128(3)),
        origin: PromptOrigin::Person,
        text: "what is this?".into(),
        attachments: vec![Attachment::Image(square([200, 0, 0]))],
    };
    let call = ToolCall { images: vec![square([0, 200, 0])], ..tool(ToolKind::Read, "shot.png") };
    let bodies = [
        prompt,
        ItemBody::Tool(call),
        ItemBody::Image(square([0, 0, 200])),
        ItemBody::Text { text: "Three squares.".into() },
    ];
    let items = (0u64..).zip(bodies).map(|(index, body)| item(index, body)).collect();
    let mut scene =
        Scene::new(100, 60, team(vec![named("painter", agent(1))]), BTreeMap::from([(agent_id(1), items)]));
    scene.app.show(agent_id(1), false);
    scene.settle();
    scene
}

/// Draws what the screen misses, as the loop does on a thread.
fn draw_pictures(scene: &mut Scene) -> usize {
    let wanted = scene.app.pictures.wanted();
    for wanted in &wanted {
        scene.app.picture_drawn(wanted.key, wanted.draw());
    }
    scene.settle();
    wanted.len()
}

/// How many cells have this colour.
fn cells(scene: &Scene, colour: Color) -> usize {
    scene.canvas.next.content.iter().filter(|cell| cell.fg == colour).count()
}

#[test]
fn images_are_words_until_they_are_drawn_and_pictures_then() {
    let mut scene = scene();
    scene.app.terminal_shows(BLOCKS);
    scene.settle();
    assert_eq!(scene.screen().matches("[image png").count(), 3);
    let (red, green, blue) = (Color::Rgb(200, 0, 0), Color::Rgb(0, 200, 0), Color::Rgb(0, 0, 200));
    assert_eq!(cells(&scene, red), 0);
    assert_eq!(draw_pictures(&mut scene), 3);
    // Twelve rows of twice as many columns.
    assert_eq!([red, green, blue].map(|colour| cells(&scene, colour)), [12 * 24; 3]);
    assert_eq!(draw_pictures(&mut scene), 0, "nothing is drawn twice");
    scene.sees("Three squares.");
}

#[test]
fn pictures_can_be_hidden_and_are_where_there_are_no_colours() {
    let mut scene = scene();
    scene.app.terminal_shows(BLOCKS);
    scene.settle();
    draw_pictures(&mut scene);
    let red = Color::Rgb(200, 0, 0);
    scene.app.carry_out(crate::overlay::Command::Pictures(false));
    scene.settle();
    assert_eq!((cells(&scene, red), draw_pictures(&mut scene)), (0, 0));
    scene.app.carry_out(crate::overlay::Command::Pictures(true));
    scene.settle();
    assert_eq!(draw_pictures(&mut scene), 3);
    assert!(cells(&scene, red) > 0);
    scene.app.set_theme(Theme::no_colour());
    scene.settle();
    assert_eq!((cells(&scene, red), draw_pictures(&mut scene)), (0, 0));
}

#[test]
fn a_terminal_that_knows_images_is_given_them() {
    let mut scene = scene();
    scene.app.terminal_shows(BLOCKS);
    scene.app.input(Input::Terminal { name: "xterm(390)".into() });
    assert_eq!(scene.app.pictures.means(), BLOCKS);
    scene.app.input(Input::Terminal { name: "kitty(0.42.1)".into() });
    scene.settle();
    assert_eq!(scene.app.pictures.means(), Means::Placeholders { cell: (8, 16) });
    assert!(scene.app.pictures.forgetting().is_empty());
    assert_eq!(draw_pictures(&mut scene), 3);
    let pieces = scene.canvas.next.content.iter().filter(|cell| cell.symbol().starts_with('\u{10eeee}'));
    assert_eq!(pieces.count(), 3 * 6 * 3, "48 pixels are six columns and three rows");
    assert_eq!(scene.app.pictures.forgetting().matches("a=d").count(), 3);
    // Another program had the terminal: all of it is given again.
    scene.app.forget_pictures();
    scene.settle();
    assert_eq!(draw_pictures(&mut scene), 3);
}

#[test]
fn an_image_that_cannot_be_drawn_says_so_once_it_was_tried() {
    let broken = Image { mime_type: "image/png".into(), data: base64(b"no image at all") };
    let items = BTreeMap::from([(agent_id(1), vec![item(0, ItemBody::Image(broken))])]);
    let mut scene = Scene::new(100, 30, team(vec![named("painter", agent(1))]), items);
    scene.app.terminal_shows(BLOCKS);
    scene.settle();
    scene.sees("[image png 15 B]");
    assert_eq!(draw_pictures(&mut scene), 1);
    scene.sees("[image png 15 B, cannot be shown]");
}
