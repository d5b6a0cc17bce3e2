use consort_model::{AgentId, ItemIndex};
use proptest::prelude::*;

use super::*;
use crate::pictures::Pictures;
use crate::testing::{item, said};
use crate::text::theme::Theme;

fn with_look<R>(width: u16, work: impl FnOnce(&Look<'_>) -> R) -> R {
    let theme = Theme::dark();
    work(&Look {
        theme: &theme,
        width,
        name_of: &|_: AgentId| "someone".to_owned(),
        pictures: &Pictures::default(),
        opens: "o",
    })
}

fn seen(transcript: &mut Transcript, width: u16, height: usize) -> Vec<String> {
    with_look(width, |look| {
        transcript
            .view(look, height)
            .iter()
            .map(|shown| shown.text.to_string().trim_end().to_owned())
            .collect()
    })
}

fn loaded(count: u64) -> Transcript {
    let mut transcript = Transcript::default();
    assert_eq!(transcript.wants(), Some(Wanted::Last));
    let first = count.saturating_sub(u64::from(PAGE));
    let items = (first..count).map(|index| said(index, &format!("item {index}"))).collect();
    transcript.page(Wanted::Last, items, count);
    transcript
}

fn scroll(transcript: &mut Transcript, by: isize) {
    with_look(40, |look| transcript.scroll(look, by));
}

fn added(index: u64, text: &str) -> AgentEvent {
    AgentEvent::ItemAdded { item: said(index, text) }
}

#[test]
fn a_conversation_begins_at_its_end() {
    let mut transcript = loaded(10_000);
    assert_eq!(seen(&mut transcript, 40, 3), ["item 9998", "", "item 9999"]);
    transcript.apply(&added(10_000, "more"));
    assert_eq!(seen(&mut transcript, 40, 3), ["item 9999", "", "more"]);
}

#[test]
fn only_what_is_looked_at_is_laid_out() {
    let mut transcript = loaded(10_000);
    seen(&mut transcript, 40, 10);
    let laid = transcript.entries.iter().filter(|entry| entry.laid.is_some()).count();
    assert!(laid <= 7, "{laid} of {} are laid out", transcript.entries.len());
}

#[test]
fn what_is_looked_at_stays_put_when_text_arrives_a_page_is_loaded_or_the_width_changes() {
    let mut transcript = loaded(200);
    seen(&mut transcript, 40, 5);
    scroll(&mut transcript, -90);
    let before = seen(&mut transcript, 40, 5);
    transcript.apply(&added(200, "new"));
    assert_eq!(seen(&mut transcript, 40, 5), before);
    assert!(transcript.has_unseen());
    let Some(Wanted::Before(first)) = transcript.wants() else { panic!("earlier items are wanted") };
    let earlier = (first - 60..first).map(|index| said(index, &format!("item {index}"))).collect();
    transcript.page(Wanted::Before(first), earlier, 201);
    assert_eq!(seen(&mut transcript, 40, 5), before);
    assert_eq!(seen(&mut transcript, 60, 5), before);
}

#[test]
fn scrolling_down_to_the_end_follows_it_again() {
    let mut transcript = loaded(50);
    seen(&mut transcript, 40, 5);
    scroll(&mut transcript, -10);
    assert_ne!(transcript.place(), Place::End);
    scroll(&mut transcript, 30);
    seen(&mut transcript, 40, 5);
    assert_eq!(transcript.place(), Place::End);
}

#[test]
fn text_that_came_with_a_page_is_not_added_twice() {
    let mut transcript = Transcript::default();
    transcript.wants();
    let mut growing = said(0, "one two");
    growing.done = false;
    transcript.page(Wanted::Last, vec![growing], 1);
    let append =
        |offset: u64, text: &str| AgentEvent::TextAppended { index: ItemIndex(0), offset, text: text.into() };
    transcript.apply(&append(0, "one"));
    transcript.apply(&append(3, " two three"));
    assert_eq!(seen(&mut transcript, 40, 2), ["one two three"]);
    transcript.apply(&append(13, " four"));
    assert_eq!(seen(&mut transcript, 40, 2), ["one two three four"]);
    transcript.apply(&append(40, "lost"));
    assert_eq!(transcript.wants(), Some(Wanted::Last), "a gap is mended by a page");
}

#[test]
fn going_to_the_begin_of_a_long_conversation_loads_it() {
    let mut transcript = loaded(10_000);
    seen(&mut transcript, 40, 5);
    assert_eq!(transcript.to_start(), Some(Wanted::From(0)));
    let items = (0..60).map(|index| said(index, &format!("item {index}"))).collect();
    transcript.page(Wanted::From(0), items, 10_000);
    assert_eq!(seen(&mut transcript, 40, 3), ["item 0", "", "item 1"]);
    scroll(&mut transcript, 100);
    assert_eq!(transcript.wants(), Some(Wanted::From(60)));
    transcript.to_end();
    assert_eq!(transcript.wants(), None, "one page at a time");
    transcript.page_failed();
    assert_eq!(transcript.wants(), Some(Wanted::Last));
}

#[test]
fn after_a_lost_connection_the_end_is_loaded_anew_and_the_place_stays() {
    let mut transcript = loaded(100);
    seen(&mut transcript, 40, 5);
    scroll(&mut transcript, -20);
    let before = seen(&mut transcript, 40, 5);
    transcript.disconnected();
    assert_eq!(transcript.wants(), Some(Wanted::Last));
    let items = (45..105).map(|index| said(index, &format!("item {index}"))).collect();
    transcript.page(Wanted::Last, items, 105);
    assert_eq!(seen(&mut transcript, 40, 5), before);
    transcript.to_end();
    assert_eq!(seen(&mut transcript, 40, 1), ["item 104"]);
}

#[test]
fn images_far_from_what_is_looked_at_are_let_go() {
    use consort_model::Image;
    let picture = |index: u64| {
        let image = Image { mime_type: "image/png".into(), data: "A".repeat(1 << 20) };
        item(index, ItemBody::Image(image))
    };
    let mut transcript = Transcript::default();
    transcript.wants();
    transcript.page(Wanted::Last, vec![picture(0)], 1);
    seen(&mut transcript, 40, 10);
    for index in 1..400 {
        transcript.apply(&AgentEvent::ItemAdded { item: picture(index) });
    }
    assert_eq!(transcript.next(), 400);
    assert_eq!(transcript.items().count(), 2 * (10 + 4 * MARGIN), "more than are near are not held");
    assert_eq!(transcript.wants(), None, "and what was let go is not asked for again at once");
}

#[test]
fn folded_tool_calls_unfold_to_everything() {
    use consort_model::{ToolCall, ToolCallId, ToolKind, ToolStatus};
    let call = ToolCall {
        status: ToolStatus::Completed,
        output: (0..50).map(|line| format!("line {line}\n")).collect(),
        ..ToolCall::new(ToolCallId::new("c"), ToolKind::Execute, "make")
    };
    let mut transcript = Transcript::default();
    transcript.wants();
    transcript.page(Wanted::Last, vec![item(0, ItemBody::Tool(call))], 1);
    let folded = seen(&mut transcript, 40, 60);
    assert_eq!(folded, ["● run make", "  │ 47 lines ›", "  │ line 47", "  │ line 48", "  │ line 49"]);
    transcript.toggle(0);
    assert_eq!(seen(&mut transcript, 40, 60).len(), 51);
}

#[test]
fn a_search_finds_backwards_and_forwards() {
    let mut transcript = loaded(50);
    seen(&mut transcript, 40, 5);
    assert!(transcript.find("ITEM 3", true));
    assert_eq!(transcript.chosen(), Some(39));
    assert!(transcript.find("item 3", true));
    assert_eq!(transcript.chosen(), Some(38));
    assert!(transcript.find("item 3", false));
    assert_eq!(transcript.chosen(), Some(39));
    assert!(!transcript.find("nowhere", true));
}

proptest! {
    #[test]
    fn whatever_one_does_the_view_has_its_height_and_scrolling_back_undoes_it(
        steps in proptest::collection::vec((0u8..5, -30isize..30), 1..40),
        height in 1usize..20,
        width in 8u16..60,
    ) {
        let mut transcript = loaded(120);
        for (step, by) in steps {
            match step {
                0 | 1 => with_look(width, |look| transcript.scroll(look, by)),
                2 => { transcript.apply(&added(transcript.total, "something new that is a little longer")); }
                3 => transcript.toggle_all(),
                _ => transcript.to_end(),
            }
            let shown = seen(&mut transcript, width, height);
            prop_assert!(shown.len() <= height);
            let enough = with_look(width, |look| (0..transcript.entries.len()).map(|at| transcript.count(at, look)).sum::<usize>());
            prop_assert!(shown.len() == height.min(enough) || transcript.next() < transcript.total, "{} of {enough}", shown.len());
            while let Some(wanted) = transcript.wants() {
                let (from, upto) = match wanted {
                    Wanted::Last => (transcript.total.saturating_sub(60), transcript.total),
                    Wanted::Before(before) => (before.saturating_sub(60), before),
                    Wanted::From(from) => (from, (from + 60).min(transcript.total)),
                };
                let total = transcript.total;
                transcript.page(wanted, (from..upto).map(|index| said(index, &format!("item {index}"))).collect(), total);
            }
        }
    }
}
