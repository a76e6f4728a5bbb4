//! Code in messages: how it is put into one and taken out again, and what runs it.

/// What runs the scripts that a model writes. The built-in ones are for `sh`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interpreter {
    /// The language, as models call it.
    pub language: &'static str,
    /// The program; a word for the shell.
    pub program: &'static str,
    /// How its files end.
    pub extension: &'static str,
}

/// All that can be chosen. One line makes it one more.
const INTERPRETERS: [Interpreter; 5] = [
    Interpreter::SHELL,
    Interpreter { language: "python", program: "python3", extension: "py" },
    Interpreter { language: "javascript", program: "node", extension: "js" },
    Interpreter { language: "perl", program: "perl", extension: "pl" },
    Interpreter { language: "ruby", program: "ruby", extension: "rb" },
];

impl Interpreter {
    /// What every system has: the shell, and awk with it.
    pub const SHELL: Self = Self { language: "sh", program: "sh", extension: "sh" };

    /// The interpreter with this program or language.
    pub fn find(name: &str) -> Option<Self> {
        INTERPRETERS.into_iter().find(|known| known.program == name || known.language == name)
    }
}

/// Code as a message shows it. The fence is longer than any in the code.
pub(super) fn block(language: &str, code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", code.trim_end_matches('\n'))
}

/// The first block of code in a message: its language and the code.
pub(super) fn find_block(text: &str) -> Option<(&str, String)> {
    let mut lines = text.lines();
    let (fence, language) = lines.by_ref().find_map(|line| {
        let line = line.trim_start();
        let rest = line.trim_start_matches('`');
        let fence = line.len() - rest.len();
        (fence >= 3).then_some((fence, rest.trim()))
    })?;
    let is_end = |line: &str| line.trim().len() >= fence && line.trim().chars().all(|c| c == '`');
    let mut code = String::new();
    for line in lines {
        if is_end(line) {
            return Some((language, code)).filter(|(_, code)| !code.trim().is_empty());
        }
        code.push_str(line);
        code.push('\n');
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comes_out_of_a_message_as_it_went_in() {
        for code in ["echo 1\n", "cat <<E\n```\nE\n", "echo '````'\n\necho 2\n"] {
            let message = format!("Here it is:\n{}\nSave it.", block("sh", code));
            assert_eq!(find_block(&message), Some(("sh", code.to_owned())));
        }
    }

    #[test]
    fn what_is_no_whole_block_is_no_code() {
        for text in ["", "echo 1", "```sh\necho 1", "```sh\n\n```", "Use `awk`."] {
            assert_eq!(find_block(text), None, "{text}");
        }
    }
}
