//! The real CLIs: where they are, and how each is run offline against a model server.
//!
//! `cargo xtask clis` installs them; this knows the folder, the pinned versions and, for each CLI, the command line,
//! the environment and the settings files that keep it off the network and away from the user's own files. How Consort
//! drives them is left to its drivers. The invariant: a profile from here needs nothing but the model's address and a
//! folder to call home.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The versions, exactly, as npm reads them.
pub const PACKAGES: &str = include_str!("../../../xtask/clis/package.json");
/// The same for Claude's ACP adapter, which is installed beside them, without the CLI that it would bring along.
pub const ADAPTER_PACKAGES: &str = include_str!("../../../xtask/clis/adapter/package.json");
/// The same for the public conformance suite of MCP, with the version of Node that it needs.
pub const MCP_SUITE_PACKAGES: &str = include_str!("../../../xtask/clis/mcp/package.json");
/// What the model is called, where the name is free.
pub const MODEL: &str = "scripted-model";
/// A second one to change to.
pub const OTHER_MODEL: &str = "scripted-model-2";
/// Gemini CLI knows its models by name.
pub const GEMINI_MODEL: &str = "gemini-2.5-flash";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cli {
    Claude,
    Codex,
    Gemini,
    OpenCode,
    /// Claude Code behind its ACP adapter.
    ClaudeAcp,
}

/// How a CLI is run: what a profile of Consort holds, and beside it what the driver adds by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name of Consort's driver for it.
    pub driver: &'static str,
    pub command: PathBuf,
    pub args: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// What makes the CLI speak its protocol, where that is not among `args`: for whoever drives it bare.
    pub protocol_args: Vec<String>,
}

/// A CLI that is not installed where it has to be.
#[derive(Debug, thiserror::Error)]
#[error("{cli} {version} is not installed in {folder}; run `cargo xtask clis`")]
pub struct Missing {
    pub cli: Cli,
    pub version: String,
    pub folder: String,
}

impl fmt::Display for Cli {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// The folder that the CLIs are installed into. `CONSORT_CLIS` names another.
pub fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os("CONSORT_CLIS") {
        return named.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = root.join(target).join("clis");
    folder.canonicalize().unwrap_or(folder)
}

/// The folder of the public conformance suite of MCP.
pub fn mcp_suite_folder() -> PathBuf {
    folder().join("mcp")
}

/// How the public conformance suite of MCP is started: Node and the suite's program. None where it is not installed.
pub fn mcp_suite() -> Option<(PathBuf, PathBuf)> {
    let modules = mcp_suite_folder().join("node_modules");
    let node = modules.join("node/bin/node");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    (node.is_file() && suite.is_file()).then_some((node, suite))
}

impl Cli {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode, Self::ClaudeAcp];

    /// The name of its command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::ClaudeAcp => "claude-agent-acp",
        }
    }

    /// The folder that it is installed into.
    pub fn folder(self) -> PathBuf {
        if self == Self::ClaudeAcp { folder().join("adapter") } else { folder() }
    }

    /// Its name in npm's registry.
    pub fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::OpenCode => "opencode-ai",
            Self::ClaudeAcp => "@agentclientprotocol/claude-agent-acp",
        }
    }

    /// The version that is installed for the tests.
    pub fn version(self) -> String {
        let packages = if self == Self::ClaudeAcp { ADAPTER_PACKAGES } else { PACKAGES };
        let packages: Value = serde_json::from_str(packages).unwrap_or_default();
        packages["dependencies"][self.package()].as_str().unwrap_or_default().to_owned()
    }

    /// Its program, where it is installed.
    pub fn program(self) -> Result<PathBuf, Missing> {
        let modules = self.folder().join("node_modules");
        let shim = modules.join(".bin").join(self.name());
        // Codex's command is a program of node that starts the real one and is in the way of signals.
        let native = if self == Self::Codex { codex_program(&modules) } else { None };
        let program = native.unwrap_or(shim);
        if program.is_file() {
            return Ok(program);
        }
        Err(Missing { cli: self, version: self.version(), folder: self.folder().display().to_string() })
    }

    /// Its program for a test, or none and the reason on standard error. With `CI=true` its absence is an error:
    /// nothing may be skipped there.
    pub fn find(self) -> Result<Option<PathBuf>, Missing> {
        match self.program() {
            Ok(program) => Ok(Some(program)),
            Err(missing) if std::env::var("CI").is_ok_and(|ci| ci == "true") => Err(missing),
            Err(missing) => {
                eprintln!("skipped: {missing}");
                Ok(None)
            }
        }
    }

    /// How to run it against a model server at `url`, with `home` as its user's folder. Writes its settings into it.
    pub fn profile(self, url: &str, home: &Path) -> io::Result<Profile> {
        let command = self.program().map_err(|missing| io::Error::new(io::ErrorKind::NotFound, missing))?;
        std::fs::create_dir_all(home)?;
        let mut profile = match self {
            Self::Claude => claude(command, url, home),
            Self::Codex => codex(command, url, home)?,
            Self::Gemini => gemini(command, url, home)?,
            Self::OpenCode => opencode(command, url),
            Self::ClaudeAcp => claude_acp(command, url, home)?,
        };
        profile.set("HOME", home.display());
        // Else a proxy of the machine's would be asked for the loopback address.
        profile.set("NO_PROXY", "127.0.0.1,localhost");
        Ok(profile)
    }
}

