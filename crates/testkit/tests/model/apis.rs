//! What each API carries.

use std::io::Read;
use std::time::{Duration, Instant};

use consort_testkit::model::Server;
use serde_json::{Value, json};

use super::client::{Api, Client, ask, said};

#[test]
fn an_answer_comes_in_pieces_and_to_its_end() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        let said = ask(&server, api, "[[plain]] hi", &[]);
        assert_eq!(said.text, "Hello from the scripted model.", "{api:?}");
        assert!(said.pieces > 1 && said.ended && said.calls.is_empty(), "{api:?}: {said:?}");
        assert_eq!((said.input_tokens, said.output_tokens), (11, 7), "{api:?}");
    }
}

#[test]
fn thinking_comes_apart_from_the_text() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        let said = ask(&server, api, "[[thinking]]", &[]);
        assert_eq!(said.thinking, "The question is simple, so the answer can be short.", "{api:?}");
        assert_eq!(said.text, "I have thought about it.", "{api:?}");
    }
}

#[test]
fn the_same_marker_calls_the_tool_of_the_cli_that_asks() {
    let server = Server::start().unwrap();
    let command = "echo 'made by the shell' | tee shell.txt";
    let shell =
        [("Bash", "command"), ("exec_command", "cmd"), ("bash", "command"), ("run_shell_command", "command")];
    for (api, (name, field)) in Api::ALL.into_iter().zip(shell) {
        let said = ask(&server, api, "[[shell]]", &[]);
        assert_eq!(said.calls.len(), 1, "{api:?}");
        assert_eq!((said.calls[0].0.as_str(), &said.calls[0].1[field]), (name, &json!(command)), "{api:?}");
        let end = ask(&server, api, "[[shell]]", &["what it printed\n"]);
        assert_eq!(end.text, "The command said: what it printed", "{api:?}");
        assert!(end.calls.is_empty());
    }
}

#[test]
fn calls_of_one_answer_come_together() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        assert_eq!(ask(&server, api, "[[parallel]]", &[]).calls.len(), 2, "{api:?}");
        let end = ask(&server, api, "[[parallel]]", &["first", "second"]);
        assert_eq!(end.text, "Both are done: first | second", "{api:?}");
    }
}

#[test]
fn an_mcp_tool_is_named_as_the_cli_names_it() {
    let server = Server::start().unwrap();
    let names = ["mcp__consort__echo", "mcp__consort/echo", "consort_echo", "mcp_consort_echo"];
    for (api, name) in Api::ALL.into_iter().zip(names) {
        let said = ask(&server, api, r#"[[mcp echo {"text": "hi"}]]"#, &[]);
        assert_eq!(said.calls, [(name.to_owned(), json!({"text": "hi"}))], "{api:?}");
    }
}

#[test]
fn an_edit_takes_the_form_that_the_cli_edits_with() {
    let server = Server::start().unwrap();
    let claude = ask(&server, Api::Messages, "[[edit /w/notes.txt]]", &["1\told line"]);
    assert_eq!(
        claude.calls,
        [(
            "Edit".to_owned(),
            json!({"file_path": "/w/notes.txt", "old_string": "old line", "new_string": "new line"})
        )]
    );
    // Codex edits without having read.
    let codex = ask(&server, Api::Responses, "[[edit notes.txt]]", &[]);
    let patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-old line\n+new line\n*** End Patch";
    assert_eq!(codex.calls, [("apply_patch".to_owned(), json!(patch))]);
    assert_eq!(ask(&server, Api::Responses, "[[edit]]", &["done"]).text, "The edit gave: done");
}

#[test]
fn an_act_without_a_tool_ends_the_turn_with_words() {
    let server = Server::start().unwrap();
    let said = ask(&server, Api::Chat, "[[question]]", &[]);
    assert_eq!(said.text, "No tool for asking questions is offered.");
    assert!(said.calls.is_empty());
}

#[test]
fn usage_is_counted_as_each_api_counts() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        let said = ask(&server, api, "[[usage]]", &[]);
        assert_eq!((said.input_tokens, said.output_tokens), (1230, 400), "{api:?}");
    }
}

#[test]
fn errors_have_the_status_and_the_form_of_the_api() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        for status in [400, 401, 429, 500, 529] {
            let request = api.request(&format!("[[error-{status}]]"), &[], true);
            let answer = Client::of(&server).post(api.path(true), "", &request);
            assert_eq!(answer.status, status, "{api:?}");
            let body: Value = serde_json::from_str(&answer.body).unwrap();
            assert!(body["error"]["message"].as_str().unwrap().starts_with("Scripted: "), "{api:?}: {body}");
            let retry_after =
                answer.headers.iter().any(|header| header == &("retry-after".into(), "1".into()));
            assert_eq!(retry_after, status == 429, "{api:?}");
        }
    }
}

