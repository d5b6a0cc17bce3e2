//! Fuzzy search: whether the letters of a query occur in a text in their order, how well, and where.
//!
//! For palettes and file names. A query is one or more words, each of which must match; upper case in a word makes that
//! word care about case. The best placement of the letters is found, not the first one: beginnings of words, runs of
//! neighbours and the last part of a path count, gaps cost.

/// How well a text matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// The higher, the better.
    pub score: i32,
    /// The matched letters, as ascending positions in bytes.
    pub positions: Vec<usize>,
}

/// Points of a letter that matches at all.
const LETTER: i32 = 16;
/// For a letter right after the previous match.
const NEIGHBOUR: i32 = 12;
/// For a letter at the beginning of a word.
const WORD: i32 = 10;
/// For a letter at the very beginning, or of a file's name.
const NAME: i32 = 14;
/// For the same case.
const CASE: i32 = 1;
/// Taken for beginning to skip letters between two matches, and for each one skipped.
const GAP: i32 = 3;
const SKIP: i32 = 1;

/// Longer texts and queries are matched by their beginning only.
const MAX_TEXT: usize = 512;
const MAX_WORD: usize = 64;

/// Matches a query with a text; none if a letter of the query is missing.
pub fn find(query: &str, text: &str) -> Option<Match> {
    Query::new(query).find(text)
}

/// The best of many, best first; among equals the shorter, then the earlier one.
pub fn rank<T>(query: &str, candidates: impl IntoIterator<Item = T>, limit: usize) -> Vec<(T, Match)>
where
    T: AsRef<str>,
{
    let query = Query::new(query);
    let mut table = Table::default();
    let mut found: Vec<(i32, T)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((query.score(candidate.as_ref(), &mut table)?, candidate)))
        .collect();
    let order = |(score, candidate): &(i32, T)| (std::cmp::Reverse(*score), candidate.as_ref().len());
    found.sort_by_key(order);
    found.truncate(limit);
    // Where the letters are matters for what is shown only.
    found
        .into_iter()
        .filter_map(|(_, candidate)| query.find(candidate.as_ref()).map(|found| (candidate, found)))
        .collect()
}

/// A query made ready to be matched with many texts.
#[derive(Clone, Debug)]
pub struct Query {
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    letters: Vec<char>,
    minds_case: bool,
}

/// A letter of the text with what it is worth.
struct Letter {
    at: usize,
    letter: char,
    folded: char,
    bonus: i32,
}

impl Query {
    /// Reads a query.
    pub fn new(query: &str) -> Self {
        let word = |word: &str| Word {
            minds_case: word.chars().any(char::is_uppercase),
            letters: word.chars().take(MAX_WORD).collect(),
        };
        Self { words: query.split_whitespace().map(word).collect() }
    }

    /// Whether it asks for nothing, and so finds everything.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Matches it with a text.
    pub fn find(&self, text: &str) -> Option<Match> {
        let mut table = Table::default();
        let mut positions = Vec::new();
        let score = self.each_word(text, &mut table, |table, word, end| {
            table.trace(word.letters.len(), end, &mut positions)
        })?;
        positions.sort_unstable();
        positions.dedup();
        Some(Match { score, positions })
    }

    fn score(&self, text: &str, table: &mut Table) -> Option<i32> {
        self.each_word(text, table, |_, _, _| {})
    }

    fn each_word(
        &self,
        text: &str,
        table: &mut Table,
        mut placed: impl FnMut(&Table, &Word, usize),
    ) -> Option<i32> {
        // The cheap question first: most candidates fail it.
        if !self.words.iter().all(|word| word.occurs(text)) {
            return None;
        }
        let mut total = 0;
        if !self.is_empty() {
            table.read(text);
        }
        for word in &self.words {
            let (score, end) = table.place(word)?;
            total += score;
            placed(table, word, end);
        }
        Some(total)
    }
}

