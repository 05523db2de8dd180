//! Scripts: what a bash script would do, read without running it.
//!
//! The reader takes bash at its word or says that it does not understand: whatever it passes over in silence,
//! bash reads the same way. What would run comes out flat, in the order it is written, because a policy asks
//! what may run and not when. There is no tree to walk, so nothing in it can be forgotten.

mod conditional;
mod expansion;
mod grammar;
mod here;
mod quote;
mod reader;
mod redirection;
mod simple;
mod text;
mod word;

use std::borrow::Cow;

use reader::Reader;
pub(crate) use reader::excerpt;

/// The longest script that is read, in bytes.
pub(crate) const MAX_SCRIPT: usize = 128 * 1024;

/// How deep compound commands, substitutions and quotes may stand in each other.
pub(crate) const MAX_NESTING: u32 = 50;

/// What means something to bash and can be the second byte of a character in GBK or Big5.
const SWALLOWED: [char; 8] = ['\\', '`', '|', '{', '}', '[', ']', '~'];

/// One thing that a script would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Calls a command.
    Call(Call),
    /// Calls `cat` for the text of a here-document, which is part of a word then.
    Text {
        /// The call as it is written, without the text.
        call: String,
    },
    /// Opens a file.
    Redirect(Redirection),
    /// Something here can't be known, or not without running it.
    Unclear {
        /// The script, from where it begins to be unclear to the end of the line.
        text: String,
        /// What it is.
        why: &'static str,
    },
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// As it is written.
    pub(crate) text: String,
    /// What is assigned before it, or alone if there are no words.
    pub(crate) assignments: Vec<Assignment>,
    /// The command's name and its arguments.
    pub(crate) words: Vec<Word>,
}

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The variable.
    pub(crate) name: String,
    /// What it is set to.
    pub(crate) value: Word,
}

/// A file that is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirection {
    /// As it is written, operator and all.
    pub(crate) text: String,
    /// It is opened to be written; else to be read. What is opened for both is two.
    pub(crate) writes: bool,
    /// Its path.
    pub(crate) target: Word,
}

/// A word, after bash would have expanded and unquoted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly one word: this.
    Literal(String),
    /// Exactly one word: this, below the home folder. Empty, or begins with `/`.
    Home(String),
    /// Any number of words: known only when it runs.
    Dynamic,
}

impl Word {
    /// The word, if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Home(_) | Self::Dynamic => None,
        }
    }

    /// The word, if it is known by one who knows the home folder.
    pub(crate) fn known(&self, home: Option<&str>) -> Option<Cow<'_, str>> {
        match self {
            Self::Literal(text) => Some(Cow::Borrowed(text)),
            Self::Home(rest) => Some(Cow::Owned(format!("{}{rest}", home?))),
            Self::Dynamic => None,
        }
    }
}

/// What `text` would do if bash ran it, as far as it can be read. `depth` is how deep it stands in others.
pub(crate) fn read(text: &str, depth: u32) -> Vec<Deed> {
    if text.len() > MAX_SCRIPT {
        let text = excerpt(text).to_owned();
        return vec![Deed::Unclear { text, why: "it is longer than 128 KiB, which is more than is read" }];
    }
    let mut reader = Reader::new(text, depth);
    if let Some(at) = text.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
        reader.unclear_at(at, "there is a control character in it");
    }
    // In some locales the second byte of a character can be any of these.
    let swallowed =
        |(at, c): (usize, char)| (!c.is_ascii() && text[at + c.len_utf8()..].starts_with(SWALLOWED)).then_some(at);
    if let Some(at) = text.char_indices().find_map(swallowed) {
        reader.unclear_at(at, "in some locales a character reaches further");
    }
    reader.whole()
}
