//! Reads the effects of a bash script without running it.
//!
//! The reader interprets each construct as bash does, or reports that it can't. The effects are a
//! flat list in the order of the text, because a policy asks which commands may run and not when.
//! Without a tree to walk, no branch can be forgotten.

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

/// How deeply compound commands, substitutions and quotes may be nested.
pub(crate) const MAX_NESTING: u32 = 50;

/// Characters with a meaning in bash that can be the second byte of a character in GBK or Big5.
const POSSIBLE_SECOND_BYTES: [char; 8] = ['\\', '`', '|', '{', '}', '[', ']', '~'];

/// One effect of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScriptEffect {
    /// Calls a command.
    Call(Call),
    /// Calls `cat` for the text of a here-document, which becomes part of a word.
    Text {
        /// The call as it is written, without the text.
        call: String,
    },
    /// Opens a file.
    Redirect(Redirection),
    /// An effect that is unknown, or known only by running the script.
    Unclear {
        /// The script from the unclear point to the end of the line.
        text: String,
        /// Why the effect is unknown.
        why: &'static str,
    },
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The command as it is written.
    pub(crate) text: String,
    /// The assignments before the command, or alone if there are no words.
    pub(crate) assignments: Vec<Assignment>,
    /// The command's name and its arguments.
    pub(crate) words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Word,
}

/// A file that is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirection {
    /// The redirection as it is written, with its operator.
    pub(crate) text: String,
    /// Whether the file is opened for writing; otherwise for reading. A file that is opened for
    /// both has two redirections.
    pub(crate) writes: bool,
    /// The path of the file.
    pub(crate) target: Word,
}

/// A word after expansion and the removal of quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly one word, with this text.
    Literal(String),
    /// Exactly one word: this path below the home folder. Empty, or begins with `/`.
    Home(String),
    /// Any number of words, known only when the script runs.
    Dynamic,
}

impl Word {
    /// The word, if it is known without the home folder.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Home(_) | Self::Dynamic => None,
        }
    }

    /// The word, if it is known given the home folder.
    pub(crate) fn known(&self, home: Option<&str>) -> Option<Cow<'_, str>> {
        match self {
            Self::Literal(text) => Some(Cow::Borrowed(text)),
            Self::Home(rest) => Some(Cow::Owned(format!("{}{rest}", home?))),
            Self::Dynamic => None,
        }
    }
}

/// The effects that `text` would have if bash ran it. `depth` is its nesting depth in other
/// scripts.
pub(crate) fn read(text: &str, depth: u32) -> Vec<ScriptEffect> {
    if text.len() > MAX_SCRIPT {
        let text = excerpt(text).to_owned();
        return vec![ScriptEffect::Unclear {
            text,
            why: "the script is longer than 128 KiB, the limit for a check",
        }];
    }
    let mut reader = Reader::new(text, depth);
    if let Some(at) = text.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
        reader.unclear_at(at, "the script contains a control character");
    }
    // In some locales, the second byte of a character can be any of these.
    let swallowed = |(at, c): (usize, char)| {
        (!c.is_ascii() && text[at + c.len_utf8()..].starts_with(POSSIBLE_SECOND_BYTES))
            .then_some(at)
    };
    if let Some(at) = text.char_indices().find_map(swallowed) {
        reader.unclear_at(at, "some locales read this character and the next one as one");
    }
    reader.whole()
}
