//! The agent's questions with choices, as a form and back.
//!
//! One request holds one to a few questions; their own texts are the keys of the answer. Choices are offers: words
//! that are none of them are a valid answer too.

use consort_model::Question;
use serde_json::{Map, Value, json};

/// One question.
pub struct Asked<'a> {
    text: &'a str,
    header: &'a str,
    /// What can be chosen, with more about it.
    choices: Vec<(&'a str, &'a str)>,
    several: bool,
}

/// The questions in the input of the agent's tool.
pub fn read(input: &Value) -> Vec<Asked<'_>> {
    let questions = input.get("questions").and_then(Value::as_array).into_iter().flatten();
    questions
        .filter_map(|question| {
            let choices = question.get("options").and_then(Value::as_array).into_iter().flatten();
            Some(Asked {
                text: question.get("question")?.as_str()?,
                header: word(question, "header"),
                choices: choices
                    .filter_map(|choice| Some((choice.get("label")?.as_str()?, word(choice, "description"))))
                    .collect(),
                several: question.get("multiSelect").and_then(Value::as_bool).unwrap_or(false),
            })
        })
        .collect()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// All questions as one form.
pub fn question(asked: &[Asked<'_>]) -> Question {
    let texts: Vec<&str> = asked.iter().map(|question| question.text).collect();
    let fields = asked.iter().map(|question| {
        let ids: Vec<&str> = question.choices.iter().map(|(id, _)| *id).collect();
        let names: Vec<String> = question
            .choices
            .iter()
            .map(|(id, more)| if more.is_empty() { (*id).to_owned() } else { format!("{id}: {more}") })
            .collect();
        let choices = json!({"type": "string", "enum": ids, "enumNames": names});
        let mut field = match (question.several, ids.is_empty()) {
            (_, true) => json!({"type": "string"}),
            (true, false) => json!({"type": "array", "items": choices}),
            (false, false) => choices,
        };
        field["title"] = json!(if question.header.is_empty() { question.text } else { question.header });
        field["description"] = json!(question.text);
        (question.text.to_owned(), field)
    });
    let properties = Map::from_iter(fields);
    let schema = json!({"type": "object", "properties": properties, "required": texts});
    Question { text: texts.join("\n"), schema, url: None }
}

/// The answers by their questions. A plain answer goes to the first question that offers it, else to the first.
pub fn answers(asked: &[Asked<'_>], reply: &Value) -> Map<String, Value> {
    if let Some(given) = reply.as_object() {
        let answered = asked.iter().filter_map(|question| {
            let value = given.get(question.text).or_else(|| given.get(question.header))?;
            Some((question.text.to_owned(), words(value)?))
        });
        return answered.collect();
    }
    let offers = |question: &&Asked<'_>| question.choices.iter().any(|(id, _)| Some(*id) == reply.as_str());
    let question = asked.iter().find(offers).or_else(|| asked.first());
    question.and_then(|question| Some((question.text.to_owned(), words(reply)?))).into_iter().collect()
}

/// An answer as the agent takes it: text, several choices joined by commas.
fn words(value: &Value) -> Option<Value> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Null => None,
        Value::Array(values) => Some(Value::String(values.iter().map(word).collect::<Vec<_>>().join(", "))),
        other => Some(Value::String(word(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Value {
        json!({"questions": [
            {"question": "Which database?", "header": "DB", "multiSelect": false,
                "options": [{"label": "Postgres", "description": "big"}, {"label": "SQLite"}]},
            {"question": "Which parts?", "header": "Parts", "multiSelect": true,
                "options": [{"label": "Login"}, {"label": "Search"}]},
        ]})
    }

    #[test]
    fn questions_become_a_form() {
        let input = input();
        let question = question(&read(&input));
        assert_eq!(question.text, "Which database?\nWhich parts?");
        let fields = &question.schema["properties"];
        assert_eq!(fields["Which database?"]["enum"], json!(["Postgres", "SQLite"]));
        assert_eq!(fields["Which database?"]["enumNames"], json!(["Postgres: big", "SQLite"]));
        assert_eq!(fields["Which database?"]["title"], "DB");
        assert_eq!(fields["Which parts?"]["items"]["enum"], json!(["Login", "Search"]));
    }

    #[test]
    fn answers_find_their_questions() {
        let input = input();
        let table = [
            (
                json!({"Which database?": "SQLite", "Parts": ["Login", "Search"]}),
                json!({"Which database?": "SQLite", "Which parts?": "Login, Search"}),
            ),
            (json!("Search"), json!({"Which parts?": "Search"})),
            (json!("none of these"), json!({"Which database?": "none of these"})),
            (json!(["Login"]), json!({"Which database?": "Login"})),
            (json!({"other": 1}), json!({})),
            (json!(null), json!({})),
        ];
        for (reply, expected) in table {
            assert_eq!(Value::Object(answers(&read(&input), &reply)), expected, "{reply}");
        }
        assert!(read(&json!({"questions": [{"header": "x"}, 3]})).is_empty());
    }
}