/// The lower case of a letter, where that is one letter.
fn fold(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

/// The best scores of a word's letters at each letter of a text; kept between texts for its memory.
#[derive(Default)]
struct Table {
    text: Vec<Letter>,
    /// For each letter of the word and place in the text: the best score with that letter there.
    scores: Vec<i32>,
    /// And where the letter before it is then.
    origins: Vec<u16>,
}

/// No way to get there.
const NEVER: i32 = i32::MIN / 2;

impl Table {
    fn read(&mut self, text: &str) {
        let name = text.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
        let mut before = '/';
        self.text.clear();
        self.text.extend(text.char_indices().take(MAX_TEXT).map(|(at, letter)| {
            let bonus = if at == 0 || at == name {
                NAME
            } else if begins_word(before, letter) {
                WORD
            } else {
                i32::from(at > name)
            };
            before = letter;
            Letter { at, letter, folded: fold(letter), bonus }
        }));
    }

    /// The best placement's score, and where its last letter is.
    fn place(&mut self, word: &Word) -> Option<(i32, usize)> {
        let columns = self.text.len();
        self.scores.clear();
        self.scores.resize(word.letters.len() * columns, NEVER);
        self.origins.clear();
        self.origins.resize(word.letters.len() * columns, 0);
        for (row, wanted) in word.letters.iter().enumerate() {
            let above = row.checked_sub(1).map(|row| row * columns);
            // The best end of the row above that lies before this column, less what the gap to it costs.
            let mut reachable = (NEVER, 0);
            // No letter can stand before as many as come before it in the word.
            for column in row..columns {
                if let Some(above) = above
                    && column >= 2
                {
                    let opened = (self.scores[above + column - 2] - GAP - SKIP, column - 2);
                    reachable = opened.max((reachable.0 - SKIP, reachable.1));
                }
                let letter = &self.text[column];
                if !word.matches(*wanted, letter.letter, letter.folded) {
                    continue;
                }
                let (score, origin) = match above {
                    None => (0, column),
                    Some(above) => (self.scores[above + column - 1] + NEIGHBOUR, column - 1).max(reachable),
                };
                if score > NEVER / 2 {
                    let worth = LETTER + letter.bonus + if *wanted == letter.letter { CASE } else { 0 };
                    self.scores[row * columns + column] = score + worth;
                    self.origins[row * columns + column] = u16::try_from(origin).unwrap_or(u16::MAX);
                }
            }
        }
        let last = word.letters.len().checked_sub(1)? * columns;
        (0..columns)
            .map(|column| (self.scores[last + column], column))
            .filter(|(score, _)| *score > NEVER / 2)
            .max_by_key(|(score, column)| (*score, std::cmp::Reverse(*column)))
    }

    /// Where the letters of the placement are that ends at a column.
    fn trace(&self, letters: usize, end: usize, positions: &mut Vec<usize>) {
        let mut column = end;
        for row in (0..letters).rev() {
            positions.push(self.text[column].at);
            column = self.origins[row * self.text.len() + column].into();
        }
    }
}

fn begins_word(before: char, letter: char) -> bool {
    !before.is_alphanumeric() && letter.is_alphanumeric()
        || before.is_lowercase() && letter.is_uppercase()
        || !before.is_numeric() && letter.is_numeric()
}

impl Word {
    fn matches(&self, wanted: char, letter: char, folded: char) -> bool {
        if self.minds_case { wanted == letter } else { wanted == folded }
    }

    fn occurs(&self, text: &str) -> bool {
        let mut letters = text.chars();
        self.letters.iter().all(|wanted| letters.any(|letter| self.matches(*wanted, letter, fold(letter))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best(query: &str, candidates: &[&'static str]) -> Vec<&'static str> {
        rank(query, candidates.iter().copied(), 10).into_iter().map(|(candidate, _)| candidate).collect()
    }

    #[test]
    fn letters_match_in_their_order() {
        assert_eq!(find("abc", "a_b_c").map(|found| found.positions), Some(vec![0, 2, 4]));
        assert_eq!(find("cab", "a_b_c"), None);
        assert_eq!(find("", "anything"), Some(Match { score: 0, positions: vec![] }));
        assert_eq!(find("x", ""), None);
    }

    #[test]
    fn the_best_placement_is_found_and_not_the_first() {
        assert_eq!(
            find("text", "t_e/context/text.rs").map(|found| found.positions),
            Some(vec![12, 13, 14, 15])
        );
        assert_eq!(find("fb", "foo_xb_bar").map(|found| found.positions), Some(vec![0, 7]));
    }

    #[test]
    fn names_of_files_come_before_their_folders() {
        assert_eq!(
            best("main", &["src/maintenance/other.rs", "crates/cli/src/main.rs", "domain.rs"]),
            ["crates/cli/src/main.rs", "src/maintenance/other.rs", "domain.rs"]
        );
        assert_eq!(best("na", &["banana", "new agent"])[0], "new agent");
        assert_eq!(best("ToS", &["toString", "ToString"]), ["ToString"]);
    }

    #[test]
    fn every_word_of_the_query_must_match_in_any_order() {
        assert!(find("agent new", "new agent").is_some());
        assert!(find("agent old", "new agent").is_none());
        assert_eq!(find("über", "Überall").map(|found| found.positions), Some(vec![0, 2, 3, 4]));
    }

    proptest! {
        #[test]
        fn positions_spell_the_query(query in "[a-c]{1,5}", text in "[a-cA-C/_ ]{0,20}") {
            match find(&query, &text) {
                Some(found) => {
                    let spelled: String =
                        found.positions.iter().filter_map(|at| text[*at..].chars().next()).map(fold).collect();
                    prop_assert_eq!(spelled, query);
                }
                None => {
                    let mut letters = text.chars();
                    prop_assert!(!query.chars().all(|wanted| letters.any(|letter| fold(letter) == wanted)));
                }
            }
        }

        #[test]
        fn any_text_can_be_searched(query in ".{0,20}", text in ".{0,60}") {
            if let Some(found) = find(&query, &text) {
                prop_assert!(found.positions.iter().all(|at| text.is_char_boundary(*at)));
            }
        }
    }
}
