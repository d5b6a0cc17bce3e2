//! Transcripts by page, text that is being written, and links.

use consort_model::Timestamp;

use super::*;
use crate::{LinkChange, Page};

async fn indexes(fixture: &Fixture, page: Page) -> Vec<u64> {
    let items = fixture.store.items(agent_id(1), page).await.unwrap();
    items.iter().map(|item| item.index.0).collect()
}

#[tokio::test]
async fn pages_are_the_items_at_their_position_in_ascending_order() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let items = (0..20).map(|index| text_item(1, index, "x", true));
    fixture.commit([created(1), created(2)].into_iter().chain(items).collect()).await.unwrap();
    fixture.commit(vec![text_item(2, 0, "another's", true)]).await.unwrap();
    let at = ItemIndex;
    assert_eq!(indexes(&fixture, Page::Last { limit: 3 }).await, [17, 18, 19]);
    assert_eq!(indexes(&fixture, Page::Before { index: at(17), limit: 3 }).await, [14, 15, 16]);
    assert_eq!(indexes(&fixture, Page::Before { index: at(2), limit: 3 }).await, [0, 1]);
    assert!(indexes(&fixture, Page::Before { index: at(0), limit: 3 }).await.is_empty());
    assert_eq!(indexes(&fixture, Page::Before { index: at(u64::MAX), limit: 1 }).await, [19]);
    assert_eq!(indexes(&fixture, Page::From { index: at(18), limit: 3 }).await, [18, 19]);
    assert!(indexes(&fixture, Page::From { index: at(u64::MAX), limit: 3 }).await.is_empty());
    assert!(indexes(&fixture, Page::Last { limit: 0 }).await.is_empty());
    assert_eq!(fixture.store.items(agent_id(9), Page::Last { limit: 5 }).await.unwrap(), []);
}

#[tokio::test]
async fn a_page_of_huge_items_is_cut_short_next_to_its_position() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1)]).await.unwrap();
    let huge = "x".repeat(3 << 20);
    for index in 0..4 {
        fixture.commit(vec![text_item(1, index, &huge, true)]).await.unwrap();
    }
    assert_eq!(indexes(&fixture, Page::Last { limit: 10 }).await, [2, 3]);
    assert_eq!(indexes(&fixture, Page::Before { index: ItemIndex(2), limit: 10 }).await, [0, 1]);
}

#[tokio::test]
async fn text_that_is_being_written_reads_whole_and_is_folded_when_done() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1), text_item(1, 0, "Grüße, ", false)]).await.unwrap();
    let mut offset = "Grüße, ".len() as u64;
    for piece in ["Wel", "t", "\0", " 🎻"] {
        fixture.commit(vec![appended(1, 0, offset, piece)]).await.unwrap();
        offset += piece.len() as u64;
    }
    let item = fixture.store.item(agent_id(1), ItemIndex(0)).await.unwrap().unwrap();
    assert_eq!(text_of(&item), "Grüße, Welt\0 🎻");
    assert!(!item.done);
    fixture.commit(vec![appended(1, 0, offset, "!"), text_done(1, 0)]).await.unwrap();
    let items = fixture.store.items(agent_id(1), Page::Last { limit: 5 }).await.unwrap();
    assert_eq!(text_of(&items[0]), "Grüße, Welt\0 🎻!");
    assert!(items[0].done);
    let database = rusqlite::Connection::open(dir.path().join("consort.db")).unwrap();
    let count = "SELECT (SELECT count(*) FROM item_text) + (SELECT count(*) FROM text_tails)";
    let pieces: u32 = database.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(pieces, 0);
}

#[tokio::test]
async fn text_in_pieces_of_any_length_reads_whole_at_any_time() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1), text_item(1, 0, "", false)]).await.unwrap();
    let mut whole = String::new();
    for length in [1, 500, 11, 1, 512, 513, 1, 511, 2000, 2000, 3, 600] {
        let piece = char::from(b'a' + (length % 26) as u8).to_string().repeat(length);
        fixture.commit(vec![appended(1, 0, whole.len() as u64, &piece)]).await.unwrap();
        whole.push_str(&piece);
        let item = fixture.store.item(agent_id(1), ItemIndex(0)).await.unwrap().unwrap();
        assert_eq!(text_of(&item), whole);
    }
    let state = fixture.state();
    fixture.store.close();
    let fixture = Fixture::open(dir.path());
    assert_eq!(fixture.state(), state);
    fixture.commit(vec![text_done(1, 0)]).await.unwrap();
    let item = fixture.store.item(agent_id(1), ItemIndex(0)).await.unwrap().unwrap();
    assert_eq!(text_of(&item), whole);
}

