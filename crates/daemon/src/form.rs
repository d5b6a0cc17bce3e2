//! Questions as forms: what an answer must hold, read from the question's JSON schema, and typed words made values.

use serde_json::{Map, Value};

/// One thing that an answer holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its key in the answer.
    pub key: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Whether the answer must hold it.
    pub required: bool,
    /// What is taken for it where nothing is given.
    pub default: Option<Value>,
    /// What it can be.
    pub kind: Kind,
}

/// What a field can be.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// A number; whole or not.
    Number {
        /// Whether it has no fraction.
        whole: bool,
    },
    /// Yes or no.
    Flag,
    /// One of these: value and name.
    OneOf(Vec<(Value, String)>),
    /// Some of these: value and name.
    SomeOf(Vec<(Value, String)>),
    /// Something that only JSON can say.
    Json,
}

/// The fields of an object's schema, in its order; empty for plain text.
pub fn fields(schema: &Value) -> Vec<Field> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|keys| keys.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    properties
        .iter()
        .map(|(key, property)| Field {
            key: key.clone(),
            title: property.get("title").and_then(Value::as_str).map(str::to_owned),
            required: required.contains(&key.as_str()),
            default: property.get("default").cloned(),
            kind: kind(property),
        })
        .collect()
}

fn kind(property: &Value) -> Kind {
    if let Some(choices) = choices(property) {
        return Kind::OneOf(choices);
    }
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => Kind::Flag,
        Some("integer") => Kind::Number { whole: true },
        Some("number") => Kind::Number { whole: false },
        Some("array") => match property.get("items").and_then(choices) {
            Some(choices) => Kind::SomeOf(choices),
            None => Kind::Json,
        },
        Some("string") | None => Kind::Text,
        Some(_) => Kind::Json,
    }
}

/// The values of `enum`, or of `oneOf`/`anyOf` with `const`.
fn choices(schema: &Value) -> Option<Vec<(Value, String)>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let name = |at: usize, value: &Value| {
            names
                .and_then(|names| names.get(at))
                .and_then(Value::as_str)
                .map_or_else(|| word(value), str::to_owned)
        };
        return Some(values.iter().enumerate().map(|(at, value)| (value.clone(), name(at, value))).collect());
    }
    let listed = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)?;
    listed
        .iter()
        .map(|choice| {
            let value = choice.get("const")?.clone();
            let name =
                choice.get("title").and_then(Value::as_str).map_or_else(|| word(&value), str::to_owned);
            Some((value, name))
        })
        .collect()
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Field {
    /// What people call it.
    pub fn label(&self) -> String {
        match &self.title {
            Some(title) if *title != self.key => format!("{} ({title})", self.key),
            _ => self.key.clone(),
        }
    }

    /// What it can be, in words.
    pub fn describe(&self) -> String {
        let list = |choices: &[(Value, String)]| {
            let names = choices.iter().map(|(value, name)| {
                let value = word(value);
                if value == *name { value } else { format!("{value} ({name})") }
            });
            names.collect::<Vec<_>>().join(", ")
        };
        match &self.kind {
            Kind::Text => "text".to_owned(),
            Kind::Number { whole: true } => "a whole number".to_owned(),
            Kind::Number { whole: false } => "a number".to_owned(),
            Kind::Flag => "yes or no".to_owned(),
            Kind::OneOf(choices) => format!("one of {}", list(choices)),
            Kind::SomeOf(choices) => format!("some of {}, separated by commas", list(choices)),
            Kind::Json => "JSON".to_owned(),
        }
    }

    /// What was typed as a value, or a sentence on what to type. None: left out.
    pub fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("{} is needed: {}", self.key, self.describe())),
            };
        }
        let wrong = || format!("{} must be {}", self.key, self.describe());
        let value = match &self.kind {
            Kind::Text => Value::from(typed),
            Kind::Number { whole: true } => Value::from(typed.parse::<i64>().map_err(|_| wrong())?),
            Kind::Number { whole: false } => Value::from(typed.parse::<f64>().map_err(|_| wrong())?),
            Kind::Flag => Value::from(yes_or_no(typed).ok_or_else(wrong)?),
            Kind::OneOf(choices) => choose(choices, typed).ok_or_else(wrong)?,
            Kind::SomeOf(choices) => {
                let chosen = typed.split(',').map(|part| choose(choices, part.trim()).ok_or_else(wrong));
                Value::Array(chosen.collect::<Result<_, _>>()?)
            }
            Kind::Json => serde_json::from_str(typed).map_err(|_| wrong())?,
        };
        Ok(Some(value))
    }
}

