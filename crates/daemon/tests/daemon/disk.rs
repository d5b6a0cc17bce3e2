//! A disk that is full: new work is refused in plain words, nothing acknowledged is lost, and all goes on once there is
//! room again.

use consort_daemon::protocol::{Call, NewPrompt, Sent, codes};
use consort_model::{ItemBody, PromptId, TurnOutcome};
use consort_testkit::harness::{Home, SmallDisk, poll};
use uuid::Uuid;

fn send(agent: consort_model::AgentId, text: &str) -> Call {
    let prompt = NewPrompt { id: PromptId::new(Uuid::now_v7()), text: text.to_owned(), attachments: vec![] };
    Call::Send { agent: agent.to_string(), prompt }
}

#[test]
fn heavy_a_full_disk_stops_new_work_and_loses_nothing() {
    let disk = match SmallDisk::mount(16 << 20) {
        Ok(disk) => disk,
        Err(reason) => {
            println!("skipped: a small disk cannot be mounted here ({reason})");
            return;
        }
    };
    let home = Home::on(&disk);
    home.start_daemon();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.run(agent, "[[say before]]");
    let filler = home.root().join("filler");
    fill(&filler);
    // Some kilobytes may still fit; a larger prompt never does.
    let mut acknowledged = Vec::new();
    let refused = (0..200).find_map(|n| {
        let call = send(agent, &format!("[[say kept-{n}]] {}", "x".repeat(20_000)));
        match client.try_call::<Sent>(&call) {
            Ok(sent) => {
                acknowledged.push(sent.prompt);
                None
            }
            Err(error) => Some((error, call)),
        }
    });
    let (error, call) = refused.expect("a full disk refuses");
    let consort_daemon::client::ClientError::Answer(error) = error else { panic!("{error}") };
    assert_eq!(error.code, codes::UNAVAILABLE);
    assert!(!error.message.is_empty());
    assert_eq!(client.view(agent).id, agent, "reading still works");
    std::fs::remove_file(&filler).unwrap();
    // The same prompt again, once there is room.
    let sent: Sent = poll("the disk is taken up again", || client.try_call(&call).ok());
    acknowledged.push(sent.prompt);
    let last = client.send(agent, "[[say after]]");
    assert_eq!(client.wait_turn(agent, last).last_outcome, Some(TurnOutcome::Completed));
    let delivered: Vec<PromptId> = client
        .items(agent)
        .into_iter()
        .filter_map(|item| match item.body {
            ItemBody::User { prompt, .. } => Some(prompt),
            _ => None,
        })
        .collect();
    for prompt in &acknowledged {
        assert_eq!(delivered.iter().filter(|there| *there == prompt).count(), 1);
    }
    drop(client);
    home.finish();
}

/// Writes until nothing more fits.
fn fill(path: &std::path::Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
