//! The languages: what they are called and what the lexer must know of them.

/// Which lexer reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The common one.
    Code,
    /// Tags.
    Markup,
    /// Lines that are added and removed.
    Diff,
}

/// How strings begin and end.
#[derive(Debug)]
pub struct Quote {
    /// What opens it.
    pub open: &'static str,
    /// What closes it.
    pub close: &'static str,
    /// Whether `\` takes the next letter along.
    pub escapes: bool,
    /// Whether it may go on over lines.
    pub multiline: bool,
}

/// What the lexer knows of a language.
#[derive(Debug)]
pub struct Language {
    /// Its name, its other names and the extensions and names of its files, in lower case.
    pub names: &'static [&'static str],
    pub(super) family: Family,
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Whether block comments nest.
    pub(super) nested: bool,
    /// The longest first, where one begins like another.
    pub(super) quotes: &'static [Quote],
    pub(super) keywords: &'static [&'static str],
    pub(super) types: &'static [&'static str],
    pub(super) constants: &'static [&'static str],
    /// Whether a name with a capital is a type.
    pub(super) capital_types: bool,
    /// Whether keywords may be written in any case.
    pub(super) any_case: bool,
    /// What follows a key of a mapping.
    pub(super) keys: Option<char>,
    /// Whether `$name` is a variable.
    pub(super) variables: bool,
    /// Whether `@name` is a decorator.
    pub(super) decorators: bool,
    /// Whether `-` belongs to names.
    pub(super) dashes: bool,
    /// Whether `#name` at the beginning of a line speaks to the preprocessor.
    pub(super) preprocessor: bool,
    /// Whether `[name]` at the beginning of a line is a section.
    pub(super) sections: bool,
    /// Whether it has Rust's raw strings, lifetimes, macros and attributes.
    pub(super) rust: bool,
}

impl Language {
    /// The language of this name, such as `rust`, `rs` or `Rust`.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.trim().to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()))
    }

    /// The language of the file at this path.
    pub fn of_path(path: &str) -> Option<&'static Self> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let named = |name: &str| (!name.is_empty()).then(|| Self::named(name)).flatten();
        match file.rsplit_once('.') {
            Some((_, extension)) => named(extension),
            None => named(file),
        }
    }
}

const fn quote(mark: &'static str) -> Quote {
    Quote { open: mark, close: mark, escapes: true, multiline: false }
}

const fn long_quote(mark: &'static str) -> Quote {
    Quote { open: mark, close: mark, escapes: true, multiline: true }
}

const fn raw_quote(mark: &'static str) -> Quote {
    Quote { open: mark, close: mark, escapes: false, multiline: true }
}

const C_QUOTES: &[Quote] = &[quote("\""), quote("'")];
const TEMPLATE_QUOTES: &[Quote] = &[quote("\""), quote("'"), long_quote("`")];
const TRIPLE_QUOTES: &[Quote] = &[long_quote("\"\"\""), long_quote("'''"), quote("\""), quote("'")];
const LONG_QUOTES: &[Quote] = &[long_quote("\""), raw_quote("'")];

/// A language with C's comments and quotes, to begin with.
const C_LIKE: Language = Language {
    names: &[],
    family: Family::Code,
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    nested: false,
    quotes: C_QUOTES,
    keywords: &[],
    types: &[],
    constants: &["true", "false", "null"],
    capital_types: true,
    any_case: false,
    keys: None,
    variables: false,
    decorators: false,
    dashes: false,
    preprocessor: false,
    sections: false,
    rust: false,
};

/// A language with comments that begin with `#`, to begin with.
const HASH_LIKE: Language =
    Language { line_comments: &["#"], block_comment: None, capital_types: false, ..C_LIKE };

macro_rules! words {
    ($($word:literal)*) => { &[$($word),*] };
}

