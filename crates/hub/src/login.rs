//! Whether a profile's program is logged in, as far as its environment and files tell.
//!
//! Nothing is run and nobody is asked, so a login may still be refused. What cannot be known is not guessed: a keychain,
//! a cloud's own credentials, a provider of the person's own. The invariant: what a key or a token says never leaves
//! this module, only where it stands.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use consort_model::{Login, Program};
use serde_json::Value;

/// The most that is read of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// What can be known about a program that is run with this environment and these arguments; none: nothing.
pub fn look(program: Program, environment: &[(String, String)], args: &[String]) -> Option<Login> {
    let place = Place { environment };
    match program {
        Program::Claude => claude(&place),
        Program::Codex => codex(&place, args),
        Program::Gemini => gemini(&place),
        Program::OpenCode => opencode(&place),
    }
}

/// Where a program looks.
struct Place<'a> {
    environment: &'a [(String, String)],
}

impl Place<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// The first of these variables that is set.
    fn key(&self, names: &[&str]) -> Option<Login> {
        let name = names.iter().find(|name| self.variable(name).is_some())?;
        Some(Login::LoggedIn { by: (*name).to_owned() })
    }

    /// The folder that a variable names, else one below the person's own.
    fn folder(&self, name: &str, usual: &str) -> Option<PathBuf> {
        match self.variable(name) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => Some(Path::new(self.variable("HOME")?).join(usual)),
        }
    }
}

fn claude(place: &Place) -> Option<Login> {
    let clouds = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];
    if clouds.iter().any(|cloud| place.is_set(cloud)) {
        return None;
    }
    let keys = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
    if let Some(login) = place.key(&keys) {
        return Some(login);
    }
    let folder = place.folder("CLAUDE_CONFIG_DIR", ".claude")?;
    // With a folder of its own, what usually stands beside the folder stands in it.
    let account = place.folder("CLAUDE_CONFIG_DIR", "")?.join(".claude.json");
    let (credentials, settings) = (folder.join(".credentials.json"), folder.join("settings.json"));
    if says_something(&json(&credentials)["claudeAiOauth"]["accessToken"]) {
        return by(&credentials);
    }
    if says_something(&json(&account)["primaryApiKey"]) {
        return by(&account);
    }
    let settings_json = json(&settings);
    let is_held = |key: &&str| says_something(&settings_json["env"][*key]);
    if says_something(&settings_json["apiKeyHelper"]) || keys.iter().any(is_held) {
        return by(&settings);
    }
    // There it keeps its login in the keychain.
    if cfg!(target_os = "macos") {
        return None;
    }
    out("run `claude` in the profile's environment and type `/login`, or give the profile ANTHROPIC_API_KEY")
}

fn codex(place: &Place, args: &[String]) -> Option<Login> {
    let folder = place.folder("CODEX_HOME", ".codex")?;
    let config = text(&folder.join("config.toml"));
    // Another provider, or another place for the login.
    let elsewhere = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        matches!(key, "model_provider" | "cli_auth_credentials_store" | "forced_login_method")
    };
    if config.lines().chain(args.iter().map(String::as_str)).any(elsewhere) {
        return None;
    }
    let file = folder.join("auth.json");
    let login = json(&file);
    if says_something(&login["OPENAI_API_KEY"]) || login["tokens"].is_object() {
        return by(&file);
    }
    // The app server takes no key from the environment.
    out("run `codex login` in the profile's environment, or `codex login --with-api-key` for a key")
}

