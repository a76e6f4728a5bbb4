//! Rules for names: whole words of the business, in one style. Independent of files and of Rust.

use std::collections::BTreeMap;

/// Words that are never part of a name: they say that somebody did not know what the thing is for.
const REFUSED: &[&str] = &["helper", "helpers", "misc", "processor", "processors", "stuff", "thing", "things", "util", "utils"];

/// Words that say nothing of the business. A name needs one that is not among them.
const EMPTY: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "agent",
    "agents",
    "ai",
    "any",
    "assistant",
    "bar",
    "base",
    "basic",
    "baz",
    "bot",
    "business",
    "child",
    "class",
    "common",
    "component",
    "core",
    "default",
    "demo",
    "do",
    "doing",
    "element",
    "engine",
    "entity",
    "example",
    "execute",
    "executing",
    "execution",
    "executor",
    "final",
    "first",
    "flow",
    "foo",
    "function",
    "general",
    "generic",
    "handle",
    "handler",
    "handlers",
    "handling",
    "info",
    "initial",
    "inner",
    "interaction",
    "item",
    "job",
    "jobs",
    "last",
    "llm",
    "logic",
    "main",
    "manager",
    "master",
    "middle",
    "model",
    "module",
    "my",
    "nested",
    "new",
    "next",
    "node",
    "object",
    "operation",
    "operations",
    "other",
    "our",
    "outer",
    "parent",
    "part",
    "perform",
    "phase",
    "phases",
    "process",
    "processes",
    "processing",
    "robot",
    "root",
    "run",
    "runner",
    "running",
    "sample",
    "second",
    "service",
    "simple",
    "some",
    "stage",
    "state",
    "step",
    "steps",
    "sub",
    "subthread",
    "subthreads",
    "system",
    "task",
    "tasks",
    "test",
    "tests",
    "prompt",
    "prompts",
    "third",
    "thread",
    "threads",
    "tool",
    "unit",
    "units",
    "work",
    "worker",
    "workflow",
    "working",
];

/// Words that are too broad to be a whole name.
const BROAD: &[&str] = &[
    "answer",
    "content",
    "context",
    "conversation",
    "data",
    "document",
    "documents",
    "file",
    "files",
    "input",
    "message",
    "messages",
    "output",
    "question",
    "request",
    "response",
    "result",
    "results",
    "text",
    "user",
];

/// Abbreviations that programmers like, and what they mean.
const SHORT: &[(&str, &str)] = &[
    ("acct", "account"),
    ("addr", "address"),
    ("arg", "argument"),
    ("args", "arguments"),
    ("attr", "attribute"),
    ("avg", "average"),
    ("biz", "business"),
    ("calc", "calculation"),
    ("cfg", "configuration"),
    ("chk", "check"),
    ("cmd", "command"),
    ("cnt", "count"),
    ("conf", "configuration"),
    ("conn", "connection"),
    ("ctx", "context"),
    ("cust", "customer"),
    ("dept", "department"),
    ("desc", "description"),
    ("dest", "destination"),
    ("dir", "directory"),
    ("doc", "document"),
    ("docs", "documents"),
    ("env", "environment"),
    ("err", "error"),
    ("eval", "evaluation"),
    ("exec", "execution"),
    ("expr", "expression"),
    ("fmt", "format"),
    ("func", "function"),
    ("gen", "generation"),
    ("idx", "index"),
    ("img", "image"),
    ("impl", "implementation"),
    ("init", "initial"),
    ("len", "length"),
    ("lib", "library"),
    ("lvl", "level"),
    ("mgmt", "management"),
    ("mgr", "manager"),
    ("mod", "module"),
    ("msg", "message"),
    ("mtg", "meeting"),
    ("num", "number"),
    ("obj", "object"),
    ("op", "operation"),
    ("opt", "option"),
    ("param", "parameter"),
    ("params", "parameters"),
    ("perf", "performance"),
    ("pkg", "package"),
    ("prep", "preparation"),
    ("prev", "previous"),
    ("proc", "process"),
    ("proj", "project"),
    ("ptr", "pointer"),
    ("qty", "quantity"),
    ("rec", "record"),
    ("ref", "reference"),
    ("reg", "registration"),
    ("req", "request"),
    ("res", "result"),
    ("resp", "response"),
    ("ret", "return"),
    ("rpt", "report"),
    ("sched", "schedule"),
    ("seq", "sequence"),
    ("src", "source"),
    ("stat", "statistic"),
    ("stats", "statistics"),
    ("str", "string"),
    ("svc", "service"),
    ("sys", "system"),
    ("temp", "temporary"),
    ("tmp", "temporary"),
    ("trans", "transformation"),
    ("txn", "transaction"),
    ("txt", "text"),
    ("usr", "user"),
    ("val", "value"),
    ("var", "variable"),
    ("ver", "version"),
    ("xfer", "transfer"),
    ("xform", "transformation"),
];