const SCRIPT_KEYWORDS: &[&str] = words!["abstract" "any" "as" "asserts" "async" "await" "break" "case" "catch" "class" "const"
    "continue" "debugger" "declare" "default" "delete" "do" "else" "enum" "export" "extends" "finally" "for" "from"
    "function" "get" "if" "implements" "import" "in" "infer" "instanceof" "interface" "is" "keyof" "let" "namespace" "new"
    "of" "override" "private" "protected" "public" "readonly" "return" "satisfies" "set" "static" "super" "switch" "this"
    "throw" "try" "type" "typeof" "var" "void" "while" "with" "yield"];

const C_KEYWORDS: &[&str] = words!["alignas" "alignof" "auto" "break" "case" "catch" "class" "concept" "const" "constexpr"
    "continue" "co_await" "co_return" "co_yield" "decltype" "default" "delete" "do" "else" "enum" "explicit" "export"
    "extern" "final" "for" "friend" "goto" "if" "inline" "namespace" "new" "noexcept" "operator" "override" "private"
    "protected" "public" "register" "requires" "restrict" "return" "sizeof" "static" "static_assert" "struct" "switch"
    "template" "this" "throw" "try" "typedef" "typename" "union" "using" "virtual" "volatile" "while"];

const C_TYPES: &[&str] = words!["bool" "char" "double" "float" "int" "int16_t" "int32_t" "int64_t" "int8_t" "long" "short" "signed"
    "size_t" "ssize_t" "uint16_t" "uint32_t" "uint64_t" "uint8_t" "unsigned" "void" "wchar_t"];

