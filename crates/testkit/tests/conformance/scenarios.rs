//! Turns that end by themselves.

use consort_daemon::protocol::{Call, RuleView};
use consort_model::image::from_base64;
use consort_model::{
    Answer, AskBody, GrantScope, ItemBody, PermissionMode, PlanStatus, SettledBy, TeamTools, ToolKind,
    ToolStatus,
};
use consort_testkit::clis::Cli;
use serde_json::json;

use crate::stage::{Stage, call_of};

/// A red PNG of 48 by 32.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAADAAAAAgCAIAAADbtmxLAAAAMUlEQVR42u3OMQ0AAAgDsEmZfxVIwwXhaFIBzbSvREhISEhISEhISEhISEhISEjo0gICKQBb8ySqEgAAAABJRU5ErkJggg==";

pub fn plain(stage: &mut Stage) {
    let turn = stage.turn("Say hello. [[plain]]");
    turn.completed().without_trouble();
    assert_eq!(turn.said(), "Hello from the scripted model.");
    let [prompt, answer] = turn.items.as_slice() else { panic!("more than an answer: {:#?}", turn.items) };
    assert!(matches!(&prompt.body, ItemBody::User { text, .. } if text == "Say hello. [[plain]]"));
    assert!(matches!(answer.body, ItemBody::Text { .. }));
    assert!(prompt.turn.is_some() && prompt.turn == answer.turn);
}

pub fn two_turns(stage: &mut Stage) {
    stage.turn("[[say The first answer.]]").completed().says("The first answer.");
    stage.turn("[[say The second answer.]]").completed().says("The second answer.");
    let sent = stage.request("say").body.to_string();
    assert!(sent.contains("[[say The first answer.]]") && sent.contains("[[say The second answer.]]"));
}

pub fn thinking(stage: &mut Stage) {
    let turn = stage.turn("[[thinking]]");
    turn.completed().says("I have thought about it.").without_trouble();
    let thought = turn.items.iter().find_map(|item| match &item.body {
        ItemBody::Thinking { text } => Some(text.as_str()),
        _ => None,
    });
    let thought = thought.unwrap_or_else(|| panic!("no thought in {:#?}", turn.items));
    assert!(thought.contains("the answer can be short"), "{thought:?}");
}

pub fn tool_allowed(stage: &mut Stage) {
    let turn = stage.turn_allowed("[[shell]]");
    turn.completed().says("The command said:").says("made by the shell").without_trouble();
    let tool = turn.tool();
    assert_eq!((tool.tool, tool.status), (ToolKind::Execute, ToolStatus::Completed), "{tool:#?}");
    assert!(tool.title.contains("tee shell.txt"), "{tool:#?}");
    assert!(tool.output.contains("made by the shell"), "{tool:#?}");
    let asks = turn.asks();
    let [(body, settlement)] = asks.as_slice() else { panic!("one approval should be in {asks:#?}") };
    assert_eq!(settlement.by, SettledBy::Person);
    let asked = call_of(body);
    assert_eq!((asked.tool, &asked.id), (ToolKind::Execute, &tool.id));
    assert!(asked.title.contains("tee shell.txt"), "{asked:#?}");
    assert_eq!(std::fs::read_to_string(stage.file("shell.txt")).unwrap(), "made by the shell\n");
}

pub fn tool_denied(stage: &mut Stage) {
    std::fs::remove_file(stage.file("shell.txt")).ok();
    let turn = stage.turn_with("[[shell]]", |_| Answer::Deny { message: None });
    turn.completed().without_trouble();
    assert_eq!(turn.tool().status, ToolStatus::Failed, "{:#?}", turn.tool());
    assert_eq!(turn.asks().len(), 1);
    assert!(!stage.file("shell.txt").exists());
}

pub fn tool_denied_with_text(stage: &mut Stage) {
    std::fs::remove_file(stage.file("shell.txt")).ok();
    let words = "Leave the shell alone and use the editor.";
    let (_, from) = stage.send("[[shell]]");
    let ask = stage.client.wait_ask(stage.agent);
    stage.client.answer(&ask, Answer::Deny { message: Some(words.to_owned()) });
    // Where the protocol has no place for a reason, it comes as the next prompt.
    stage.client.wait_until("the words arrived and all is done", |state| {
        let agent = state.agents.get(&stage.agent)?;
        let told = stage.model.conversation().iter().any(|request| request.body.to_string().contains(words));
        let done = agent.turn.is_none() && agent.queue.is_empty() && agent.asks.is_empty();
        (told && done).then_some(())
    });
    let turn = stage.since(from);
    turn.completed().without_trouble();
    assert_eq!(turn.tool().status, ToolStatus::Failed, "{:#?}", turn.tool());
    assert!(!stage.file("shell.txt").exists());
}

