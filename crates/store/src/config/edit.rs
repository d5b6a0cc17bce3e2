//! Changes to the document that touch one table and leave everything else, comments and unknown keys too, as it is.

use std::path::Path;

use consort_model::{Limits, PermissionMode, Profile, ProfileId};
use toml_edit::{Array, DocumentMut, Item, RawString, Table, TableLike, Value};

use super::migrate::{Found, Imported, unique_name};
use super::{Config, ConfigError};

pub(super) fn add_profile(
    path: &Path,
    config: &Config,
    document: &mut DocumentMut,
    profile: &Profile,
) -> Result<(), ConfigError> {
    if has(config, &profile.id) {
        return Err(ConfigError::ProfileExists { id: profile.id.clone() });
    }
    let mut table = Table::new();
    // Where the document has tables, a blank line sets the new one off.
    table.decor_mut().set_prefix("\n");
    fill(&mut table, profile);
    profiles(path, document)?.insert(profile.id.as_str(), Item::Table(table));
    Ok(())
}

pub(super) fn replace_profile(
    path: &Path,
    config: &Config,
    document: &mut DocumentMut,
    profile: &Profile,
) -> Result<(), ConfigError> {
    let missing = || ConfigError::NoSuchProfile { id: profile.id.clone() };
    if !has(config, &profile.id) {
        return Err(missing());
    }
    let table = profiles(path, document)?
        .get_mut(profile.id.as_str())
        .and_then(Item::as_table_like_mut)
        .ok_or_else(missing)?;
    fill(table, profile);
    Ok(())
}

pub(super) fn remove_profile(
    path: &Path,
    config: &Config,
    document: &mut DocumentMut,
    id: &ProfileId,
) -> Result<(), ConfigError> {
    if !has(config, id) {
        return Err(ConfigError::NoSuchProfile { id: id.clone() });
    }
    if config.default_profile.as_ref() == Some(id) {
        set_default(config, document, None)?;
    }
    let removed = profiles(path, document)?.remove(id.as_str());
    if let Some(Item::Table(table)) = removed {
        let comments = table.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
        keep_file_comments(document, comments, table.position());
    }
    Ok(())
}

/// Keeps what is set off by a blank line from the own comment of something that was removed: it belongs to the file
/// rather than to that.
pub(super) fn keep_file_comments(document: &mut DocumentMut, comments: &str, after: Option<isize>) {
    if let Some(end) = comments.rfind("\n\n")
        && !comments[..end].trim().is_empty()
    {
        keep_comments(document, &comments[..end + 1], after);
    }
}

/// Adds profiles under ids and names of their own, but for those that run like one that is there; makes one of them
/// the default where there is none.
pub(super) fn import(
    path: &Path,
    config: &Config,
    document: &mut DocumentMut,
    found: &Found,
) -> Result<Imported, ConfigError> {
    let mut grown = config.clone();
    let mut imported = Imported::default();
    let mut ids = Vec::new();
    for profile in &found.profiles {
        if let Some(same) = config.profiles.iter().find(|there| there.runs_like(profile)) {
            imported.present.push(same.id.clone());
            ids.push(same.id.clone());
            continue;
        }
        let name = unique_name(&profile.name, &grown);
        let profile = Profile { id: unique_slug(&name, &grown), name, ..profile.clone() };
        add_profile(path, &grown, document, &profile)?;
        imported.added.push(profile.id.clone());
        ids.push(profile.id.clone());
        grown.profiles.push(profile);
    }
    let default = found.default.and_then(|n| ids.get(n)).filter(|_| config.default_profile.is_none());
    if let Some(id) = default {
        set_default(&grown, document, Some(id))?;
        imported.default = Some(id.clone());
    }
    Ok(imported)
}

pub(super) fn set_default(
    config: &Config,
    document: &mut DocumentMut,
    id: Option<&ProfileId>,
) -> Result<(), ConfigError> {
    const KEY: &str = "default_profile";
    let Some(id) = id else {
        if let Some((key, _)) = document.remove_entry(KEY) {
            let comments = key.leaf_decor().prefix().and_then(RawString::as_str).unwrap_or_default();
            if !comments.trim().is_empty() {
                keep_comments(document, comments, None);
            }
        }
        return Ok(());
    };
    if !has(config, id) {
        return Err(ConfigError::NoSuchProfile { id: id.clone() });
    }
    let header = if document.iter().any(|(_, item)| item.is_value()) { None } else { take_header(document) };
    set(document.as_table_mut(), KEY, Value::from(id.as_str()));
    if let Some(header) = header
        && let Some(mut key) = document.key_mut(KEY)
    {
        key.leaf_decor_mut().set_prefix(header);
    }
    Ok(())
}

pub(super) fn set_limits(
    path: &Path,
    config: &Config,
    document: &mut DocumentMut,
    limits: &Limits,
) -> Result<(), ConfigError> {
    for (name, _) in consort_model::limits::NAMED {
        let Some(value) = limits.get(name).filter(|value| config.limits.get(name) != Some(*value)) else {
            continue;
        };
        // A number past what the file can hold was refused before.
        set(table(path, document, "limits")?, name, Value::from(i64::try_from(value).unwrap_or(i64::MAX)));
    }
    Ok(())
}