/// All of them.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        nested: true,
        quotes: &[long_quote("b\""), long_quote("\""), quote("b'"), quote("'")],
        keywords: words!["as" "async" "await" "break" "const" "continue" "crate" "dyn" "else" "enum" "extern" "fn" "for" "gen"
            "if" "impl" "in" "let" "loop" "macro_rules" "match" "mod" "move" "mut" "pub" "ref" "return" "self" "static"
            "struct" "super" "trait" "type" "union" "unsafe" "use" "where" "while" "yield"],
        types: words!["bool" "char" "f32" "f64" "i128" "i16" "i32" "i64" "i8" "isize" "str" "u128" "u16" "u32" "u64" "u8" "usize"],
        constants: words!["true" "false" "None"],
        rust: true,
        ..C_LIKE
    },
    Language {
        names: &["python", "py", "pyi", "python3", "pyw"],
        quotes: TRIPLE_QUOTES,
        keywords: words!["and" "as" "assert" "async" "await" "break" "case" "class" "continue" "def" "del" "elif" "else" "except"
            "finally" "for" "from" "global" "if" "import" "in" "is" "lambda" "match" "nonlocal" "not" "or" "pass" "raise"
            "return" "try" "type" "while" "with" "yield"],
        types: words!["bool" "bytes" "dict" "float" "frozenset" "int" "list" "object" "set" "str" "tuple"],
        constants: words!["True" "False" "None" "self" "cls"],
        capital_types: true,
        decorators: true,
        ..HASH_LIKE
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "node"],
        quotes: TEMPLATE_QUOTES,
        keywords: SCRIPT_KEYWORDS,
        constants: words!["true" "false" "null" "undefined" "NaN" "Infinity"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["typescript", "ts", "tsx", "mts", "cts"],
        quotes: TEMPLATE_QUOTES,
        keywords: SCRIPT_KEYWORDS,
        types: words!["bigint" "boolean" "never" "number" "object" "string" "symbol" "unknown"],
        constants: words!["true" "false" "null" "undefined" "NaN" "Infinity"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["go", "golang"],
        quotes: &[quote("\""), quote("'"), raw_quote("`")],
        keywords: words!["break" "case" "chan" "const" "continue" "default" "defer" "else" "fallthrough" "for" "func" "go" "goto"
            "if" "import" "interface" "map" "package" "range" "return" "select" "struct" "switch" "type" "var"],
        types: words!["any" "bool" "byte" "complex128" "error" "float32" "float64" "int" "int16" "int32" "int64" "int8" "rune"
            "string" "uint" "uint16" "uint32" "uint64" "uint8" "uintptr"],
        constants: words!["true" "false" "nil" "iota"],
        ..C_LIKE
    },
    Language {
        names: &["c", "h", "cpp", "c++", "cc", "cxx", "hpp", "hh", "objc", "m", "ino", "cu"],
        keywords: C_KEYWORDS,
        types: C_TYPES,
        constants: words!["true" "false" "NULL" "nullptr"],
        preprocessor: true,
        ..C_LIKE
    },
    Language {
        names: &["java", "groovy", "gradle"],
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: words!["abstract" "assert" "break" "case" "catch" "class" "continue" "default" "def" "do" "else" "enum" "extends"
            "final" "finally" "for" "if" "implements" "import" "instanceof" "interface" "native" "new" "package" "permits"
            "private" "protected" "public" "record" "return" "sealed" "static" "super" "switch" "synchronized" "this" "throw"
            "throws" "transient" "try" "var" "volatile" "while" "yield"],
        types: words!["boolean" "byte" "char" "double" "float" "int" "long" "short" "void"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["kotlin", "kt", "kts"],
        nested: true,
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: words!["abstract" "actual" "as" "break" "by" "catch" "class" "companion" "const" "constructor" "continue" "data"
            "do" "else" "enum" "expect" "external" "final" "finally" "for" "fun" "get" "if" "import" "in" "infix" "init"
            "inline" "inner" "interface" "internal" "is" "lateinit" "object" "open" "operator" "out" "override" "package"
            "private" "protected" "public" "reified" "return" "sealed" "set" "super" "suspend" "tailrec" "this" "throw" "try"
            "typealias" "val" "value" "var" "vararg" "when" "where" "while"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["swift"],
        nested: true,
        quotes: &[long_quote("\"\"\""), quote("\"")],
        keywords: words!["actor" "any" "as" "associatedtype" "async" "await" "break" "case" "catch" "class" "continue" "default"
            "defer" "deinit" "do" "else" "enum" "extension" "fallthrough" "fileprivate" "final" "for" "func" "guard" "if"
            "import" "in" "indirect" "init" "inout" "internal" "is" "lazy" "let" "mutating" "open" "operator" "override"
            "private" "protocol" "public" "repeat" "rethrows" "return" "self" "some" "static" "struct" "subscript" "super"
            "switch" "throw" "throws" "try" "typealias" "var" "weak" "where" "while"],
        constants: words!["true" "false" "nil"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["csharp", "cs", "c#"],
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: words!["abstract" "as" "async" "await" "base" "break" "case" "catch" "checked" "class" "const" "continue"
            "default" "delegate" "do" "else" "enum" "event" "explicit" "extern" "finally" "fixed" "for" "foreach" "get" "goto"
            "if" "implicit" "in" "init" "interface" "internal" "is" "lock" "namespace" "new" "operator" "out" "override"
            "params" "partial" "private" "protected" "public" "readonly" "record" "ref" "required" "return" "sealed" "set"
            "sizeof" "static" "struct" "switch" "this" "throw" "try" "typeof" "unsafe" "using" "var" "virtual" "when" "where"
            "while" "with" "yield"],
        types: words!["bool" "byte" "char" "decimal" "double" "dynamic" "float" "int" "long" "object" "sbyte" "short" "string"
            "uint" "ulong" "ushort" "void"],
        preprocessor: true,
        ..C_LIKE
    },
    Language {
        names: &["dart"],
        quotes: TRIPLE_QUOTES,
        keywords: words!["abstract" "as" "assert" "async" "await" "base" "break" "case" "catch" "class" "const" "continue"
            "covariant" "default" "deferred" "do" "else" "enum" "export" "extends" "extension" "external" "factory" "final"
            "finally" "for" "get" "hide" "if" "implements" "import" "in" "interface" "is" "late" "library" "mixin" "new" "on"
            "operator" "part" "required" "rethrow" "return" "sealed" "set" "show" "static" "super" "switch" "sync" "this"
            "throw" "try" "typedef" "var" "void" "when" "while" "with" "yield"],
        types: words!["bool" "double" "dynamic" "int" "num"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["scala", "sc", "sbt"],
        nested: true,
        quotes: &[long_quote("\"\"\""), quote("\""), quote("'")],
        keywords: words!["abstract" "case" "catch" "class" "def" "derives" "do" "else" "enum" "export" "extends" "extension" "final"
            "finally" "for" "given" "if" "implicit" "import" "lazy" "match" "new" "object" "open" "override" "package"
            "private" "protected" "return" "sealed" "super" "then" "this" "throw" "trait" "try" "type" "using" "val" "var"
            "while" "with" "yield"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["zig"],
        block_comment: None,
        keywords: words!["align" "and" "anyframe" "anytype" "asm" "async" "await" "break" "catch" "comptime" "const" "continue"
            "defer" "else" "enum" "errdefer" "error" "export" "extern" "fn" "for" "if" "inline" "noalias" "nosuspend" "opaque"
            "or" "orelse" "packed" "pub" "resume" "return" "struct" "suspend" "switch" "test" "threadlocal" "try" "union"
            "unreachable" "usingnamespace" "var" "volatile" "while"],
        types: words!["bool" "f32" "f64" "i16" "i32" "i64" "i8" "isize" "type" "u16" "u32" "u64" "u8" "usize" "void"],
        constants: words!["true" "false" "null" "undefined"],
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["php"],
        line_comments: &["//", "#"],
        quotes: &[long_quote("\""), long_quote("'")],
        keywords: words!["abstract" "and" "as" "break" "case" "catch" "class" "clone" "const" "continue" "declare" "default" "do"
            "echo" "else" "elseif" "enum" "extends" "final" "finally" "fn" "for" "foreach" "function" "global" "goto" "if"
            "implements" "include" "instanceof" "interface" "match" "namespace" "new" "or" "print" "private" "protected"
            "public" "readonly" "require" "require_once" "return" "static" "switch" "throw" "trait" "try" "use" "var" "while"
            "yield"],
        types: words!["array" "bool" "callable" "float" "int" "iterable" "mixed" "object" "string" "void"],
        variables: true,
        ..C_LIKE
    },
    Language {
        names: &["ruby", "rb", "rake", "gemspec", "gemfile", "rakefile"],
        block_comment: Some(("=begin", "=end")),
        quotes: &[long_quote("\""), long_quote("'")],
        keywords: words!["BEGIN" "END" "alias" "and" "begin" "break" "case" "class" "def" "defined" "do" "else" "elsif" "end"
            "ensure" "for" "if" "in" "include" "loop" "module" "next" "not" "or" "private" "protected" "public" "raise" "redo"
            "require" "require_relative" "rescue" "retry" "return" "self" "super" "then" "undef" "unless" "until" "when"
            "while" "yield"],
        constants: words!["true" "false" "nil"],
        capital_types: true,
        decorators: true,
        ..HASH_LIKE
    },
    Language {
        names: &["elixir", "ex", "exs"],
        quotes: TRIPLE_QUOTES,
        keywords: words!["after" "alias" "and" "case" "catch" "cond" "def" "defimpl" "defmacro" "defmodule" "defp" "defprotocol"
            "defstruct" "do" "else" "end" "fn" "for" "if" "import" "in" "not" "or" "quote" "raise" "receive" "require"
            "rescue" "try" "unless" "unquote" "use" "when" "with"],
        constants: words!["true" "false" "nil"],
        capital_types: true,
        decorators: true,
        ..HASH_LIKE
    },
    Language {
        names: &["haskell", "hs"],
        line_comments: &["--"],
        block_comment: Some(("{-", "-}")),
        nested: true,
        quotes: &[quote("\"")],
        keywords: words!["as" "case" "class" "data" "deriving" "do" "else" "family" "forall" "foreign" "hiding" "if" "import" "in"
            "infix" "infixl" "infixr" "instance" "let" "mdo" "module" "newtype" "of" "qualified" "then" "type" "where"],
        constants: words!["True" "False" "Nothing"],
        ..C_LIKE
    },
    Language {
        names: &["lua"],
        line_comments: &["--"],
        block_comment: Some(("--[[", "]]")),
        quotes: &[
            Quote { open: "[[", close: "]]", escapes: false, multiline: true },
            quote("\""),
            quote("'"),
        ],
        keywords: words!["and" "break" "do" "else" "elseif" "end" "for" "function" "goto" "if" "in" "local" "not" "or" "repeat"
            "return" "then" "until" "while"],
        constants: words!["true" "false" "nil" "self"],
        capital_types: false,
        ..C_LIKE
    },
    Language {
        names: &["r"],
        keywords: words!["break" "else" "for" "function" "if" "in" "library" "next" "repeat" "require" "return" "while"],
        constants: words!["TRUE" "FALSE" "NULL" "NA" "Inf" "NaN"],
        ..HASH_LIKE
    },
    Language {
        names: &["julia", "jl"],
        block_comment: Some(("#=", "=#")),
        nested: true,
        quotes: TRIPLE_QUOTES,
        keywords: words!["abstract" "baremodule" "begin" "break" "catch" "const" "continue" "do" "else" "elseif" "end" "export"
            "finally" "for" "function" "global" "if" "import" "in" "let" "local" "macro" "module" "mutable" "primitive"
            "quote" "return" "struct" "try" "using" "where" "while"],
        constants: words!["true" "false" "nothing" "missing"],
        capital_types: true,
        decorators: true,
        ..HASH_LIKE
    },
    Language {
        names: &["perl", "pl", "pm"],
        quotes: LONG_QUOTES,
        keywords: words!["my" "our" "local" "sub" "if" "elsif" "else" "unless" "while" "until" "for" "foreach" "return" "use" "no"
            "package" "require" "last" "next" "redo" "and" "or" "not" "eq" "ne" "lt" "gt" "print" "die"],
        variables: true,
        ..HASH_LIKE
    },
    Language {
        names: &[
            "bash",
            "sh",
            "shell",
            "zsh",
            "fish",
            "console",
            "shell-session",
            "bashrc",
            "zshrc",
            "profile",
            "env",
        ],
        quotes: LONG_QUOTES,
        keywords: words!["alias" "break" "case" "cd" "continue" "declare" "do" "done" "echo" "elif" "else" "esac" "eval" "exec"
            "exit" "export" "fi" "for" "function" "if" "in" "local" "printf" "read" "readonly" "return" "set" "shift" "source"
            "sudo" "test" "then" "trap" "unset" "until" "while"],
        variables: true,
        dashes: true,
        ..HASH_LIKE
    },
    Language {
        names: &["powershell", "ps1", "pwsh", "psm1"],
        block_comment: Some(("<#", "#>")),
        quotes: LONG_QUOTES,
        keywords: words!["begin" "break" "catch" "class" "continue" "do" "else" "elseif" "end" "exit" "finally" "for" "foreach"
            "function" "if" "in" "param" "process" "return" "switch" "throw" "try" "until" "while"],
        variables: true,
        dashes: true,
        any_case: true,
        ..HASH_LIKE
    },
    Language {
        names: &["dockerfile", "docker", "containerfile"],
        keywords: words!["ADD" "ARG" "AS" "CMD" "COPY" "ENTRYPOINT" "ENV" "EXPOSE" "FROM" "HEALTHCHECK" "LABEL" "ONBUILD" "RUN"
            "SHELL" "STOPSIGNAL" "USER" "VOLUME" "WORKDIR"],
        variables: true,
        dashes: true,
        ..HASH_LIKE
    },
    Language {
        names: &["makefile", "make", "mk", "just", "justfile", "cmake"],
        keywords: words!["define" "else" "endef" "endif" "export" "ifdef" "ifeq" "ifndef" "ifneq" "include" "override"],
        variables: true,
        dashes: true,
        keys: Some(':'),
        ..HASH_LIKE
    },
    Language {
        names: &["nix"],
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote { open: "''", close: "''", escapes: false, multiline: true }, long_quote("\"")],
        keywords: words!["assert" "else" "if" "in" "inherit" "let" "or" "rec" "then" "with"],
        dashes: true,
        variables: true,
        ..HASH_LIKE
    },
    Language {
        names: &["terraform", "tf", "hcl"],
        line_comments: &["#", "//"],
        block_comment: Some(("/*", "*/")),
        keywords: words!["data" "for" "if" "in" "locals" "module" "output" "provider" "resource" "terraform" "variable"],
        dashes: true,
        keys: Some('='),
        ..HASH_LIKE
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        capital_types: false,
        keys: Some(':'),
        ..C_LIKE
    },
    Language {
        names: &["yaml", "yml"],
        constants: words!["true" "false" "null" "yes" "no" "on" "off" "True" "False"],
        dashes: true,
        keys: Some(':'),
        variables: true,
        ..HASH_LIKE
    },
    Language {
        names: &["toml", "lock"],
        quotes: TRIPLE_QUOTES,
        dashes: true,
        keys: Some('='),
        sections: true,
        ..HASH_LIKE
    },
    Language {
        names: &["ini", "conf", "cfg", "properties", "editorconfig", "gitconfig", "service", "desktop"],
        line_comments: &["#", ";"],
        quotes: &[quote("\"")],
        dashes: true,
        keys: Some('='),
        sections: true,
        ..HASH_LIKE
    },
    Language {
        names: &["css", "scss", "sass", "less"],
        line_comments: &["//"],
        keywords: words!["important" "from" "to" "and" "not" "only" "screen"],
        capital_types: false,
        dashes: true,
        decorators: true,
        variables: true,
        keys: Some(':'),
        ..C_LIKE
    },
    Language {
        names: &["sql", "postgresql", "mysql", "sqlite", "psql"],
        line_comments: &["--"],
        quotes: &[Quote { open: "'", close: "'", escapes: false, multiline: true }, quote("\"")],
        keywords: words!["add" "all" "alter" "and" "as" "asc" "begin" "between" "by" "cascade" "case" "check" "column" "commit"
            "conflict" "constraint" "create" "cross" "database" "default" "delete" "desc" "distinct" "do" "drop" "else" "end"
            "exists" "foreign" "from" "full" "function" "group" "having" "if" "in" "index" "inner" "insert" "into" "is" "join"
            "key" "left" "like" "limit" "not" "nothing" "offset" "on" "or" "order" "outer" "over" "partition" "primary"
            "references" "returning" "right" "rollback" "select" "set" "table" "then" "transaction" "trigger" "union" "unique"
            "update" "using" "values" "view" "when" "where" "with"],
        types: words!["bigint" "blob" "boolean" "char" "date" "decimal" "integer" "int" "json" "jsonb" "numeric" "real" "serial"
            "text" "time" "timestamp" "uuid" "varchar"],
        capital_types: false,
        any_case: true,
        ..C_LIKE
    },
    Language {
        names: &["graphql", "gql"],
        line_comments: &["#"],
        block_comment: None,
        quotes: TRIPLE_QUOTES,
        keywords: words!["directive" "enum" "extend" "fragment" "implements" "input" "interface" "mutation" "on" "query" "scalar"
            "schema" "subscription" "type" "union"],
        variables: true,
        decorators: true,
        ..C_LIKE
    },
    Language {
        names: &["protobuf", "proto"],
        keywords: words!["enum" "extend" "import" "map" "message" "oneof" "option" "optional" "package" "repeated" "required"
            "reserved" "returns" "rpc" "service" "stream" "syntax"],
        types: words!["bool" "bytes" "double" "fixed32" "fixed64" "float" "int32" "int64" "string" "uint32" "uint64"],
        ..C_LIKE
    },
    Language {
        names: &["html", "htm", "xml", "svg", "xhtml", "vue", "svelte", "plist"],
        family: Family::Markup,
        ..C_LIKE
    },
    Language { names: &["diff", "patch"], family: Family::Diff, ..C_LIKE },
];