#[tokio::test]
async fn loading_has_few_items_to_catch_up_with_however_many_were_added() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1)]).await.unwrap();
    for start in (0..2000).step_by(50) {
        let items = (start..start + 50).map(|index| text_item(1, index, "x", true));
        fixture.commit(items.collect()).await.unwrap();
    }
    let database = rusqlite::Connection::open(dir.path().join("consort.db")).unwrap();
    let record: String = database.query_row("SELECT record FROM agents", [], |row| row.get(0)).unwrap();
    let recorded: Agent = serde_json::from_str(&record).unwrap();
    assert!(recorded.cursor.items > 1700, "{}", recorded.cursor.items);
    let state = fixture.state();
    fixture.store.close();
    assert_eq!(Fixture::open(dir.path()).state(), state);
}

#[tokio::test]
async fn a_changed_item_keeps_its_place_turn_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1), text_item(1, 0, "a", false), appended(1, 0, 1, "b")]).await.unwrap();
    let body = ItemBody::Text { text: "whole".into() };
    let change = AgentEvent::ItemChanged { index: ItemIndex(0), done: true, body: body.clone() };
    fixture.commit(vec![Event::of(agent_id(1), change)]).await.unwrap();
    let item = fixture.store.item(agent_id(1), ItemIndex(0)).await.unwrap().unwrap();
    let expected = Item { index: ItemIndex(0), turn: None, at: Timestamp(7), done: true, within: None, body };
    assert_eq!(item, expected);
}

fn with_link(link: LinkChange) -> Change {
    Change::new(|_, _| Ok(vec![])).with_link(link)
}

#[tokio::test]
async fn a_link_keeps_driver_state_offset_and_unconfirmed_frames() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let change = || LinkChange::new(agent_id(1), 1);
    let frames = vec![(1, b"one".to_vec()), (2, b"two".to_vec()), (3, b"three".to_vec())];
    let first = LinkChange {
        driver_state: Some(b"state".to_vec()),
        next_offset: Some(10),
        outbox: frames,
        ..change()
    };
    fixture.store.commit(with_link(first)).await.unwrap();
    fixture.store.commit(with_link(LinkChange { confirmed_input: Some(2), ..change() })).await.unwrap();
    fixture.store.commit(with_link(LinkChange { next_offset: Some(20), ..change() })).await.unwrap();
    let expected = Link {
        agent: agent_id(1),
        generation: 1,
        driver_state: Some(b"state".to_vec()),
        next_offset: 20,
        outbox: vec![(3, b"three".to_vec())],
        last_input: 3,
    };
    assert_eq!(fixture.store.link(agent_id(1)).await.unwrap(), Some(expected.clone()));
    assert_eq!(fixture.store.link(agent_id(2)).await.unwrap(), None);
    fixture.store.close();
    assert_eq!(Fixture::open(dir.path()).links, [expected]);
}

#[tokio::test]
async fn a_newer_generation_starts_afresh_and_an_older_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let full = |generation| LinkChange {
        driver_state: Some(vec![generation as u8]),
        next_offset: Some(10),
        outbox: vec![(5, vec![1])],
        ..LinkChange::new(agent_id(1), generation)
    };
    fixture.store.commit(with_link(full(2))).await.unwrap();
    fixture.store.commit(with_link(LinkChange::new(agent_id(1), 3))).await.unwrap();
    let fresh = Link {
        agent: agent_id(1),
        generation: 3,
        driver_state: None,
        next_offset: 0,
        outbox: vec![],
        last_input: 0,
    };
    assert_eq!(fixture.store.link(agent_id(1)).await.unwrap(), Some(fresh.clone()));
    let forget = |generation| LinkChange { forget: true, ..LinkChange::new(agent_id(1), generation) };
    fixture.store.commit(with_link(full(2))).await.unwrap();
    fixture.store.commit(with_link(forget(2))).await.unwrap();
    assert_eq!(fixture.store.link(agent_id(1)).await.unwrap(), Some(fresh));
    fixture.store.commit(with_link(forget(3))).await.unwrap();
    assert_eq!(fixture.store.link(agent_id(1)).await.unwrap(), None);
}

#[tokio::test]
async fn the_link_of_a_refused_change_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let refused = Change::new(|_, _| Err(consort_model::Refusal::CompanionOfCompanion))
        .with_link(LinkChange::new(agent_id(1), 1));
    fixture.store.commit(refused).await.unwrap_err();
    assert_eq!(fixture.store.link(agent_id(1)).await.unwrap(), None);
}