/// Abbreviations without a vowel that everybody knows.
const KNOWN: &[&str] = &[
    "css", "csv", "crm", "db", "dns", "gdpr", "gps", "hr", "html", "http", "https", "jpg", "json", "jwt", "kpi", "kyc", "llm",
    "mcp", "md", "mp", "nlp", "pdf", "png", "pr", "rss", "sdk", "sms", "sql", "ssh", "svg", "tcp", "tls", "tsv", "tv", "vpn",
    "xls", "xlsx", "xml",
];

/// Names that the documents give themselves; they are what they are.
const GIVEN: &[&str] = &[
    "completed",
    "initial_phase",
    "prepare_subthread",
    "execute_subthread",
    "process_results",
    "sub_thread_preparation",
    "sub_thread_execution",
];

/// Names of a last phase that should be `completed`.
const ENDS: &[&str] = &["complete", "done", "end", "ended", "final", "finish", "finished", "success", "terminated"];

/// The abbreviations that a project's documents define, with what they stand for.
pub(crate) type Abbreviations = BTreeMap<String, String>;

/// What is wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not in the style that it should have.
    Style { remedy: String },
    /// It says nothing of the business.
    Empty { wrong: String, remedy: String },
    /// A word is cut short.
    Short { wrong: String, remedy: String },
}

/// The lower-case words of a name in `snake_case`, `CamelCase` or something between.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        let after_small = at > 0 && !chars[at - 1].is_uppercase();
        let before_small = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        if !c.is_alphanumeric() || (c.is_uppercase() && (after_small || before_small)) {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// `data_pipeline`.
pub(crate) fn snake(name: &str) -> String {
    words(name).join("_")
}

/// `DataPipeline`.
pub(crate) fn camel(name: &str) -> String {
    let capital = |word: &String| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>())
    };
    words(name).iter().filter_map(capital).collect()
}

/// Whether this is `snake_case`.
pub(crate) fn is_snake(name: &str) -> bool {
    let fits = |c: char| c == '_' || (c.is_alphanumeric() && !c.is_uppercase());
    name.chars().all(fits) && name.split('_').all(|word| !word.is_empty())
}

/// Whether this is `CamelCase`.
pub(crate) fn is_camel(name: &str) -> bool {
    name.chars().all(char::is_alphanumeric)
        && name.chars().next().is_some_and(|first| !first.is_lowercase() && !first.is_numeric())
}

/// Whether two names consist of the same words, in any style.
pub(crate) fn alike(one: &str, other: &str) -> bool {
    let bare = |name: &str| words(name).concat();
    bare(one) == bare(other)
}

/// Checks the business part of a name, without the ending of its kind.
pub(crate) fn judge(name: &str, abbreviations: &Abbreviations) -> Option<Fault> {
    let words = words(name);
    if GIVEN.contains(&words.join("_").as_str()) {
        return None;
    }
    if let Some(short) = words.iter().find_map(|word| shortened(word, abbreviations)) {
        return Some(short);
    }
    let refused = words.iter().find(|word| REFUSED.contains(&word.as_str()));
    let says_nothing =
        words.iter().all(|word| EMPTY.contains(&word.trim_end_matches(char::is_numeric)) || word.chars().all(char::is_numeric));
    let broad = matches!(&words[..], [word] if BROAD.contains(&word.as_str()));
    let wrong = match refused {
        Some(word) => format!("`{name}`: `{word}` could be anything"),
        None if says_nothing => format!("`{name}` is a technical term and does not say what is done"),
        None if broad => format!("`{name}` alone does not say what is done with it"),
        None => return None,
    };
    Some(Fault::Empty { wrong, remedy: "name the work it does, such as order_tracking or code_review".to_owned() })
}

/// Checks the name of a phase.
pub(crate) fn judge_phase(phase: &str, abbreviations: &Abbreviations) -> Option<Fault> {
    if !is_snake(phase) {
        return Some(Fault::Style { remedy: format!("write `{}`", snake(phase)) });
    }
    if let Some(fault) = judge(phase, abbreviations) {
        return Some(fault);
    }
    let lone = !phase.contains('_') && phase.is_ascii() && !GIVEN.contains(&phase);
    lone.then(|| Fault::Empty {
        wrong: format!("`{phase}` says only half of what the phase does"),
        remedy: format!("say what is done to what, such as `data_{phase}`"),
    })
}

/// Whether the documents have given this name away.
pub(crate) fn is_given(name: &str) -> bool {
    GIVEN.contains(&name)
}

/// Whether a phase of this name is probably the last one.
pub(crate) fn means_completed(phase: &str) -> bool {
    ENDS.contains(&phase)
}