fn gemini(place: &Place) -> Option<Login> {
    let keys = ["GEMINI_API_KEY", "GOOGLE_API_KEY"];
    if let Some(login) = place.key(&keys) {
        return Some(login);
    }
    if place.is_set("GOOGLE_GENAI_USE_VERTEXAI") || place.is_set("GOOGLE_GENAI_USE_GCA") {
        return None;
    }
    let folder = place.folder("GEMINI_CLI_HOME", "")?.join(".gemini");
    let login = folder.join("oauth_creds.json");
    let tokens = json(&login);
    if says_something(&tokens["refresh_token"]) || says_something(&tokens["access_token"]) {
        return by(&login);
    }
    let variables = folder.join(".env");
    let holds_a_key = |line: &str| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        keys.contains(&key.trim().trim_start_matches("export ")) && !value.trim().is_empty()
    };
    if text(&variables).lines().any(holds_a_key) {
        return by(&variables);
    }
    let settings = json(&folder.join("settings.json"));
    let chosen = settings["security"]["auth"]["selectedType"].as_str();
    match chosen {
        // A key that was typed in is kept in the keychain; the others are a cloud's.
        Some(chosen) if chosen != "oauth-personal" => None,
        _ => out("run `gemini` in the profile's environment and log in, or give the profile GEMINI_API_KEY"),
    }
}