pub fn always(stage: &mut Stage) {
    let prompt = "[[run touch always.txt]]";
    let turn = stage.turn_with(prompt, |_| Answer::allow(GrantScope::Always));
    turn.completed();
    assert_eq!(turn.asks().len(), 1);
    assert!(stage.file("always.txt").exists());
    std::fs::remove_file(stage.file("always.txt")).unwrap();
    let turn = stage.turn(prompt);
    turn.completed().without_trouble();
    assert_eq!(turn.asks().len(), 1, "{:#?}", turn.items);
    assert!(turn.settled_by(|by| matches!(by, SettledBy::Rule { .. })), "{:#?}", turn.asks());
    assert!(stage.file("always.txt").exists());
    let rules: Vec<RuleView> = stage.client.call(&Call::ListRules {});
    for rule in rules {
        let _: serde_json::Value = stage.client.call(&Call::RemoveRule { rule: rule.id });
    }
    stage.turn_with(prompt, |_| Answer::Deny { message: None }).completed();
}

pub fn edit_with_diff(stage: &mut Stage) {
    std::fs::write(stage.file("notes.txt"), "first line\nold line\nlast line\n").unwrap();
    let turn = stage.turn_allowed("[[edit]]");
    turn.completed().without_trouble();
    let asks = turn.asks();
    let [(body, _)] = asks.as_slice() else { panic!("one approval should be in {asks:#?}") };
    let tools = turn.tools();
    let edit = tools.iter().find(|tool| tool.tool == ToolKind::Edit);
    let edit = edit.unwrap_or_else(|| panic!("no edit in {tools:#?}"));
    assert_eq!(edit.status, ToolStatus::Completed, "{edit:#?}");
    for call in [call_of(body), edit] {
        let [diff] = call.diffs.as_slice() else { panic!("one change should be in {call:#?}") };
        assert!(diff.path.ends_with("notes.txt"), "{diff:?}");
        assert!(diff.old_text.as_ref().is_some_and(|text| text.contains("old line")), "{diff:?}");
        assert!(diff.new_text.contains("new line") && !diff.new_text.contains("old line"), "{diff:?}");
    }
    assert_eq!(
        std::fs::read_to_string(stage.file("notes.txt")).unwrap(),
        "first line\nnew line\nlast line\n"
    );
}

pub fn new_file(stage: &mut Stage) {
    let turn = stage.turn_allowed("[[write]]");
    turn.completed().without_trouble();
    let asks = turn.asks();
    let [(body, _)] = asks.as_slice() else { panic!("one approval should be in {asks:#?}") };
    let call = call_of(body);
    let [diff] = call.diffs.as_slice() else { panic!("one change should be in {call:#?}") };
    assert!(diff.path.ends_with("written.txt"), "{diff:?}");
    assert!(diff.old_text.as_ref().is_none_or(String::is_empty), "{diff:?}");
    assert_eq!(diff.new_text.trim_end(), "first line\nsecond line");
    assert_eq!(std::fs::read_to_string(stage.file("written.txt")).unwrap(), "first line\nsecond line\n");
    std::fs::remove_file(stage.file("written.txt")).unwrap();
}

pub fn parallel(stage: &mut Stage) {
    let turn = stage.turn_allowed("[[parallel]]");
    turn.completed().says("Both are done:").without_trouble();
    assert_eq!(turn.asks().len(), 2);
    assert_eq!(turn.tools().len(), 2, "{:#?}", turn.items);
    assert!(turn.tools().iter().all(|tool| tool.status == ToolStatus::Completed), "{:#?}", turn.tools());
    assert!(stage.file("parallel-1.txt").exists() && stage.file("parallel-2.txt").exists());
}

pub fn question(stage: &mut Stage) {
    if stage.cli == Cli::Codex {
        stage.choose("mode", "plan");
    }
    let turn = stage.turn_with("[[question]]", |ask| {
        let AskBody::Question(question) = &ask.body else { panic!("not a question: {ask:#?}") };
        assert!(question.text.contains("Which colour shall it be?"), "{question:#?}");
        let schema = question.schema.to_string();
        assert!(schema.contains("Red") && schema.contains("Blue"), "{schema}");
        Answer::Reply { value: json!("Blue") }
    });
    turn.completed().says("The answer is:").says("Blue").without_trouble();
    assert_eq!(turn.asks().len(), 1);
    if stage.cli == Cli::Codex {
        stage.choose("mode", "default");
    }
}