/// Sets the keys of an action of the screen; none: what the file says of it is taken away.
pub(super) fn set_keys(
    path: &Path,
    document: &mut DocumentMut,
    action: &str,
    keys: Option<&[String]>,
) -> Result<(), ConfigError> {
    let table = table(path, document, "keys")?;
    match keys {
        Some([key]) => set(table, action, Value::from(key.as_str())),
        Some(keys) => set(table, action, Value::from(keys.iter().collect::<Array>())),
        None => drop(table.remove(action)),
    }
    Ok(())
}

/// The table of this name, which is made if there is none.
fn table<'a>(
    path: &Path,
    document: &'a mut DocumentMut,
    name: &str,
) -> Result<&'a mut dyn TableLike, ConfigError> {
    let item = document.entry(name).or_insert_with(|| {
        let mut table = Table::new();
        table.decor_mut().set_prefix("\n");
        Item::Table(table)
    });
    item.as_table_like_mut()
        .ok_or_else(|| ConfigError::NotATable { path: path.to_owned(), key: name.to_owned() })
}

/// Takes the comments at the top of a file of tables alone from the first table, so that a key below them can have
/// them. The table's own comment, which no blank line sets off from it, stays.
fn take_header(document: &mut DocumentMut) -> Option<String> {
    let mut first = None;
    next_table(document.as_table_mut(), -1, &mut first);
    let table = first?;
    let comments = table.decor().prefix().and_then(RawString::as_str).unwrap_or_default().to_owned();
    let end = comments.rfind("\n\n").filter(|end| !comments[..*end].trim().is_empty())?;
    let (header, own) = comments.split_at(end + 2);
    table.decor_mut().set_prefix(format!("\n{own}"));
    Some(header.to_owned())
}

/// An id made from a name: lower-case letters, digits and single hyphens.
pub fn slug(name: &str) -> ProfileId {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    ProfileId::new(if slug.is_empty() { "profile" } else { slug })
}

/// An id made from a name that no profile has yet.
pub fn unique_slug(name: &str, config: &Config) -> ProfileId {
    let first = slug(name);
    if !has(config, &first) {
        return first;
    }
    let mut number = 2_u64;
    loop {
        let candidate = ProfileId::new(format!("{first}-{number}"));
        if !has(config, &candidate) {
            return candidate;
        }
        number += 1;
    }
}

fn has(config: &Config, id: &ProfileId) -> bool {
    config.profiles.iter().any(|profile| profile.id == *id)
}

fn profiles<'a>(path: &Path, document: &'a mut DocumentMut) -> Result<&'a mut dyn TableLike, ConfigError> {
    let item = document.entry("profiles").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    item.as_table_like_mut()
        .ok_or_else(|| ConfigError::NotATable { path: path.to_owned(), key: "profiles".to_owned() })
}

/// Writes what differs.
fn fill(table: &mut dyn TableLike, profile: &Profile) {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let list =
        |texts: Vec<String>| (!texts.is_empty()).then(|| Value::Array(texts.into_iter().collect::<Array>()));
    // What is the default is written only over something else.
    let permissions = (profile.default_permissions != PermissionMode::default()
        || table.contains_key("default_permissions"))
    .then(|| Value::from(profile.default_permissions.word()));
    let environment = profile.environment.iter().cloned().map(String::from).collect();
    let fields = [
        ("name", Some(Value::from(profile.name.as_str()))),
        ("driver", Some(Value::from(profile.driver.word()))),
        ("command", text(&profile.command)),
        ("args", list(profile.args.clone())),
        ("environment", list(environment)),
        ("default_model", text(&profile.default_model)),
        ("default_permissions", permissions),
        ("sandbox_mode", profile.sandbox_mode.map(|mode| Value::from(mode.word()))),
        ("approval_policy", profile.approval_policy.map(|policy| Value::from(policy.word()))),
    ];
    for (key, value) in fields {
        match value {
            Some(value) => set(table, key, value),
            None => drop(table.remove(key)),
        }
    }
}

/// Sets a value, keeping the comment beside the old one; one that says the same stays as it is.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) if says_the_same(old, &value) => {}
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn says_the_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.value() == other.value(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| says_the_same(one, other))
        }
        _ => false,
    }
}

/// Gives comments whose place is gone to what follows: the next key of the root, the next table, or the end.
pub(super) fn keep_comments(document: &mut DocumentMut, comments: &str, after: Option<isize>) {
    if after.is_none()
        && let Some((mut key, _)) = document.iter_mut().find(|(_, item)| item.is_value())
    {
        let decor = key.leaf_decor_mut();
        let own = decor.prefix().and_then(RawString::as_str).unwrap_or_default();
        let joined = format!("{comments}{own}");
        decor.set_prefix(joined);
        return;
    }
    let mut next = None;
    next_table(document.as_table_mut(), after.unwrap_or(-1), &mut next);
    if let Some(table) = next {
        let own = table.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
        let joined = format!("{comments}{own}");
        table.decor_mut().set_prefix(joined);
    } else {
        let own = document.trailing().as_str().unwrap_or_default();
        let joined = format!("{own}{comments}");
        document.set_trailing(joined);
    }
}

/// The table whose header comes first after this position.
fn next_table<'a>(table: &'a mut Table, after: isize, next: &mut Option<&'a mut Table>) {
    for (_, item) in table.iter_mut() {
        let Item::Table(inner) = item else { continue };
        let position = inner.position().filter(|position| *position > after && !inner.is_implicit());
        if let Some(position) = position {
            let best = next.as_ref().and_then(|best| best.position());
            if best.is_none_or(|best| position < best) {
                *next = Some(inner);
            }
        } else {
            next_table(inner, after, next);
        }
    }
}
