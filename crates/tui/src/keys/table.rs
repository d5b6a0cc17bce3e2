//! The table of keys itself.

/// What has the keyboard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Context {
    /// Works wherever nothing nearer takes the key.
    Anywhere,
    /// The prompt is being written.
    Composer,
    /// The conversation is being read.
    Transcript,
    /// The list of agents.
    Sidebar,
    /// An approval or question, in its pane or in the inbox.
    Ask,
    /// A list over everything else: palette, pickers, sessions, inbox.
    List,
    /// The settings.
    Settings,
    /// Text over everything else: help, diffs.
    Pager,
}

impl Context {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 8] = [
        Self::Anywhere,
        Self::Composer,
        Self::Transcript,
        Self::Sidebar,
        Self::Ask,
        Self::List,
        Self::Settings,
        Self::Pager,
    ];

    /// What the help calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Anywhere => "Anywhere",
            Self::Composer => "Prompt",
            Self::Transcript => "Conversation",
            Self::Sidebar => "List of agents",
            Self::Ask => "Approvals and questions",
            Self::List => "Lists",
            Self::Settings => "Settings",
            Self::Pager => "Texts: help, diffs, items",
        }
    }

    /// Whether keys it does not know work as they do anywhere.
    pub fn falls_through(self) -> bool {
        !matches!(self, Self::List | Self::Settings | Self::Pager)
    }
}

