//! Text on its way to the screen: cleaned, wrapped by what is seen as one character, and styled.
//!
//! Pure functions from text and a width to styled lines. Knows nothing of agents, panes or the terminal.
