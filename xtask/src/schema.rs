//! The client protocol's schema in `docs/`, made from the types so that it cannot be wrong.

use anyhow::{Context, bail};
use consort_daemon::protocol::{
    AgentView, DaemonStatus, FromDaemon, ImportedProfiles, InboxEntry, ProfileCheck, Request, RuleView, Sent,
    Snapshot, TranscriptPage, Welcome,
};
use schemars::SchemaGenerator;

use crate::tools::root;

/// Writes the schema, or with `--check` fails if the one in `docs/` is not it.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let path = root().join("docs/client-protocol.schema.json");
    let mut schemas = SchemaGenerator::default();
    let mut schema = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Consort client protocol",
        "description": "JSON-RPC 2.0 over the daemon's Unix socket, one message per line.",
        "request": schemas.subschema_for::<Request>(),
        "from_daemon": schemas.subschema_for::<FromDaemon>(),
        "answers": {
            "hello": schemas.subschema_for::<Welcome>(),
            "subscribe": schemas.subschema_for::<Snapshot>(),
            "agents.list": schemas.subschema_for::<Vec<AgentView>>(),
            "agents.send": schemas.subschema_for::<Sent>(),
            "transcript.page": schemas.subschema_for::<TranscriptPage>(),
            "inbox.list": schemas.subschema_for::<Vec<InboxEntry>>(),
            "rules.list": schemas.subschema_for::<Vec<RuleView>>(),
            "profiles.list": schemas.subschema_for::<Vec<consort_model::ProfileSummary>>(),
            "profiles.check": schemas.subschema_for::<Vec<ProfileCheck>>(),
            "profiles.import": schemas.subschema_for::<ImportedProfiles>(),
            "daemon.status": schemas.subschema_for::<DaemonStatus>(),
        },
    });
    schema["$defs"] = serde_json::Value::Object(schemas.take_definitions(true));
    let text = format!("{}\n", serde_json::to_string_pretty(&schema)?);
    if args.iter().any(|arg| arg == "--check") {
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if written != text {
            bail!("docs/client-protocol.schema.json is out of date; `cargo xtask schema` writes it");
        }
        return Ok(());
    }
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}