pub fn task_list(stage: &mut Stage) {
    let turn = stage.turn("[[todo]]");
    turn.completed().says("The list is set.").without_trouble();
    let plan: Vec<(&str, PlanStatus)> =
        turn.agent.plan.iter().map(|entry| (entry.text.as_str(), entry.status)).collect();
    assert_eq!(plan, [("Look around", PlanStatus::Completed), ("Change it", PlanStatus::InProgress)]);
    let plans = turn.items.iter().filter(|item| matches!(item.body, ItemBody::Plan { .. })).count();
    assert_eq!(plans, 1, "{:#?}", turn.items);
}

pub fn plan(stage: &mut Stage) {
    let (before, _) = stage.option("mode");
    stage.choose("mode", "plan");
    let turn = stage.turn_with("[[plan]]", |ask| {
        assert!(stage.cli != Cli::Codex, "{ask:#?}");
        // Gemini names the file, which stands before it as an edit.
        let words = if stage.cli == Cli::Gemini { "plan.md" } else { "1. Look" };
        assert!(format!("{:?}", ask.body).contains(words), "{ask:#?}");
        Answer::allow(GrantScope::Once)
    });
    turn.completed().without_trouble();
    assert!(format!("{:?}", turn.items).contains("1. Look"), "{:#?}", turn.items);
    if stage.cli != Cli::Codex {
        assert_eq!(turn.asks().len(), 1);
        // Gemini takes the tool away with the mode, so the script does not know that it was used.
        turn.says(if stage.cli == Cli::Gemini { "is offered." } else { "The plan came back:" });
        assert_ne!(stage.option("mode").0, "plan");
    } else {
        turn.says("1. Look");
    }
    if stage.option("mode").0 != before {
        stage.choose("mode", &before);
    }
}

pub fn sub_agent(stage: &mut Stage) {
    let turn = stage.turn_allowed("[[task]]");
    turn.completed().without_trouble();
    let turn = match stage.cli {
        // It goes on after the turn that started it.
        Cli::Codex => stage.wait_for_nested(turn),
        Cli::OpenCode | Cli::ClaudeAcp => {
            let call = turn.tool();
            assert_eq!(call.status, ToolStatus::Completed, "{call:#?}");
            assert!(call.output.contains("The sub-agent is done."), "{call:#?}");
            return;
        }
        Cli::Claude | Cli::Gemini => turn,
    };
    let nested: Vec<_> = turn.items.iter().filter_map(|item| item.within.as_ref()).collect();
    let call = nested.first().unwrap_or_else(|| panic!("nothing is nested in {:#?}", turn.items));
    assert!(turn.tools().iter().any(|tool| tool.id == **call), "{:#?}", turn.items);
    assert!(format!("{:?}", turn.items).contains("The sub-agent is done."), "{:#?}", turn.items);
}

pub fn permission_mode(stage: &mut Stage) {
    stage.permit(PermissionMode::AcceptEdits);
    let turn = stage.turn("[[write]]");
    turn.completed().without_trouble();
    assert!(turn.settled_by(|by| by == SettledBy::Mode), "{:#?}", turn.asks());
    assert!(stage.file("written.txt").exists());
    std::fs::remove_file(stage.file("written.txt")).unwrap();
    stage.permit(PermissionMode::Default);
    let turn = stage.turn_with("[[write]]", |_| Answer::Deny { message: None });
    assert_eq!(turn.asks().len(), 1, "{:#?}", turn.items);
    assert!(!stage.file("written.txt").exists());
}

pub fn model_change(stage: &mut Stage) {
    stage.turn("[[say With the first model.]]").completed();
    let used = |stage: &Stage| {
        let request = stage.request("say");
        // Gemini's API has the model in the path.
        request.body["model"].as_str().map_or(request.path.clone(), str::to_owned)
    };
    let first = used(stage);
    let (before, choices) = stage.option("model");
    // The last ones of a list are never its default.
    let other = choices.iter().rev().find(|choice| **choice != before);
    let other = other.unwrap_or_else(|| panic!("no other model than {before} in {choices:?}"));
    stage.choose("model", other);
    stage.turn("[[say With the second model.]]").completed().says("With the second model.").without_trouble();
    assert_ne!(used(stage), first, "{other} is in use");
    assert_eq!(stage.option("model").0, *other);
    // A model that a profile names need not be among those that are offered.
    if choices.contains(&before) {
        stage.choose("model", &before);
        stage.turn("[[say With the first model again.]]").completed();
        assert_eq!(used(stage), first);
    }
}

