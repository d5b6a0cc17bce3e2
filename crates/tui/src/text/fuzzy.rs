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
    let mut found: Vec<(T, Match)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let found = query.find(candidate.as_ref())?;
            Some((candidate, found))
        })
        .collect();
    found.sort_by_key(|(candidate, found)| (std::cmp::Reverse(found.score), candidate.as_ref().len()));
    found.truncate(limit);
    found
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
        if !self.words.iter().all(|word| word.occurs(text)) {
            return None;
        }
        let mut total = Match { score: 0, positions: Vec::new() };
        if self.is_empty() {
            return Some(total);
        }
        let letters = letters(text);
        for word in &self.words {
            let found = word.place(&letters)?;
            total.score += found.score;
            total.positions.extend(found.positions);
        }
        total.positions.sort_unstable();
        total.positions.dedup();
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

fn letters(text: &str) -> Vec<Letter> {
    let name = text.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
    let mut before = '/';
    text.char_indices()
        .take(MAX_TEXT)
        .map(|(at, letter)| {
            let bonus = if at == 0 || at == name {
                NAME
            } else if !before.is_alphanumeric() && letter.is_alphanumeric()
                || before.is_lowercase() && letter.is_uppercase()
                || !before.is_numeric() && letter.is_numeric()
            {
                WORD
            } else {
                i32::from(at > name)
            };
            before = letter;
            Letter { at, letter, folded: fold(letter), bonus }
        })
        .collect()
}

impl Word {
    fn matches(&self, wanted: char, letter: char, folded: char) -> bool {
        if self.minds_case { wanted == letter } else { wanted == folded }
    }

    /// The cheap question first: most candidates fail it.
    fn occurs(&self, text: &str) -> bool {
        let mut letters = text.chars();
        self.letters.iter().all(|wanted| letters.any(|letter| self.matches(*wanted, letter, fold(letter))))
    }

    /// The best placement of the letters, by the table of best scores that end at each letter of the text.
    fn place(&self, text: &[Letter]) -> Option<Match> {
        let columns = text.len();
        // For each wanted letter and place: the best score with that letter matched there, and where the one before was.
        let mut scores = vec![None::<i32>; self.letters.len() * columns];
        let mut origins = vec![0usize; self.letters.len() * columns];
        for (row, wanted) in self.letters.iter().enumerate() {
            // The best end of the row above that lies before this column, less what the gap to it costs.
            let mut reachable: Option<(i32, usize)> = None;
            for (column, letter) in text.iter().enumerate() {
                if row > 0 && column >= 2 {
                    let opened = scores[(row - 1) * columns + column - 2]
                        .map(|score| (score - GAP - SKIP, column - 2));
                    let longer = reachable.map(|(score, origin)| (score - SKIP, origin));
                    reachable = opened.max(longer);
                }
                if !self.matches(*wanted, letter.letter, letter.folded) {
                    continue;
                }
                let worth = LETTER + letter.bonus + if *wanted == letter.letter { CASE } else { 0 };
                let best = if row == 0 {
                    Some((0, column))
                } else {
                    let neighbour = column
                        .checked_sub(1)
                        .and_then(|before| Some((scores[(row - 1) * columns + before]? + NEIGHBOUR, before)));
                    neighbour.max(reachable)
                };
                if let Some((score, origin)) = best {
                    scores[row * columns + column] = Some(score + worth);
                    origins[row * columns + column] = origin;
                }
            }
        }
        let last = self.letters.len().checked_sub(1)?;
        let (score, mut column) = (0..columns)
            .filter_map(|column| Some((scores[last * columns + column]?, column)))
            .max_by_key(|(score, column)| (*score, std::cmp::Reverse(*column)))?;
        let mut positions = Vec::with_capacity(self.letters.len());
        for row in (0..=last).rev() {
            positions.push(text[column].at);
            column = origins[row * columns + column];
        }
        positions.reverse();
        Some(Match { score, positions })
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
