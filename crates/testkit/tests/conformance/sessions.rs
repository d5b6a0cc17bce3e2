//! Sessions that the program keeps, and going on with one.

use consort_daemon::protocol::{AgentView, Call, SessionView};
use consort_model::{ItemBody, Status};

use crate::stage::Stage;

pub fn sessions(stage: &mut Stage) {
    stage.turn("[[say Remember the word praline.]]").completed();
    let session = stage.now().session.expect("a session").id;
    let found = list(stage);
    let mine = found.iter().find(|view| view.session.id == session);
    let mine = mine.unwrap_or_else(|| panic!("{session} is not in {found:#?}"));
    assert_eq!(mine.agent.as_deref(), Some(stage.now().name.as_str()));
    assert!(mine.session.title.is_some() && mine.session.updated_at.is_some(), "{mine:#?}");
    // While an agent has it, no other one goes on with it.
    let new = stage.client.new_agent_request(stage.cli.name());
    let call = |agent| Call::ResumeSession { session: session.clone(), agent };
    assert!(stage.client.refused(&call(new.clone())).message.contains("has that session"));
    stage.client.close(stage.agent);
    stage.client.wait_status(stage.agent, Status::Closed);
    let agent: AgentView = stage.client.call(&call(new));
    stage.agent = agent.id;
    stage.client.wait_status(stage.agent, Status::Idle);
    stage.turn("[[say What was the word?]]").completed().without_trouble();
    let sent = stage.request("say").body.to_string();
    assert!(sent.contains("praline"), "it goes on with what was said: {sent}");
    let said = |item: &consort_model::Item| match &item.body {
        ItemBody::Notice { text, .. } => text.contains(&session),
        _ => false,
    };
    assert!(stage.client.items(stage.agent).iter().any(said), "where it came from is told");
    assert_eq!(stage.now().session.expect("a session").id, session);
}

fn list(stage: &Stage) -> Vec<SessionView> {
    let call = Call::ListSessions {
        profile: Some(stage.cli.name().to_owned()),
        cwd: stage.home.work().canonicalize().unwrap(),
    };
    stage.client.call(&call)
}
