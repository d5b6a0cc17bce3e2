//! What a row found, for people and for programs.

use serde_json::{Value, json};

use super::statistics::figure;

/// One figure with its goal.
pub struct Line {
    /// The row, and which of its figures.
    pub name: String,
    pub measured: String,
    /// What it is compared with; empty if the figure stands by itself.
    pub reference: String,
    pub figure: f64,
    pub unit: &'static str,
    pub goal: Goal,
    /// Spreads, and figures without a goal.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    /// Nothing was measured, as the line's `measured` says.
    Skipped,
}

impl Goal {
    fn words(self, unit: &str) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {}{unit}", figure(limit)),
            Self::Below(limit) => format!("< {}{unit}", figure(limit)),
            Self::AtLeast(limit) => format!(">= {}{unit}", figure(limit)),
            Self::Skipped => String::new(),
        }
    }
}

impl Line {
    pub fn met(&self) -> bool {
        match self.goal {
            Goal::AtMost(limit) => self.figure <= limit,
            Goal::Below(limit) => self.figure < limit,
            Goal::AtLeast(limit) => self.figure >= limit,
            Goal::Skipped => true,
        }
    }

    /// A figure that stands by itself.
    pub fn new(
        name: impl Into<String>,
        measured: impl Into<String>,
        figure: f64,
        unit: &'static str,
        goal: Goal,
    ) -> Self {
        let (name, measured) = (name.into(), measured.into());
        Self { name, measured, reference: String::new(), figure, unit, goal, notes: vec![] }
    }

    /// The same, compared with something.
    pub fn against(self, reference: impl Into<String>) -> Self {
        Self { reference: reference.into(), ..self }
    }

    /// The same with one more note.
    pub fn noting(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// A line for what cannot be measured here.
    pub fn skipped(name: impl Into<String>, why: &str) -> Self {
        Self::new(name, format!("skipped: {why}"), 0.0, "", Goal::Skipped)
    }

    fn cells(&self) -> [String; 6] {
        if self.goal == Goal::Skipped {
            let nothing = String::new;
            return [self.name.clone(), self.measured.clone(), nothing(), nothing(), nothing(), nothing()];
        }
        [
            self.name.clone(),
            self.measured.clone(),
            self.reference.clone(),
            format!("{}{}", figure(self.figure), self.unit),
            self.goal.words(self.unit),
            if self.met() { "ok" } else { "MISSED" }.to_owned(),
        ]
    }
}

/// The table, with the notes of each line below it.
pub fn render(lines: &[Line]) -> String {
    let head = ["row", "measured", "reference", "figure", "goal", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(lines.iter().map(Line::cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    let mut text = String::new();
    for (n, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
        let notes = n.checked_sub(1).and_then(|n| lines.get(n)).map_or(&[][..], |line| &line.notes);
        for note in notes {
            text.push_str(&format!("    {note}\n"));
        }
    }
    text
}

/// The same for programs.
pub fn json(lines: &[Line]) -> Value {
    let line = |line: &Line| {
        let (relation, limit) = match line.goal {
            Goal::AtMost(limit) => ("at_most", limit),
            Goal::Below(limit) => ("below", limit),
            Goal::AtLeast(limit) => ("at_least", limit),
            Goal::Skipped => return json!({ "row": line.name, "skipped": line.measured }),
        };
        json!({
            "row": line.name,
            "measured": line.measured,
            "reference": line.reference,
            "figure": line.figure,
            "unit": line.unit.trim(),
            "goal": { relation: limit },
            "met": line.met(),
            "notes": line.notes,
        })
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, figure: f64, goal: Goal) -> Line {
        Line::new(name, "3 ms", figure, "x", goal).against("1 ms").noting("a note")
    }

    #[test]
    fn goals_are_met_at_their_limit_except_those_that_must_stay_below() {
        assert!(line("a", 3.0, Goal::AtMost(3.0)).met());
        assert!(!line("a", 3.0, Goal::Below(3.0)).met());
        assert!(line("a", 3.0, Goal::AtLeast(3.0)).met());
        assert!(!line("a", 2.9, Goal::AtLeast(3.0)).met());
    }

    #[test]
    fn the_table_lines_up_and_tells_what_was_missed() {
        let lines = [line("short", 3.0, Goal::AtMost(4.0)), line("a longer row", 5.0, Goal::AtMost(4.0))];
        let shown = "\
row           measured  reference  figure  goal
short         3 ms      1 ms       3.00x   <= 4.00x  ok
    a note
a longer row  3 ms      1 ms       5.00x   <= 4.00x  MISSED
    a note
";
        assert_eq!(render(&lines), shown);
    }

    #[test]
    fn what_was_skipped_says_why_and_misses_nothing() {
        let line = Line::skipped("a", "tmux is not installed");
        assert!(line.met());
        assert!(render(std::slice::from_ref(&line)).contains("a    skipped: tmux is not installed\n"));
        assert_eq!(json(&[line])[0]["skipped"], "skipped: tmux is not installed");
    }

    #[test]
    fn programs_are_told_the_same() {
        let value = json(&[line("a", 5.0, Goal::AtMost(4.0))]);
        assert_eq!(value[0]["goal"]["at_most"], 4.0);
        assert_eq!(value[0]["met"], false);
    }
}
