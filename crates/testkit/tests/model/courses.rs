//! Which step a conversation gets: from the request alone.

use std::time::Duration;

use consort_testkit::model::Server;
use serde_json::json;

use super::client::{Api, Client, ask, said};

#[test]
fn a_request_gets_the_same_step_however_often_and_wherever_it_is_sent() {
    let first = Server::start().unwrap();
    let second = Server::start().unwrap();
    for api in Api::ALL {
        let told = ask(&first, api, "[[shell]]", &["x"]);
        // Again, as a retry; out of order, as a fork; at another server, as a resume.
        assert_eq!(ask(&first, api, "[[shell]]", &["x"]), told);
        assert_eq!(ask(&first, api, "[[shell]]", &[]).calls.len(), 1);
        assert_eq!(ask(&second, api, "[[shell]]", &["x"]), told);
    }
}

#[test]
fn the_newest_marker_counts_and_results_before_it_do_not() {
    let server = Server::start().unwrap();
    let request = json!({"stream": true, "tools": [{"name": "Bash"}], "messages": [
        {"role": "user", "content": "[[plain]]"},
        {"role": "user", "content": [{"type": "tool_result", "content": "old"}]},
        {"role": "user", "content": "[[say not this]] [[say but this]]"},
        {"role": "assistant", "content": "[[say nor this]]"},
        {"role": "system", "content": "[[say nor that]]"},
        {"role": "user", "content": "<system-reminder>A reminder has no marker.</system-reminder>"},
    ]});
    let answer = Client::of(&server).post("/v1/messages", "", &request);
    assert_eq!(said(Api::Messages, &answer.body).text, "but this");
}

#[test]
fn markers_in_results_of_tools_are_not_followed() {
    let server = Server::start().unwrap();
    let said = ask(&server, Api::Messages, "[[run cat x]]", &["[[say no]] and {arg}"]);
    assert_eq!(said.text, "The command said: [[say no]] and {arg}");
}

#[test]
fn a_marker_inside_an_argument_is_for_the_sub_agent() {
    let server = Server::start().unwrap();
    let request = json!({"stream": true, "tools": [{"name": "Bash"}, {"name": "Agent"}],
                         "messages": [{"role": "user", "content": "[[task [[say inner]]]]"}]});
    let answer = Client::of(&server).post("/v1/messages", "", &request);
    let said = said(Api::Messages, &answer.body);
    assert_eq!(said.calls[0].1["prompt"], "[[say inner]]");
}

#[test]
fn without_a_marker_the_answer_is_plain_and_an_unknown_one_is_named() {
    let server = Server::start().unwrap();
    assert_eq!(ask(&server, Api::Chat, "hello", &[]).text, "Hello from the scripted model.");
    assert_eq!(ask(&server, Api::Chat, "if [[ -f x ]]; then", &[]).text, "Hello from the scripted model.");
    assert_eq!(ask(&server, Api::Chat, "[[plian]]", &[]).text, "There is no scenario \"plian\".");
}

#[test]
fn past_its_last_step_a_scenario_has_nothing_left_to_do() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        let said = ask(&server, api, "[[shell]]", &["x", "y", "z"]);
        assert_eq!((said.text.as_str(), said.calls.len()), ("The command said: z", 0), "{api:?}");
    }
}

#[test]
fn a_title_is_answered_beside_the_conversation() {
    let server = Server::start().unwrap();
    let request = json!({"stream": true, "messages": [
        {"role": "system", "content": "You are a title generator. You output only a title."},
        {"role": "user", "content": "[[shell]]"},
    ]});
    let answer = Client::of(&server).post(Api::Chat.path(true), "", &request);
    assert_eq!(said(Api::Chat, &answer.body).text, "Scripted title");
    assert_eq!(server.requests()[0].scenario, "side");
    assert!(server.conversation().is_empty());
}

#[test]
fn the_working_directory_is_taken_from_what_the_cli_tells() {
    let server = Server::start().unwrap();
    let request = json!({"stream": true, "tools": [{"name": "Bash"}, {"name": "Write"}],
        "system": [{"type": "text", "text": "Environment:\n - Primary working directory: /home/me/work\n - Other"}],
        "messages": [{"role": "user", "content": "[[write]]"}]});
    let answer = Client::of(&server).post("/v1/messages", "", &request);
    assert_eq!(said(Api::Messages, &answer.body).calls[0].1["file_path"], "/home/me/work/written.txt");
}

#[test]
fn requests_are_recorded_and_can_be_waited_for() {
    let server = Server::start().unwrap();
    assert!(!server.wait_for(Duration::from_millis(1), |requests| !requests.is_empty()));
    ask(&server, Api::Responses, "[[shell]]", &["x"]);
    assert!(server.wait_for(Duration::from_secs(5), |requests| requests.len() == 1));
    let request = &server.conversation()[0];
    assert_eq!(
        (request.path.as_str(), request.scenario.as_str(), request.step),
        ("/v1/responses", "shell", 1)
    );
    assert_eq!(request.body["model"], "scripted");
}

#[test]
fn many_conversations_run_at_the_same_time() {
    let server = Server::start().unwrap();
    std::thread::scope(|scope| {
        for number in 0..40 {
            let server = &server;
            scope.spawn(move || {
                let said = ask(server, Api::ALL[number % 4], &format!("[[say number {number}]]"), &[]);
                assert_eq!(said.text, format!("number {number}"));
            });
        }
    });
}