#[test]
fn an_error_can_pass_with_attempts_or_with_time() {
    let server = Server::start().unwrap();
    let request = Api::Messages.request("[[error-once]]", &[], true);
    let status = |headers: &str| Client::of(&server).post("/v1/messages", headers, &request).status;
    assert_eq!(status(""), 529);
    assert_eq!(status("x-stainless-retry-count: 0\r\n"), 529);
    assert_eq!(status("x-stainless-retry-count: 1\r\n"), 200);
    let of = |until: &str| {
        let request = Api::Chat.request(&format!("[[error-until {until}]]"), &[], true);
        Client::of(&server).post(Api::Chat.path(true), "", &request).status
    };
    assert_eq!((of("1"), of("99999999999999")), (200, 529));
    for api in Api::ALL {
        let request = api.request(&format!("[[error-first 2 {api:?}]]"), &[], true);
        let statuses = [(); 4].map(|()| Client::of(&server).post(api.path(true), "", &request).status);
        assert_eq!(statuses, [503, 503, 200, 200], "{api:?}");
    }
}

#[test]
fn a_cut_answer_ends_without_its_end() {
    let server = Server::start().unwrap();
    for api in Api::ALL {
        let answer = Client::of(&server).post(api.path(true), "", &api.request("[[cut]]", &[], true));
        assert!(!answer.whole, "{api:?}");
        let said = said(api, &answer.body);
        assert_eq!(said.text, "This answer is cut in the mid", "{api:?}");
        assert!(!said.ended, "{api:?}");
    }
}

#[test]
fn what_is_not_streamed_comes_whole() {
    let server = Server::start().unwrap();
    let texts = [
        "/content/0/text",
        "/output/0/content/0/text",
        "/choices/0/message/content",
        "/candidates/0/content/parts/0/text",
    ];
    for (api, place) in Api::ALL.into_iter().zip(texts) {
        let answer = Client::of(&server).post(api.path(false), "", &api.request("[[plain]]", &[], false));
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body.pointer(place).unwrap(), "Hello from the scripted model.", "{api:?}: {body}");
    }
}

#[test]
fn an_image_is_told_by_type_size_and_measures() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let url = format!("data:image/png;base64,{png}");
    let server = Server::start().unwrap();
    let requests = [
        json!({"stream": true, "messages": [{"role": "user", "content": [
            {"type": "text", "text": "[[image]]"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}]}]}),
        json!({"stream": true, "input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "[[image]]"}, {"type": "input_image", "image_url": url}]}]}),
        json!({"stream": true, "messages": [{"role": "user", "content": [
            {"type": "text", "text": "[[image]]"}, {"type": "image_url", "image_url": {"url": url}}]}]}),
        json!({"contents": [{"role": "user", "parts": [
            {"text": "[[image]]"}, {"inlineData": {"mimeType": "image/png", "data": png}}]}]}),
    ];
    for (api, request) in Api::ALL.into_iter().zip(requests) {
        let answer = Client::of(&server).post(api.path(true), "", &request);
        assert_eq!(said(api, &answer.body).text, "I see image/png of 70 bytes, 1 by 1.", "{api:?}");
    }
}

#[test]
fn events_arrive_while_the_answer_is_still_made() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let body = Api::Chat.request("[[hang]]", &[], true).to_string();
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.send(head.as_bytes());
    client.send(body.as_bytes());
    while client.line().is_some_and(|line| !line.is_empty()) {}
    let mut heard = String::new();
    while !heard.contains("lease") {
        heard.push_str(&String::from_utf8(client.chunk().unwrap()).unwrap());
    }
    // Nothing more comes until the server goes, which does not wait for the script.
    let begun = Instant::now();
    drop(server);
    assert_eq!(client.stream().read(&mut [0]).unwrap_or(0), 0);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_delay_comes_before_the_answer() {
    let server = Server::start().unwrap();
    let begun = Instant::now();
    assert_eq!(ask(&server, Api::Gemini, "[[late]]", &[]).text, "Sorry for the wait.");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn models_and_tokens_can_be_asked_for() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    client.send(b"HEAD / HTTP/1.1\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n");
    assert!(client.line().unwrap().contains(" 200 "));
    while client.line().is_some_and(|line| !line.is_empty()) {}
    let models: Value = serde_json::from_str(&client.answer().unwrap().body).unwrap();
    assert_eq!(models["data"][0]["id"], "scripted-model");
    let counted = client.post("/v1/messages/count_tokens", "", &json!({"messages": []}));
    assert!(counted.body.contains("input_tokens"));
    assert_eq!(client.post("/v1/nothing", "", &json!({})).status, 404);
}
