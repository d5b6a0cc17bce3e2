//! Input that no client should send. The server answers or hangs up, and serves the next.

use std::io::Cursor;
use std::net::Shutdown;

use consort_testkit::model::Server;
use consort_testkit::model::conversation::{Api as Kind, Conversation};
use consort_testkit::model::http::{MOST_HEAD, read_request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{Api, Client, ask};

fn status(server: &Server, bytes: &[u8]) -> Option<u16> {
    let mut client = Client::of(server);
    client.send(bytes);
    client.stream().shutdown(Shutdown::Write).unwrap();
    client.answer().map(|answer| answer.status)
}

#[test]
fn broken_requests_are_refused_and_the_next_is_served() {
    let server = Server::start().unwrap();
    let cases: [(&[u8], Option<u16>); 11] = [
        (b"", None),
        (b"\r\n\r\n", None),
        (b"GET", None),
        (b"nonsense\r\n\r\n", Some(400)),
        (b"GET / HTTP/9\r\n\r\n", Some(400)),
        (b"\xff\xfe / HTTP/1.1\r\n\r\n", Some(400)),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", Some(400)),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", Some(400)),
        (b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n", Some(413)),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", Some(400)),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", Some(415)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(status(&server, bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(status(&server, b"POST /v1/messages HTTP/1.1\r\ncontent-length: 50\r\n\r\n{}"), None);
    assert_eq!(status(&server, b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{["), Some(400));
    assert_eq!(ask(&server, Api::Chat, "[[say still here]]", &[]).text, "still here");
}

#[test]
fn a_head_without_end_is_refused() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let mut bytes = b"GET / HTTP/1.1\r\nx: ".to_vec();
    bytes.resize(MOST_HEAD, b'a');
    client.send(&bytes);
    assert_eq!(client.answer().unwrap().status, 431);
}

#[test]
fn a_body_in_chunks_is_read_as_one() {
    let server = Server::start().unwrap();
    let body = Api::Chat.request("[[say in chunks]]", &[], true).to_string();
    let (front, back) = body.split_at(20);
    let mut client = Client::of(&server);
    let head = "POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |piece: &str| format!("{:X};x=y\r\n{piece}\r\n", piece.len());
    client.send(format!("{head}{}{}0\r\ntrailer: x\r\n\r\n", chunk(front), chunk(back)).as_bytes());
    assert!(client.answer().unwrap().body.contains("in chunks"));
    // The connection is still good.
    assert_eq!(client.post(Api::Chat.path(true), "connection: close\r\n", &json!({})).status, 200);
    assert!(client.line().is_none());
}

#[test]
fn a_peer_that_leaves_in_the_middle_is_nobodys_trouble() {
    let server = Server::start().unwrap();
    for _ in 0..50 {
        let mut client = Client::of(&server);
        let body = Api::Messages.request("[[slow]]", &[], true).to_string();
        let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        client.send(format!("{head}{body}").as_bytes());
        client.line().unwrap();
    }
    assert_eq!(ask(&server, Api::Chat, "[[say still here]]", &[]).text, "still here");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bytes_never_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drop(read_request(&mut Cursor::new(bytes), &mut Vec::new()));
    }

    #[test]
    fn damaged_requests_never_break_the_reader(at in 0usize..120, byte in any::<u8>(), cut in 0usize..120) {
        let mut bytes = b"POST /v1/messages?x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
                          5\r\nhello\r\n3;x\r\nbye\r\n0\r\n\r\n".to_vec();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 50));
        drop(read_request(&mut Cursor::new(bytes), &mut Vec::new()));
    }

    #[test]
    fn any_json_is_a_conversation(text in "[\\[\\]{}a-z\" :,0-9]{0,60}", key in "messages|input|contents|tools|system") {
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let body = json!({key: [{"role": "user", "content": value, "parts": value, "type": "message"}, value]});
        for api in [Kind::Messages, Kind::Responses, Kind::Chat, Kind::Gemini] {
            Conversation::read(api, &body);
        }
    }
}