impl Profile {
    fn new(driver: &'static str, command: PathBuf) -> Self {
        Self { driver, command, args: Vec::new(), environment: Vec::new(), protocol_args: Vec::new() }
    }

    fn set(&mut self, name: &str, value: impl ToString) {
        self.environment.push((name.to_owned(), value.to_string()));
    }

    fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    fn protocol_args(mut self, args: &[&str]) -> Self {
        self.protocol_args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// The whole command line, for whoever drives the CLI bare.
    pub fn bare(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.command);
        command.args(&self.protocol_args).args(&self.args);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Prints how a CLI is run, as JSON: `profile CLI URL HOME`. Gives the exit code.
pub fn main(args: impl IntoIterator<Item = String>, mut stdout: impl io::Write) -> i32 {
    let args: Vec<String> = args.into_iter().collect();
    let [name, url, home] = args.as_slice() else {
        eprintln!("consort-testkit profile: give a CLI, the address of a model server and a home folder");
        return 2;
    };
    let Some(cli) = Cli::ALL.into_iter().find(|cli| cli.name() == name) else {
        eprintln!("consort-testkit profile: {name:?} is not one of {}", Cli::ALL.map(Cli::name).join(", "));
        return 2;
    };
    let written = cli.profile(url, Path::new(home)).and_then(|profile| {
        let environment: serde_json::Map<String, Value> =
            profile.environment.into_iter().map(|(name, value)| (name, value.into())).collect();
        let shown = json!({
            "driver": profile.driver, "command": profile.command, "args": profile.args,
            "environment": environment, "protocol_args": profile.protocol_args,
        });
        writeln!(stdout, "{shown:#}")
    });
    match written {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("consort-testkit profile: {error}");
            1
        }
    }
}

fn claude(command: PathBuf, url: &str, home: &Path) -> Profile {
    let mut profile = Profile::new("claude", command).protocol_args(&[
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool",
        "stdio",
    ]);
    profile.set("ANTHROPIC_BASE_URL", url);
    profile.set("ANTHROPIC_API_KEY", "scripted");
    profile.set("CLAUDE_CONFIG_DIR", home.join(".claude").display());
    // This alone keeps it off the network.
    profile.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    // It would repeat a failed request for minutes.
    profile.set("CLAUDE_CODE_MAX_RETRIES", "1");
    profile
}

fn claude_acp(command: PathBuf, url: &str, home: &Path) -> io::Result<Profile> {
    let cli = Cli::Claude.program().map_err(|missing| io::Error::new(io::ErrorKind::NotFound, missing))?;
    let mut profile = Profile::new("acp", command);
    profile.environment = claude(PathBuf::new(), url, home).environment;
    profile.set("CLAUDE_CODE_EXECUTABLE", cli.display());
    // Any value of it makes the adapter ask for what the CLI refuses to root unless the value is 1.
    profile.set("IS_SANDBOX", "");
    Ok(profile)
}

fn codex_program(modules: &Path) -> Option<PathBuf> {
    let platform = match std::env::consts::ARCH {
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    };
    let program = modules.join("@openai").join(platform.0).join("vendor").join(platform.1).join("bin/codex");
    program.is_file().then_some(program)
}

fn codex(command: PathBuf, url: &str, home: &Path) -> io::Result<Profile> {
    let catalog = home.join("scripted-models.json");
    let models = [codex_model(MODEL, "Scripted Model", 1), codex_model(OTHER_MODEL, "Scripted Model 2", 2)];
    std::fs::write(&catalog, json!({"models": models}).to_string())?;
    let provider = format!(
        "model_providers.scripted={{name=\"Scripted\",base_url=\"{url}/v1\",wire_api=\"responses\",\
         env_key=\"SCRIPTED_KEY\",request_max_retries=1,stream_max_retries=1}}"
    );
    let mut profile = Profile::new("codex", command).protocol_args(&["app-server"]);
    for setting in [
        format!("model={MODEL:?}"),
        "model_provider=\"scripted\"".to_owned(),
        provider,
        // Without it the model has no tool for patches.
        format!("model_catalog_json={:?}", catalog.display().to_string()),
        "tools.update_plan.enabled=true".to_owned(),
        // Both ask hosts on the network at the start.
        "features.plugins=false".to_owned(),
        "features.apps=false".to_owned(),
        "analytics.enabled=false".to_owned(),
        "check_for_update_on_startup=false".to_owned(),
    ] {
        profile.args.extend(["-c".to_owned(), setting]);
    }
    profile.set("CODEX_HOME", home.join(".codex").display());
    profile.set("SCRIPTED_KEY", "scripted");
    std::fs::create_dir_all(home.join(".codex"))?;
    Ok(profile)
}

/// A model as Codex's catalogue describes one: with plain tools, and every tool offered at once.
fn codex_model(slug: &str, name: &str, priority: u32) -> Value {
    let levels = ["low", "medium", "high"].map(|effort| json!({"effort": effort, "description": effort}));
    json!({
        "slug": slug, "display_name": name, "description": "Plays scripts.",
        "default_reasoning_level": "medium", "supported_reasoning_levels": levels,
        "shell_type": "unified_exec", "visibility": "list", "supported_in_api": true, "priority": priority,
        "availability_nux": null, "upgrade": null, "base_instructions": "You play scripts.",
        "supports_reasoning_summaries": true, "default_reasoning_summary": "auto",
        "support_verbosity": false, "default_verbosity": null, "apply_patch_tool_type": "freeform",
        "truncation_policy": {"mode": "tokens", "limit": 10000}, "supports_parallel_tool_calls": true,
        "context_window": 100_000, "max_context_window": 100_000, "effective_context_window_percent": 95,
        "experimental_supported_tools": [], "input_modalities": ["text", "image"],
        "supports_search_tool": false,
    })
}

fn gemini(command: PathBuf, url: &str, home: &Path) -> io::Result<Profile> {
    let folder = home.join(".gemini");
    std::fs::create_dir_all(&folder)?;
    let settings = json!({
        "privacy": {"usageStatisticsEnabled": false},
        // Every process that starts deletes what it takes for empty or broken sessions of the folder: also one that
        // another process has just begun, and all of a session that was taken up before.
        "general": {"enableAutoUpdate": false, "maxAttempts": 2, "sessionRetention": {"enabled": false}},
        // Else the output of commands is not told.
        "tools": {"shell": {"enableInteractiveShell": false}},
    });
    std::fs::write(folder.join("settings.json"), settings.to_string())?;
    // In a folder that is not trusted it drops the client's MCP servers without a word. Without a model it asks another
    // one which to take.
    let mut profile = Profile::new("acp", command).args(&["--acp", "--skip-trust", "-m", GEMINI_MODEL]);
    profile.set("GEMINI_API_KEY", "scripted");
    profile.set("GOOGLE_GEMINI_BASE_URL", url);
    // Else there is a second process, which does not pass signals on.
    profile.set("GEMINI_CLI_NO_RELAUNCH", "1");
    Ok(profile)
}

fn opencode(command: PathBuf, url: &str) -> Profile {
    let model = |name: &str| {
        json!({"name": name, "reasoning": true, "attachment": true, "tool_call": true,
               "modalities": {"input": ["text", "image"], "output": ["text"]},
               "limit": {"context": 100_000, "output": 8_000}})
    };
    let config = json!({
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "scripted"},
            "models": {MODEL: model("Scripted Model"), OTHER_MODEL: model("Scripted Model 2")},
        }},
        "enabled_providers": ["scripted"],
        "model": format!("scripted/{MODEL}"), "small_model": format!("scripted/{MODEL}"),
        // By default it asks nothing.
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": false, "share": "disabled",
    });
    let mut profile = Profile::new("acp", command).args(&["acp", "--pure"]);
    profile.set("OPENCODE_CONFIG_CONTENT", config);
    for name in [
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    ] {
        profile.set(name, "1");
    }
    // It opens a control server on the loopback address, which would be anybody's.
    profile.set("OPENCODE_SERVER_PASSWORD", uuid::Uuid::now_v7());
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cli_has_an_exact_version() {
        for cli in Cli::ALL {
            let version = cli.version();
            let parts: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
            assert!(parts.len() == 3 && parts.iter().all(Result::is_ok), "{cli}: {version:?}");
        }
    }

    #[test]
    fn a_profile_keeps_to_its_home_and_its_model() {
        for cli in Cli::ALL {
            let Some(program) = cli.find().unwrap() else { continue };
            let home = tempfile::tempdir().unwrap();
            let profile = cli.profile("http://127.0.0.1:1", home.path()).unwrap();
            assert_eq!(profile.command, program);
            let home = home.path().display().to_string();
            assert!(profile.environment.contains(&("HOME".into(), home)), "{cli}");
            let values = profile.environment.iter().map(|(_, value)| value).chain(&profile.args);
            assert!(values.into_iter().any(|value| value.contains("http://127.0.0.1:1")), "{cli}");
        }
    }
}