/// A choice by its value, its name, or its number counted from 1.
fn choose(choices: &[(Value, String)], typed: &str) -> Option<Value> {
    let by_word = choices.iter().find(|(value, name)| word(value) == typed || name == typed);
    let by_number = || typed.parse::<usize>().ok()?.checked_sub(1).and_then(|at| choices.get(at));
    by_word.or_else(by_number).map(|(value, _)| value.clone())
}

/// `y`, `yes`, `true` and the like.
pub fn yes_or_no(typed: &str) -> Option<bool> {
    match typed.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" | "1" | "on" => Some(true),
        "n" | "no" | "false" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// The answer to a question as typed on the command line: a JSON object, or text. Where the question has exactly one
/// field that must be filled, text fills it.
pub fn reply(schema: &Value, typed: &str) -> Result<Value, String> {
    if let Ok(object @ Value::Object(_)) = serde_json::from_str::<Value>(typed) {
        return Ok(object);
    }
    let fields = fields(schema);
    let required: Vec<&Field> = fields.iter().filter(|field| field.required).collect();
    let only = match (&required[..], &fields[..]) {
        ([only], _) => only,
        ([], [only]) => only,
        (_, []) => return Ok(Value::from(typed)),
        _ => {
            let names: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
            return Err(format!("answer with a JSON object of these fields: {}", names.join(", ")));
        }
    };
    let mut object = Map::new();
    if let Some(value) = only.read(typed)? {
        object.insert(only.key.clone(), value);
    }
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["colour"],
            "properties": {
                "colour": { "type": "string", "enum": ["red", "blue"] },
                "count": { "type": "integer", "default": 3 },
                "flag": { "type": "boolean" },
                "tags": { "type": "array", "items": { "oneOf": [{ "const": "a", "title": "Ay" }, { "const": "b" }] } },
            }
        })
    }

    #[test]
    fn typed_words_become_values() {
        let fields = fields(&schema());
        let read = |key: &str, typed: &str| fields.iter().find(|field| field.key == key).unwrap().read(typed);
        assert_eq!(read("colour", "2"), Ok(Some(json!("blue"))));
        assert_eq!(read("colour", "red"), Ok(Some(json!("red"))));
        assert!(read("colour", "green").is_err());
        assert!(read("colour", "").is_err());
        assert_eq!(read("count", ""), Ok(Some(json!(3))));
        assert_eq!(read("count", "7"), Ok(Some(json!(7))));
        assert_eq!(read("flag", "yes"), Ok(Some(json!(true))));
        assert_eq!(read("flag", ""), Ok(None));
        assert_eq!(read("tags", "Ay, 2"), Ok(Some(json!(["a", "b"]))));
    }

    #[test]
    fn a_reply_is_text_an_object_or_the_one_needed_field() {
        assert_eq!(reply(&Value::Null, "hello"), Ok(json!("hello")));
        assert_eq!(reply(&schema(), "blue"), Ok(json!({ "colour": "blue" })));
        assert_eq!(reply(&schema(), r#"{"colour":"red"}"#), Ok(json!({ "colour": "red" })));
        let two = json!({ "properties": { "a": {}, "b": {} } });
        assert!(reply(&two, "x").unwrap_err().contains("a, b"));
    }
}