pub fn mode_change(stage: &mut Stage) {
    let (before, choices) = stage.option("mode");
    let other = match stage.cli {
        Cli::Claude | Cli::ClaudeAcp => "acceptEdits",
        Cli::Gemini => "autoEdit",
        Cli::Codex | Cli::OpenCode => "plan",
    };
    assert!(choices.iter().any(|choice| choice == other), "{choices:?}");
    stage.choose("mode", other);
    if matches!(stage.cli, Cli::Claude | Cli::ClaudeAcp | Cli::Gemini) {
        let turn = stage.turn("[[write]]");
        turn.completed().without_trouble();
        assert!(turn.asks().is_empty(), "{:#?}", turn.asks());
        std::fs::remove_file(stage.file("written.txt")).unwrap();
    } else {
        stage.turn("[[say In another mode.]]").completed().says("In another mode.").without_trouble();
        assert!(stage.request("say").body.to_string().to_lowercase().contains("plan mode"));
    }
    assert_eq!(stage.option("mode").0, other);
    stage.choose("mode", &before);
    stage.turn("[[say Back again.]]").completed().says("Back again.");
    assert_eq!(stage.option("mode").0, before);
}

pub fn image(stage: &mut Stage) {
    let turn = stage.turn_with_image("[[image]]", IMAGE);
    turn.completed().says("I see image/png of").says("48 by 32").without_trouble();
    let kept = turn
        .items
        .iter()
        .any(|item| matches!(&item.body, ItemBody::User { attachments, .. } if attachments.len() == 1));
    assert!(kept, "{:#?}", turn.items);
}

pub fn image_read(stage: &mut Stage) {
    let path = stage.file("shot.png");
    std::fs::write(&path, from_base64(IMAGE).unwrap()).unwrap();
    let turn = stage.turn_allowed(&format!("[[read {}]]", path.display()));
    turn.completed().without_trouble();
    let tool = turn.tool();
    assert_eq!((tool.tool, tool.status), (ToolKind::Read, ToolStatus::Completed), "{tool:#?}");
    let [image] = &tool.images[..] else { panic!("one image should be in {tool:#?}") };
    assert_eq!(image.mime_type, "image/png");
    assert_eq!(image.bytes().unwrap(), std::fs::read(&path).unwrap(), "{tool:#?}");
}

pub fn slash_command(stage: &mut Stage) {
    let (command, words) = match stage.cli {
        Cli::Claude | Cli::ClaudeAcp => ("context", "Context Usage"),
        Cli::Codex => ("review", "Hello from the scripted model."),
        Cli::Gemini => ("memory show", "memory"),
        // It stands for a longer prompt; the marker is for the model.
        Cli::OpenCode => ("init [[say It is set up.]]", "It is set up."),
    };
    let offered = stage.now().commands;
    let name = command.split(' ').next().unwrap();
    assert!(offered.iter().any(|offered| offered.name == name), "{offered:#?}");
    let turn = stage.turn_allowed(&format!("/{command}"));
    turn.completed().without_trouble();
    assert!(turn.said().to_lowercase().contains(&words.to_lowercase()), "{:#?}", turn.items);
}

pub fn usage(stage: &mut Stage) {
    let before = stage.now().usage;
    let turn = stage.turn("[[usage]]");
    turn.completed();
    let after = turn.agent.usage;
    let grown = |after: Option<u64>, before: Option<u64>| after.unwrap_or(0) - before.unwrap_or(0);
    assert_eq!(grown(after.input_tokens, before.input_tokens), 1230, "{before:?} {after:?}");
    let written = if stage.cli == Cli::Gemini { 350 } else { 400 };
    assert_eq!(grown(after.output_tokens, before.output_tokens), written, "{before:?} {after:?}");
    if stage.cli != Cli::Gemini {
        assert!(after.context_used.is_some() && after.context_size.is_some(), "{after:?}");
    }
}

pub fn mcp_tool(stage: &mut Stage) {
    let turn = stage.turn("[[mcp whoami]]");
    turn.completed().without_trouble();
    turn.says("The tool said:").says(&stage.agent.to_string());
    assert_eq!(turn.asks(), [], "nobody is asked");
    let tools = turn.tools();
    let [tool] = tools.as_slice() else { panic!("one tool call should be in {:#?}", turn.items) };
    assert_eq!(tool.status, ToolStatus::Completed, "{tool:#?}");
    assert!(tool.title.contains("whoami") && tool.title.contains("consort"), "{tool:#?}");
    assert_eq!(turn.agent.team_tools, TeamTools::Connected);
    // A tool that changes something is not asked about either.
    let turn = stage.turn("[[mcp set_status {\"text\": \"at the tests\"}]]");
    turn.completed().without_trouble();
    assert_eq!((turn.asks(), turn.agent.note.as_deref()), (vec![], Some("at the tests")));
}