fn opencode(place: &Place) -> Option<Login> {
    // Both may hold providers with their keys.
    let own = ["OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG", "OPENCODE_AUTH_CONTENT"];
    if own.iter().any(|name| place.variable(name).is_some()) {
        return None;
    }
    let file = place.folder("XDG_DATA_HOME", ".local/share")?.join("opencode/auth.json");
    if json(&file).as_object().is_some_and(|providers| !providers.is_empty()) {
        return by(&file);
    }
    let keys =
        ["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];
    place.key(&keys).or_else(|| {
        out("run `opencode auth login` in the profile's environment; until then it has free models only")
    })
}

fn by(file: &Path) -> Option<Login> {
    Some(Login::LoggedIn { by: file.display().to_string() })
}

fn out(advice: &str) -> Option<Login> {
    Some(Login::LoggedOut { advice: advice.to_owned() })
}

fn says_something(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// What a file holds; a file that is missing or broken holds nothing, as for the program itself.
fn json(file: &Path) -> Value {
    serde_json::from_str(&text(file)).unwrap_or_default()
}

fn text(file: &Path) -> String {
    let mut text = String::new();
    // Anything else might never come to an end.
    if !file.is_file() {
        return text;
    }
    let read = File::open(file).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
    if let Err(error) = read {
        tracing::debug!(%error, file = %file.display(), "a file that may tell of a login cannot be read");
        text.clear();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SECRET: &str = "sk-very-secret";

    /// What is known with these files below a home, and these variables.
    fn known(program: Program, files: &[(&str, &str)], variables: &[&str]) -> String {
        let home = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = home.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let root = home.path().display().to_string();
        let mut environment = vec![("HOME".to_owned(), root.clone())];
        for variable in variables {
            let (key, value) = variable.split_once('=').unwrap();
            environment.push((key.to_owned(), value.replace('~', &root)));
        }
        let login = look(program, &environment, &[]);
        assert!(!format!("{login:?}").contains(SECRET), "{login:?}");
        match login {
            None => "unknown".to_owned(),
            Some(Login::LoggedIn { by }) => by.replace(&root, "~"),
            Some(Login::LoggedOut { .. }) => "out".to_owned(),
        }
    }

    #[test]
    fn claude_is_logged_in_by_a_key_or_by_its_own_files() {
        let login = format!(r#"{{"claudeAiOauth": {{"accessToken": "{SECRET}"}}}}"#);
        let look = |files: &[(&str, &str)], variables: &[&str]| known(Program::Claude, files, variables);
        assert_eq!(look(&[], &[&format!("ANTHROPIC_API_KEY={SECRET}")]), "ANTHROPIC_API_KEY");
        assert_eq!(look(&[(".claude/.credentials.json", &login)], &[]), "~/.claude/.credentials.json");
        let other = [("work/.credentials.json", login.as_str())];
        assert_eq!(look(&other, &["CLAUDE_CONFIG_DIR=~/work"]), "~/work/.credentials.json");
        assert_eq!(
            look(&[(".claude/settings.json", r#"{"apiKeyHelper": "x"}"#)], &[]),
            "~/.claude/settings.json"
        );
        assert_eq!(look(&[], &["CLAUDE_CODE_USE_BEDROCK=1"]), "unknown");
        if !cfg!(target_os = "macos") {
            assert_eq!(look(&other, &[]), "out", "another profile's login is not this one's");
            assert_eq!(look(&[(".claude/.credentials.json", "{broken")], &["ANTHROPIC_API_KEY="]), "out");
        }
    }

    #[test]
    fn codex_is_logged_in_by_its_file_unless_it_is_told_of_another_place() {
        let look = |files: &[(&str, &str)], variables: &[&str]| known(Program::Codex, files, variables);
        let key = format!(r#"{{"OPENAI_API_KEY": "{SECRET}"}}"#);
        assert_eq!(look(&[(".codex/auth.json", &key)], &[]), "~/.codex/auth.json");
        assert_eq!(look(&[("c/auth.json", r#"{"tokens": {}}"#)], &["CODEX_HOME=~/c"]), "~/c/auth.json");
        assert_eq!(look(&[(".codex/auth.json", r#"{"OPENAI_API_KEY": null}"#)], &[]), "out");
        assert_eq!(look(&[], &["CODEX_API_KEY=x", "OPENAI_API_KEY=x"]), "out");
        assert_eq!(look(&[(".codex/config.toml", "model_provider = \"own\"")], &[]), "unknown");
        let environment = [("HOME".to_owned(), "/nowhere".to_owned())];
        let args = ["-c", "model_provider=\"own\""].map(str::to_owned);
        assert_eq!(super::look(Program::Codex, &environment, &args), None);
    }

    #[test]
    fn gemini_is_logged_in_by_a_key_or_by_its_own_files() {
        let look = |files: &[(&str, &str)], variables: &[&str]| known(Program::Gemini, files, variables);
        let tokens = format!(r#"{{"refresh_token": "{SECRET}"}}"#);
        assert_eq!(look(&[], &["GEMINI_API_KEY=x"]), "GEMINI_API_KEY");
        assert_eq!(look(&[(".gemini/oauth_creds.json", &tokens)], &[]), "~/.gemini/oauth_creds.json");
        let variables = format!("GEMINI_API_KEY={SECRET}\n");
        assert_eq!(look(&[(".gemini/.env", &variables)], &[]), "~/.gemini/.env");
        let chosen = |kind: &str| format!(r#"{{"security": {{"auth": {{"selectedType": "{kind}"}}}}}}"#);
        assert_eq!(look(&[(".gemini/settings.json", &chosen("vertex-ai"))], &[]), "unknown");
        assert_eq!(look(&[(".gemini/settings.json", &chosen("oauth-personal"))], &[]), "out");
        assert_eq!(look(&[], &[]), "out");
    }

    #[test]
    fn opencode_is_logged_in_by_its_file() {
        let look = |files: &[(&str, &str)], variables: &[&str]| known(Program::OpenCode, files, variables);
        let login = format!(r#"{{"anthropic": {{"type": "api", "key": "{SECRET}"}}}}"#);
        let file = ".local/share/opencode/auth.json";
        assert_eq!(look(&[(file, &login)], &[]), "~/.local/share/opencode/auth.json");
        assert_eq!(
            look(&[("d/opencode/auth.json", &login)], &["XDG_DATA_HOME=~/d"]),
            "~/d/opencode/auth.json"
        );
        assert_eq!(look(&[(file, "{}")], &[]), "out");
        assert_eq!(look(&[], &["OPENCODE_CONFIG_CONTENT={}"]), "unknown");
    }

    #[test]
    fn without_a_home_nothing_is_known() {
        for program in Program::ALL {
            assert_eq!(super::look(program, &[], &[]), None, "{program:?}");
        }
    }
}
