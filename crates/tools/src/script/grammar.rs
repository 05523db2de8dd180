//! The grammar of bash above the simple command: lists, pipelines and compound commands.

use super::reader::{Reader, Stop, is_meta};

/// Words with a meaning at the beginning of a command.
const RESERVED: [&str; 20] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "select", "then", "time", "until", "while", "{", "}",
];

/// Reserved words that begin a compound command.
const COMPOUND: [&str; 8] = ["[[", "case", "for", "if", "select", "until", "while", "{"];

/// Reserved words that end a list of commands.
const CLOSING: [&str; 8] = ["do", "done", "elif", "else", "esac", "fi", "then", "}"];

impl Reader<'_> {
    /// Reads the rest of the script.
    pub(super) fn script(&mut self) -> Result<(), Stop> {
        self.commands()?;
        match self.peek() {
            None if self.pending_heredocs.is_empty() => Ok(()),
            None => Err(Stop("a here-document has no text")),
            Some(_) => Err(Stop("bash would reject this")),
        }
    }

    /// Reads commands up to the end of the list. Returns how many there are.
    pub(super) fn commands(&mut self) -> Result<usize, Stop> {
        for count in 0.. {
            self.lines()?;
            if self.is_at_end_of_list() {
                return Ok(count);
            }
            self.and_or()?;
            self.gap();
            match (self.peek(), self.peek_at(1)) {
                (Some(b';'), Some(b';' | b'&')) => return Ok(count + 1),
                (Some(b';' | b'&'), _) => self.at += 1,
                (Some(b'\n'), _) => {}
                _ => return Ok(count + 1),
            }
        }
        Ok(usize::MAX)
    }

    /// Reads at least one command.
    fn some_commands(&mut self) -> Result<(), Stop> {
        if self.commands()? > 0 { Ok(()) } else { Err(Stop("a command is missing")) }
    }

    fn is_at_end_of_list(&self) -> bool {
        match (self.peek(), self.peek_at(1)) {
            (None | Some(b')'), _) | (Some(b';'), Some(b';' | b'&')) => true,
            _ => self.reserved().is_some_and(|word| CLOSING.contains(&word)),
        }
    }

    /// The reserved word that is next.
    fn reserved(&self) -> Option<&'static str> {
        // The longest is `function`, so nine bytes are enough.
        let next = self.rest().as_bytes();
        let word = next[..next.len().min(9)].split(|&byte| is_meta(byte)).next()?;
        let reserved = RESERVED.iter().find(|reserved| reserved.as_bytes() == word)?;
        self.word_ends_at(reserved.len()).then_some(*reserved)
    }

    fn eat_reserved(&mut self, word: &str) -> bool {
        let is_next = self.reserved() == Some(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn expect(&mut self, word: &str) -> Result<(), Stop> {
        if self.eat_reserved(word) {
            Ok(())
        } else {
            Err(self.expected("bash would expect something else here"))
        }
    }

    fn and_or(&mut self) -> Result<(), Stop> {
        loop {
            self.pipeline()?;
            self.gap();
            if !self.eat("&&") && !self.eat("||") {
                return Ok(());
            }
            self.lines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Stop> {
        loop {
            self.gap();
            if self.eat_reserved("time") {
                for option in ["-p", "--"] {
                    self.blanks();
                    if self.rest().starts_with(option) && self.word_ends_at(2) {
                        self.at += 2;
                    }
                }
            } else if !self.eat_reserved("!") {
                break;
            }
        }
        loop {
            self.command()?;
            self.gap();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Ok(());
            }
            self.at += 1;
            self.eat("&");
            self.lines()?;
        }
    }

    pub(super) fn command(&mut self) -> Result<(), Stop> {
        self.gap();
        match self.reserved() {
            None if self.peek() != Some(b'(') => self.simple(),
            // After a `|`, `time` is an ordinary program.
            Some("time") => self.simple(),
            Some("coproc") => self.coprocess(),
            Some("function") => self.function(),
            word => {
                self.nested(|this| this.compound(word))?;
                self.gap();
                while self.redirection()? {
                    self.gap();
                    // For example the `do` of `while (a) > f do`.
                    if self.reserved().is_some() {
                        return Err(Stop(
                            "bash does not treat this as a reserved word after a redirection",
                        ));
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads a compound command that begins with `word`, or with `(` for `None`.
    fn compound(&mut self, word: Option<&str>) -> Result<(), Stop> {
        self.at += word.map_or(1, str::len);
        match word {
            None => {
                if self.peek() == Some(b'(') {
                    self.unclear("arithmetic can run programs");
                }
                self.some_commands()?;
                if self.eat(")") { Ok(()) } else { Err(Stop("a `(` is not closed")) }
            }
            Some("{") => {
                self.some_commands()?;
                self.expect("}")
            }
            Some("if") => self.if_clause(),
            Some("while" | "until") => {
                self.some_commands()?;
                self.body()
            }
            Some("for") => self.for_clause(),
            Some("select") => {
                self.unclear("`select` waits for a choice");
                self.for_clause()
            }
            Some("case") => self.case_clause(),
            Some("[[") => self.conditional(),
            Some(_) => Err(Stop("bash would expect a command here")),
        }
    }

    /// Reads `do` … `done`.
    fn body(&mut self) -> Result<(), Stop> {
        self.expect("do")?;
        self.some_commands()?;
        self.expect("done")
    }

    fn if_clause(&mut self) -> Result<(), Stop> {
        loop {
            self.some_commands()?;
            self.expect("then")?;
            self.some_commands()?;
            if self.eat_reserved("elif") {
                continue;
            }
            if self.eat_reserved("else") {
                self.some_commands()?;
            }
            return self.expect("fi");
        }
    }

    fn for_clause(&mut self) -> Result<(), Stop> {
        self.blanks();
        let name = self.name().filter(|_| self.word_ends_at(0));
        let name =
            name.ok_or_else(|| self.expected("arithmetic or an invalid variable name in a loop"))?;
        self.record_unknown_assignment(name);
        self.gap();
        if !self.eat(";") {
            self.lines()?;
            if self.rest().starts_with("in") && self.word_ends_at(2) {
                self.at += 2;
                self.gap();
                while !matches!(self.peek(), None | Some(b';' | b'\n')) {
                    self.word()?;
                    self.gap();
                }
                self.eat(";");
            }
        }
        self.lines()?;
        self.body()
    }

    fn case_clause(&mut self) -> Result<(), Stop> {
        if self.substitution_depth > 0 {
            self.unclear("a `case` in a substitution, which versions of bash parse differently");
        }
        self.operand()?;
        self.lines()?;
        if !(self.rest().starts_with("in") && self.word_ends_at(2)) {
            return Err(Stop("bash would expect `in` here"));
        }
        self.at += 2;
        loop {
            self.lines()?;
            if self.eat_reserved("esac") {
                return Ok(());
            }
            self.eat("(");
            loop {
                self.operand()?;
                self.blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return Err(Stop("bash would expect `|` or `)` here"));
                }
            }
            self.commands()?;
            if !(self.eat(";;&")
                || self.eat(";;")
                || self.eat(";&")
                || self.reserved() == Some("esac"))
            {
                return Err(Stop("bash would expect `;;` here"));
            }
        }
    }

    fn coprocess(&mut self) -> Result<(), Stop> {
        self.unclear("coprocesses are not checked");
        self.expect("coproc")?;
        self.blanks();
        // A coprocess has a name only before a compound command.
        let start = self.at;
        let named = self.name().is_some();
        self.blanks();
        if !(named && self.begins_compound()) {
            self.at = start;
        }
        self.nested(Self::command)
    }

    fn begins_compound(&self) -> bool {
        self.peek() == Some(b'(') || self.reserved().is_some_and(|word| COMPOUND.contains(&word))
    }

    fn function(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.expect("function")?;
        self.operand()?;
        self.blanks();
        if self.eat("(") {
            self.blanks();
            if !self.eat(")") {
                return Err(Stop("bash would expect `)` here"));
            }
        }
        self.function_body(start)
    }

    /// Reads the rest of a function that began at `start`.
    pub(super) fn function_body(&mut self, start: usize) -> Result<(), Stop> {
        self.unclear_at(start, "it defines a function");
        self.lines()?;
        if self.begins_compound() {
            self.command()
        } else {
            Err(Stop("bash would expect a function's body here"))
        }
    }
}