/// Abbreviations that a text defines: lines such as `- CRM: customer relations` below a heading with the word abbreviations.
pub(crate) fn defined_in(text: &str) -> Abbreviations {
    let mut abbreviations = Abbreviations::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('#') {
            inside = line.to_lowercase().contains("abbreviations") || line.contains("缩写");
            continue;
        }
        let entry = line.trim_start_matches(['-', '*', '|', ' ']);
        let parted = entry.split_once([':', '：', '|']).filter(|_| inside && entry != line);
        if let Some((short, long)) = parted {
            let short = short.trim_matches(['`', '*', ' ']);
            let long = snake(long.trim_matches(['|', ' ', '.', '`']));
            if !short.is_empty() && !long.is_empty() && short.chars().all(char::is_alphanumeric) {
                abbreviations.insert(short.to_lowercase(), long);
            }
        }
    }
    abbreviations
}

fn shortened(word: &str, abbreviations: &Abbreviations) -> Option<Fault> {
    if abbreviations.contains_key(word) || KNOWN.contains(&word) {
        return None;
    }
    let envelopes = word.trim_end_matches(char::is_numeric);
    if let Some((_, long)) = SHORT.iter().find(|(short, _)| *short == envelopes) {
        return Some(Fault::Short {
            wrong: format!("`{word}` is an abbreviation"),
            remedy: format!("write `{long}`, or the word you mean"),
        });
    }
    let unspoken = !envelopes.is_empty() && envelopes.chars().all(|c| c.is_ascii_lowercase() && !"aeiouy".contains(c));
    (unspoken && !KNOWN.contains(&envelopes)).then(|| Fault::Short {
        wrong: format!("`{word}` is an abbreviation that is defined nowhere"),
        remedy: "write it out, or define it in README.md below a heading `Abbreviations`: `- CRM: customer relations`"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_good(name: &str) -> bool {
        judge(name, &Abbreviations::new()).is_none()
    }

    #[test]
    fn names_are_split_into_words_in_any_style() {
        for name in ["DataPipeline", "data_pipeline", "dataPipeline", "data-pipeline", "Data_Pipeline"] {
            assert_eq!(words(name), ["data", "pipeline"], "{name}");
        }
        assert_eq!(words("CSVImport"), ["csv", "import"]);
        assert_eq!((snake("CSVImport").as_str(), camel("csv_import").as_str()), ("csv_import", "CsvImport"));
        assert!(alike("HTMLReport", "html_report") && !alike("HtmlReports", "html_report"));
        assert!(
            is_snake("data_2") && is_snake("数据_准备") && !is_snake("data__x") && !is_snake("dataX") && !is_snake("data-x")
        );
        assert!(is_camel("DataPipeline") && !is_camel("Data_Pipeline") && !is_camel("dataPipeline"));
    }

    #[test]
    fn names_of_the_business_pass_and_others_do_not() {
        for good in [
            "ArticleCreation",
            "CodeReview",
            "DataAnalysis",
            "CodeGeneration",
            "DataPipeline",
            "DataPreparation",
            "DataTransformation",
            "ResultFormatting",
            "RequirementClarification",
            "TaskPlanning",
            "TestGeneration",
            "CsvImport",
            "InitialPhase",
            "数据分析",
        ] {
            assert!(is_good(good), "{good}: {:?}", judge(good, &Abbreviations::new()));
        }
        for bad in [
            "SubThread",
            "Process",
            "Processing",
            "Helper",
            "DataHelper",
            "PaymentProcessor",
            "Main",
            "Worker",
            "Step2",
            "MyAgent",
            "Data",
            "TaskExecution",
            "x_utils",
            "",
            "2",
            "DefaultModel",
        ] {
            assert!(matches!(judge(bad, &Abbreviations::new()), Some(Fault::Empty { .. } | Fault::Short { .. })), "{bad}");
        }
    }

    #[test]
    fn abbreviations_are_refused_unless_known_or_defined() {
        for bad in ["MsgRouting", "order_mgmt", "DataProc", "sls_forecast", "x_import", "Doc2Import"] {
            assert!(matches!(judge(bad, &Abbreviations::new()), Some(Fault::Short { .. })), "{bad}");
        }
        let abbreviations = defined_in(
            "# A\n- no: it is not\n## Abbreviations\n\n- SLS: sales of the year\n| `rfp` | request for proposal |\n# B\n- tnt: x",
        );
        assert_eq!(
            abbreviations.into_iter().collect::<Vec<_>>(),
            [("rfp".to_owned(), "request_for_proposal".to_owned()), ("sls".to_owned(), "sales_of_the_year".to_owned())]
        );
        assert_eq!(judge("sls_forecast", &defined_in("# Abbreviations\n- sls: sales")), None);
    }

    #[test]
    fn a_phase_says_what_is_done_to_what() {
        for good in [
            "initial_phase",
            "completed",
            "data_preparation",
            "prepare_subthread",
            "execute_subthread",
            "process_results",
            "数据准备",
        ] {
            assert_eq!(judge_phase(good, &Abbreviations::new()), None, "{good}");
        }
        for bad in ["dataPreparation", "Data", "phase_2", "next_step", "drafting", "data__x", "msg_routing"] {
            assert!(judge_phase(bad, &Abbreviations::new()).is_some(), "{bad}");
        }
    }
}
