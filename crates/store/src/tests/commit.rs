//! Deciding, committing, failing and recovering.

use std::os::unix::fs::PermissionsExt;

use consort_model::Refusal;
use rusqlite::Connection;

use super::*;

#[tokio::test]
async fn a_change_is_stamped_applied_published_and_answered() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let committed = fixture.commit(vec![created(1), renamed(1, "new")]).await.unwrap();
    assert_eq!(committed.first_seq, 1);
    assert_eq!(committed.events.iter().map(|stamped| stamped.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(fixture.told(), committed.events);
    assert_eq!(fixture.state().agents[&agent_id(1)].name, "new");
    assert_eq!(fixture.state().seq, 2);
}

#[tokio::test]
async fn the_database_is_for_this_user_only() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let fixture = Fixture::open(&home);
    fixture.commit(vec![created(1)]).await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    for entry in std::fs::read_dir(&home).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_refusal_changes_nothing_and_uses_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1)]).await.unwrap();
    let refused = fixture.store.commit(Change::new(|_, _| Err(Refusal::CompanionOfCompanion)));
    assert_eq!(refused.await.unwrap_err(), CommitError::Refused(Refusal::CompanionOfCompanion));
    let unknown = fixture.commit(vec![created(2), renamed(3, "nobody")]).await.unwrap_err();
    assert!(matches!(unknown, CommitError::Refused(Refusal::NoSuchAgent { .. })), "{unknown}");
    assert_eq!(fixture.commit(vec![renamed(1, "b")]).await.unwrap().first_seq, 2);
    assert_eq!(fixture.state().agents.len(), 1);
}

#[tokio::test]
async fn a_panic_in_a_decision_is_a_refusal_and_the_writer_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let panicked = fixture.store.commit(Change::new(|_, _| panic!("a bug"))).await;
    assert!(matches!(panicked, Err(CommitError::Refused(Refusal::Invalid { .. }))));
    fixture.commit(vec![created(1)]).await.unwrap();
}

#[tokio::test]
async fn each_decision_sees_what_was_decided_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1)]).await.unwrap();
    // All are handed over before the first is answered, so that many of them share a batch.
    let tasks: Vec<_> = (0..300)
        .map(|_| {
            let store = fixture.store.clone();
            tokio::spawn(async move {
                let count = Change::new(|state: &State, _| {
                    let name = &state.agents[&agent_id(1)].name;
                    let count: u32 = name.parse().unwrap_or(0);
                    if count >= 200 {
                        return Err(Refusal::CompanionOfCompanion);
                    }
                    Ok(vec![renamed(1, &(count + 1).to_string())])
                });
                store.commit(count).await
            })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        accepted += u32::from(task.await.unwrap().is_ok());
    }
    assert_eq!(accepted, 200);
    assert_eq!(fixture.state().agents[&agent_id(1)].name, "200");
    let numbers: Vec<u64> = fixture.told().iter().map(|stamped| stamped.seq).collect();
    assert_eq!(numbers, (1..=201).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_work_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![created(1), text_item(1, 0, "a", false)]).await.unwrap();
    let before = fixture.state();
    // A limit below the present size is raised to it: the database cannot grow.
    fixture.store.interfere("PRAGMA max_page_count = 1");
    let big = "x".repeat(100_000);
    let change = vec![renamed(1, "lost"), created(2), appended(1, 0, 1, &big)];
    let failed = fixture.commit(change.clone()).await.unwrap_err();
    let CommitError::Unavailable { reason } = failed else { panic!("{failed}") };
    assert!(reason.contains("is full"), "{reason}");
    assert_eq!(fixture.state(), before);
    assert_eq!(fixture.told().len(), 2);
    let saw_old = fixture.store.commit(Change::new(move |state: &State, _| {
        assert_eq!(*state, before);
        Ok(vec![renamed(1, "small")])
    }));
    assert_eq!(saw_old.await.unwrap().first_seq, 3, "what fits is still taken");
    fixture.store.interfere("PRAGMA max_page_count = 1000000");
    fixture.commit(change).await.unwrap();
    assert_eq!(fixture.state().agents.len(), 2);
    let item = fixture.store.item(agent_id(1), ItemIndex(0)).await.unwrap().unwrap();
    assert_eq!(text_of(&item).len(), 100_001);
}

#[tokio::test]
async fn a_locked_database_is_reported_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.store.interfere("PRAGMA busy_timeout = 10");
    let other = Connection::open(dir.path().join("consort.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let failed = fixture.commit(vec![created(1)]).await.unwrap_err();
    assert!(failed.to_string().contains("is locked"), "{failed}");
    other.execute_batch("ROLLBACK").unwrap();
    fixture.commit(vec![created(1)]).await.unwrap();
}

#[tokio::test]
async fn closing_finishes_what_was_handed_over_and_refuses_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    let store = fixture.store.clone();
    let handed_over = tokio::spawn({
        let store = store.clone();
        async move { store.commit(Change::new(|_, _| Ok(vec![created(1)]))).await }
    });
    tokio::task::yield_now().await;
    store.clone().close();
    handed_over.await.unwrap().unwrap();
    assert_eq!(store.commit(Change::new(|_, _| Ok(vec![]))).await.unwrap_err(), CommitError::Stopped);
    assert!(!dir.path().join("consort.db-wal").exists(), "the log is folded in");
    store.close();
}

#[tokio::test]
async fn profiles_are_numbered_and_published_but_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    fixture.commit(vec![Event::ProfilesChanged { profiles: vec![] }]).await.unwrap();
    assert_eq!(fixture.told().len(), 1);
    fixture.store.close();
    let fixture = Fixture::open(dir.path());
    assert_eq!(fixture.state().seq, 1);
    assert_eq!(fixture.commit(vec![created(1)]).await.unwrap().first_seq, 2);
    let database = Connection::open(dir.path().join("consort.db")).unwrap();
    let rows: u32 = database.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn settings_survive() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::open(dir.path());
    assert_eq!(fixture.store.setting("theme").await.unwrap(), None);
    fixture.store.set_setting("theme", Some("dark".into())).await.unwrap();
    fixture.store.set_setting("gone", Some("x".into())).await.unwrap();
    fixture.store.set_setting("gone", None).await.unwrap();
    fixture.store.close();
    let fixture = Fixture::open(dir.path());
    assert_eq!(fixture.store.setting("theme").await.unwrap().as_deref(), Some("dark"));
    assert_eq!(fixture.store.setting("gone").await.unwrap(), None);
}
