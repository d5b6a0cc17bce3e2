//! Agents that say what no protocol allows: it is shown, and the turn goes on.

use consort_model::{ItemBody, TurnOutcome};
use consort_testkit::harness::Home;

#[test]
fn what_cannot_be_understood_is_shown_and_the_turn_goes_on() {
    let home = Home::started();
    let client = home.client();
    for steps in [
        "[[garbage]]",
        "[[garbage plain words]]",
        "[[bad-utf8]]",
        "[[reply-to-nothing]]",
        "[[raw {\"jsonrpc\":\"2.0\"}]]",
        "[[raw [1,2]]]",
        "[[unknown-update]]",
        "[[unknown-notification]]",
        "[[update {\"sessionUpdate\":\"tool_call\"}]]",
    ] {
        let (agent, prompt) =
            client.new_agent_with("scripted", &format!("[[say before]] {steps} [[say after]]"));
        let after = client.wait_turn(agent, prompt);
        assert_eq!(after.last_outcome, Some(TurnOutcome::Completed), "{steps}");
        let said = client.said(agent);
        assert!(said.contains("before") && said.contains("after"), "{steps}: {said}");
        let shown = |body: &ItemBody| matches!(body, ItemBody::Notice { .. } | ItemBody::Unknown { .. });
        let items = client.items(agent);
        let tolerated = steps.contains("bad-utf8") && said.contains("bad ");
        assert!(tolerated || items.iter().any(|item| shown(&item.body)), "{steps}: {items:?}");
        client.close(agent);
    }
}

#[test]
fn requests_that_no_host_knows_are_answered_and_empty_lines_ignored() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let after = client.run(agent, "[[unknown-request]] [[empty-lines]] [[say after]]");
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    assert!(client.said(agent).contains("unknown request: "), "{}", client.said(agent));
}

#[test]
fn heavy_a_line_of_a_hundred_megabytes_is_told_and_costs_no_memory() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    let after = client.run(agent, "[[say before]] [[bigline 100]] [[say after]]");
    assert_eq!(after.last_outcome, Some(TurnOutcome::Completed));
    let said = client.said(agent);
    assert!(said.contains("before") && said.contains("after") && said.len() < 1000, "{} bytes", said.len());
    let notices = client.notices(agent);
    assert!(!notices.is_empty(), "the line is not mentioned");
    let peak = std::fs::read_to_string(format!("/proc/{}/status", client.daemon_pid())).unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 200 << 10, "the daemon's memory peaked at {kilobytes} KB");
}

#[test]
fn a_late_update_is_kept() {
    let home = Home::started();
    let client = home.client();
    let agent = client.new_agent("scripted");
    client.run(agent, "[[late one more thing]] [[say done]]");
    client.wait_text(agent, "one more thing");
}

#[test]
fn everything_an_agent_shows_has_its_place() {
    let home = Home::started();
    let client = home.client();
    let steps = "[[think hm]] [[say hi]] [[tool edit diff=a.txt|old|new Change a]] [[plan a|b]] [[title Work]] \
                 [[usage used=5 size=10 cost=0.5]] [[turn-usage input=7 output=3]] [[tool read fail Broken]]";
    let (agent, prompt) = client.new_agent_with("scripted", steps);
    let after = client.wait_turn(agent, prompt);
    assert_eq!(after.title.as_deref(), Some("Work"));
    assert_eq!(
        (after.usage.context_used, after.usage.context_size, after.usage.cost),
        (Some(5), Some(10), Some(0.5))
    );
    assert_eq!((after.usage.input_tokens, after.usage.output_tokens), (Some(7), Some(3)));
    assert_eq!(after.plan.len(), 2);
    let kinds: Vec<&str> = client
        .items(agent)
        .iter()
        .map(|item| match item.body {
            ItemBody::User { .. } => "user",
            ItemBody::Text { .. } => "text",
            ItemBody::Thinking { .. } => "thinking",
            ItemBody::Tool(_) => "tool",
            ItemBody::Plan { .. } => "plan",
            ItemBody::Ask { .. } => "ask",
            ItemBody::Notice { .. } => "notice",
            ItemBody::Image(_) => "image",
            ItemBody::Unknown { .. } => "unknown",
        })
        .collect();
    assert_eq!(kinds, ["user", "thinking", "text", "tool", "plan", "tool"]);
}