impl Action {
    /// Whether it works while something lies over everything else, too.
    pub fn works_over_everything(self) -> bool {
        matches!(self, Self::Quit | Self::NextNeedy)
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What `[keys]` calls it.
    pub name: &'static str,
    /// Where it works.
    pub context: Context,
    /// What it does.
    pub action: Action,
    /// Its keys, separated by spaces.
    pub keys: &'static str,
    /// What it does, for people.
    pub help: &'static str,
}

macro_rules! table {
    ($($context:ident { $($action:ident $name:literal $keys:literal $help:literal;)* })*) => {
        /// What a key can do.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs, reason = "the table says what each one does")]
        pub enum Action { $($($action,)*)* }

        /// Every key and what it does.
        pub const TABLE: &[Binding] = &[
            $($(Binding {
                name: $name,
                context: Context::$context,
                action: Action::$action,
                keys: $keys,
                help: $help,
            },)*)*
        ];
    };
}

table! {
    Anywhere {
        NextNeedy "next-needy" "ctrl-g" "go to the next agent that needs you";
        Inbox "inbox" "ctrl-o" "the inbox: everything that agents ask of you";
        Palette "palette" "ctrl-p" "the palette: every command and agent by name";
        NewAgent "new-agent" "ctrl-t" "a new agent";
        NextAgent "next-agent" "alt-down alt-n" "the next agent";
        PreviousAgent "previous-agent" "alt-up alt-p" "the agent before";
        FocusNext "focus-next" "tab" "give the keyboard to what is asked, the conversation, the list, the prompt";
        CycleMode "cycle-mode" "shift-tab" "the next permission mode";
        PickModel "model" "alt-m" "choose the model";
        Interrupt "interrupt" "ctrl-c" "empty the prompt; or stop the turn; or, twice, leave";
        RestartHere "restart-agent" "alt-r" "start the agent anew; it takes up its session";
        NextPane "next-pane" "alt-right alt-o" "the next pane";
        PreviousPane "previous-pane" "alt-left" "the pane before";
        CycleLayout "layout" "alt-l" "the next layout of panes";
        ShowAlone "alone" "alt-z" "show an agent alone, or with its companions again";
        ToggleSidebar "sidebar" "alt-b" "show or hide the list of agents";
        ScrollUp "scroll-up" "pageup" "scroll a page up";
        ScrollDown "scroll-down" "pagedown" "scroll a page down";
        ScrollTop "scroll-top" "ctrl-home alt-pageup" "to the first item";
        ScrollEnd "scroll-end" "ctrl-end alt-pagedown" "to the end, and follow it";
        Search "search" "ctrl-f" "search in the conversation";
        ToggleDetails "details" "alt-e" "unfold or fold everything in the conversation";
        CopyLast "copy" "alt-y" "copy the last answer";
        Diff "diff" "alt-d" "what the agent changed";
        Worktrees "worktrees" "alt-t" "worktrees of agents: what is in them; finish or remove them";
        About "about" "alt-a" "about the agent: profile, folder, branch, use, team, messages";
        Messages "messages" "alt-i" "messages between agents";
        Sessions "sessions" "ctrl-r" "every conversation: closed ones and programs' own sessions too";
        Settings "settings" "alt-s" "settings: profiles, rules, limits, theme, keys";
        Workspaces "workspaces" "alt-w" "switch, make or rename workspaces";
        Queue "queue" "alt-q" "prompts that wait: edit, drop, or give to the running turn";
        Help "help" "f1 alt-h" "this list of keys";
        Welcome "welcome" "f3" "what was found on this machine, and what to press";
        PlayDemo "demo" "f2" "play the demo: a team at work on a scratch repository";
        Suspend "suspend" "ctrl-z" "suspend; `fg` comes back";
        Redraw "redraw" "ctrl-l" "draw everything anew";
        Quit "quit" "ctrl-q" "leave; the agents go on";
    }
    Composer {
        Send "send" "enter" "send the prompt; while the agent works, it waits for its turn";
        Steer "steer" "ctrl-s" "give the prompt to the turn that runs, where the agent can take it";
        NewLine "new-line" "alt-enter shift-enter ctrl-j" "a new line";
        OpenEditor "editor" "ctrl-x" "write the prompt in $EDITOR";
        Leave "leave-prompt" "esc" "close what is open; read the conversation";
        HistoryBack "history-back" "up" "a line up, or the prompt sent before";
        HistoryForward "history-forward" "down" "a line down, or the prompt sent after";
        CharLeft "left" "left ctrl-b" "a character to the left";
        CharRight "right" "right" "a character to the right";
        WordLeft "word-left" "ctrl-left" "a word to the left";
        WordRight "word-right" "ctrl-right" "a word to the right";
        LineStart "line-start" "home ctrl-a" "to the begin of the line";
        LineEnd "line-end" "end ctrl-e" "to the end of the line";
        DeleteBack "delete-back" "backspace ctrl-h" "delete the character before";
        DeleteForward "delete-forward" "delete ctrl-d" "delete the character after";
        DeleteWord "delete-word" "ctrl-w alt-backspace" "delete the word before";
        KillToStart "kill-to-start" "ctrl-u" "delete to the begin of the line";
        KillToEnd "kill-to-end" "ctrl-k" "delete to the end of the line";
        PasteBack "yank" "ctrl-y" "put back what was deleted last";
        Undo "undo" "ctrl-7" "undo";
        PasteImage "paste-image" "ctrl-v" "attach the image in the clipboard";
    }
    Transcript {
        ItemUp "item-up" "up k" "the item before";
        ItemDown "item-down" "down j" "the next item";
        ToggleItem "toggle-item" "enter space" "unfold or fold the item";
        OpenItem "open-item" "o" "open the item whole, however long it is";
        CopyItem "copy-item" "y" "copy the item";
        SearchHere "search-here" "/" "search";
        NextFound "next-found" "n" "the next place that fits";
        PreviousFound "previous-found" "N" "the place before that fits";
        PageUpHere "page-up" "u ctrl-u b" "a page up";
        PageDownHere "page-down" "d f ctrl-d" "a page down";
        FirstItem "first" "g home" "to the first item";
        LastItem "last" "G end" "to the end";
        RestartAgent "restart" "R" "start the agent anew; it takes up its session";
        RebindAgent "rebind" "B" "give the agent another profile of its driver";
        LeaveTranscript "leave-conversation" "esc i" "back to the prompt";
    }
    Sidebar {
        RowUp "row-up" "up k" "a row up";
        RowDown "row-down" "down j" "a row down";
        RowOpen "row-open" "enter l right" "show the agent";
        RowAlone "row-alone" "o" "show the agent without its companions";
        RowPane "row-pane" "p" "show the agent in the next pane";
        RowRename "row-rename" "r" "rename the agent";
        RowInterrupt "row-interrupt" "s" "stop its turn";
        RowClose "row-close" "x" "close the agent";
        RowRestart "row-restart" "R" "start the agent anew";
        RowFork "row-fork" "f" "fork the agent";
        RowCompanion "row-companion" "c" "a companion for the agent";
        RowMove "row-move" "m" "move the agent to another workspace";
        LeaveSidebar "leave-list" "esc" "back to the prompt";
    }
    Ask {
        AllowOnce "allow-once" "y" "allow it once";
        AllowSession "allow-session" "s" "allow it for this session";
        AllowPattern "allow-pattern" "p" "allow what fits a pattern, such as `git *`";
        AllowAlways "allow-always" "a" "always allow it for this profile";
        AllowProject "allow-project" "w" "always allow it in this folder";
        Deny "deny" "n" "deny it";
        DenyWith "deny-with" "d" "deny it and say what to do instead";
        StopTurn "stop-turn" "x" "deny it and stop the turn";
        AnswerAsk "answer" "enter" "answer the question, or choose among the agent's own answers";
        NextAsk "next-ask" "j down" "the next one";
        PreviousAsk "previous-ask" "k up" "the one before";
        MarkAsk "mark" "space" "mark it, to answer several of one agent together";
        MarkAll "mark-all" "*" "mark all of this agent";
        AskPageDown "ask-page-down" "pagedown ctrl-d" "further down in what is asked";
        AskPageUp "ask-page-up" "pageup ctrl-u" "further up in what is asked";
        ShowAsker "show-asker" "o" "go to the agent that asks";
        LeaveAsk "leave-ask" "esc" "not now";
    }
    List {
        ListUp "list-up" "up ctrl-p" "a row up";
        ListDown "list-down" "down ctrl-n" "a row down";
        ListPageUp "list-page-up" "pageup" "a page up";
        ListPageDown "list-page-down" "pagedown" "a page down";
        ListChoose "list-choose" "enter" "choose";
        ListSubmit "list-submit" "ctrl-s" "save a form; give a prompt that waits to the turn that runs";
        ListDelete "list-delete" "ctrl-d delete" "drop the row, where that can be";
        ListLeave "list-leave" "esc ctrl-c" "close the list";
    }
    Settings {
        TabNext "tab-next" "tab right" "the next part";
        TabBack "tab-back" "shift-tab left" "the part before";
        SettingUp "setting-up" "up k" "a row up";
        SettingDown "setting-down" "down j" "a row down";
        SettingEdit "setting-edit" "enter e" "change it";
        SettingAdd "setting-add" "a" "add one";
        SettingDuplicate "setting-duplicate" "d" "duplicate it";
        SettingRemove "setting-remove" "x delete" "remove it";
        SettingDefault "setting-default" "m" "make it the default";
        SettingCheck "setting-check" "c" "look again what can be used";
        SettingLeave "setting-leave" "esc q" "close the settings";
    }
    Pager {
        PagerUp "pager-up" "up k" "a line up";
        PagerDown "pager-down" "down j" "a line down";
        PagerPageUp "pager-page-up" "pageup u ctrl-u" "a page up";
        PagerPageDown "pager-page-down" "pagedown d ctrl-d space" "a page down";
        PagerTop "pager-top" "g home" "to the top";
        PagerEnd "pager-end" "G end" "to the end";
        PagerNext "pager-next" "n tab" "the next file";
        PagerLeave "pager-leave" "esc q" "close it";
    }
}
