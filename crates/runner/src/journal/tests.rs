use super::*;
use crate::protocol::{Record, RecordBody, first_frame};

fn journal(dir: &Path) -> Journal {
    Journal::create(dir, 1 << 30).unwrap()
}

fn say(journal: &mut Journal, text: &str) {
    journal.append_output(text.as_bytes(), true);
    journal.flush().unwrap();
}

/// Everything from a position on, as a reader with a small buffer gets it.
fn served(journal: &mut Journal, mut position: u64) -> Vec<Record> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 700]);
    loop {
        let count = journal.read(position, &mut buffer).unwrap();
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..count]);
        position += count as u64;
    }
    let (mut rest, mut records) = (bytes.as_slice(), Vec::new());
    while let Some((head, payload)) = first_frame(rest).unwrap() {
        records.push(Record::decode(head.kind, payload).unwrap());
        rest = &rest[head.total()..];
    }
    assert!(rest.is_empty());
    records
}

fn offsets(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.offset).collect()
}

#[test]
fn records_are_served_from_any_offset() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    for index in 0..1000 {
        say(&mut journal, &format!("line {index}"));
    }
    for from in [0, 1, 500, 999, 1000] {
        let position = journal.locate(from).unwrap();
        let expected: Vec<u64> = (from..1000).collect();
        assert_eq!(offsets(&served(&mut journal, position)), expected);
    }
}

#[test]
fn confirmed_segments_are_removed_and_an_idle_journal_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    let line = "x".repeat(60_000);
    for _ in 0..200 {
        say(&mut journal, &line);
    }
    assert!(segment_files(dir.path()).unwrap().len() >= 3);
    journal.confirm(150);
    assert!(journal.first_offset() > 0 && journal.first_offset() <= 150);
    let position = journal.locate(150).unwrap();
    assert_eq!(offsets(&served(&mut journal, position)), (150..200).collect::<Vec<_>>());
    journal.confirm(200);
    assert_eq!(segment_files(dir.path()).unwrap().len(), 0);
    say(&mut journal, "after");
    let position = journal.locate(200).unwrap();
    assert_eq!(offsets(&served(&mut journal, position)), [200]);
}

#[test]
fn the_journal_is_full_at_its_limit_until_something_is_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), 100_000).unwrap();
    let line = "x".repeat(1000);
    while !journal.is_full() {
        say(&mut journal, &line);
    }
    assert!(journal.next_offset() < 110);
    journal.confirm(journal.next_offset() - 10);
    assert!(!journal.is_full());
}

#[test]
fn stored_input_outlives_the_segment_it_was_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    let bytes = vec![7; 300_000];
    let mut spool = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut spool, &bytes).unwrap();
    let mut input = journal.store_input(InputSource::File(&spool, 300_000)).unwrap();
    assert_eq!(journal.last_input(), 1);
    journal.confirm(1);
    assert_eq!(segment_files(dir.path()).unwrap().len(), 0);
    let (mut read, mut buffer) = (Vec::new(), [0; 1000]);
    while input.left() > 0 {
        let count = input.read(&mut buffer).unwrap();
        read.extend_from_slice(&buffer[..count]);
        input.advance(count);
    }
    assert_eq!(read, bytes);
}

#[test]
fn salvage_reads_whole_records_and_ignores_a_torn_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(dir.path());
    for index in 0..10 {
        say(&mut journal, &format!("line {index}"));
    }
    journal.store_input(InputSource::Bytes(b"in")).unwrap();
    let path = segment_files(dir.path()).unwrap().remove(0).1;
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let records: Vec<_> = read_from(dir.path(), 0).unwrap().map(Result::unwrap).collect();
        assert_eq!(offsets(&records), (0..records.len() as u64).collect::<Vec<_>>());
        assert_eq!(records.len() == 11, cut == whole.len());
    }
    let last: Vec<_> = read_from(dir.path(), 10).unwrap().map(Result::unwrap).collect();
    assert_eq!(last, [Record { offset: 10, body: RecordBody::Input { number: 1, bytes: b"in".to_vec() } }]);
}

#[test]
fn salvage_of_nothing_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_from(dir.path(), 0).unwrap().count(), 0);
    assert_eq!(read_from(&dir.path().join("missing"), 3).unwrap().count(), 0);
}

#[test]
fn salvage_spans_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), 40_000).unwrap();
    for index in 0..100 {
        say(&mut journal, &format!("{index} {}", "x".repeat(1000)));
    }
    assert!(segment_files(dir.path()).unwrap().len() > 3);
    let records: Vec<_> = read_from(dir.path(), 37).unwrap().map(Result::unwrap).collect();
    assert_eq!(offsets(&records), (37..100).collect::<Vec<_>>());
}

#[test]
fn a_write_that_fails_is_tried_again_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal(&dir.path().join("later"));
    journal.append_output(b"kept", true);
    assert!(journal.flush().is_err());
    assert!(journal.has_unwritten());
    assert!(journal.store_input(InputSource::Bytes(b"in")).is_err());
    std::fs::create_dir(dir.path().join("later")).unwrap();
    journal.flush().unwrap();
    let records = served(&mut journal, 0);
    assert_eq!(
        records,
        [Record { offset: 0, body: RecordBody::Output { bytes: b"kept".to_vec(), end_of_line: true } }]
    );
}
