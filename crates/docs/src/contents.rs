//! The table of contents: sections and their pages, in the order in which they are read. A page that is missing here fails a test.

use crate::page::Language;

/// A part of the table of contents.
#[derive(Debug)]
pub struct Section {
    english: &'static str,
    chinese: &'static str,
    /// The names of its pages.
    pub pages: &'static [&'static str],
}

impl Section {
    /// Its title.
    #[must_use]
    pub fn title(&self, language: Language) -> &'static str {
        match language {
            Language::English => self.english,
            Language::Chinese => self.chinese,
        }
    }
}

/// All sections.
#[must_use]
pub fn contents() -> &'static [Section] {
    CONTENTS
}

const CONTENTS: &[Section] = &[
    Section { english: "Start", chinese: "入门", pages: &["index", "tutorial", "concepts", "faq"] },
    Section {
        english: "Concepts",
        chinese: "概念",
        pages: &["society", "workflow", "sops", "skills", "memory", "societies", "policy", "trust", "offline-model"],
    },
    Section {
        english: "Use",
        chinese: "使用",
        pages: &["page", "models", "tools", "clients", "http", "peers", "components", "telemetry"],
    },
    Section {
        english: "Operate",
        chinese: "运维",
        pages: &["packaging", "security", "disaster-recovery", "upgrades", "postgres", "scale"],
    },
    Section { english: "Build", chinese: "开发", pages: &["agents", "naming", "tasks", "from-langgraph", "from-crewai"] },
    Section {
        english: "Reference",
        chinese: "参考",
        pages: &["reference/command-line", "reference/configuration", "reference/http", "reference/events"],
    },
    Section {
        english: "Error codes",
        chinese: "错误码",
        pages: &[
            "errors/index",
            "errors/access",
            "errors/agents",
            "errors/artifacts",
            "errors/backup",
            "errors/clients",
            "errors/data",
            "errors/memory",
            "errors/model",
            "errors/names",
            "errors/nodes",
            "errors/prompts",
            "errors/request",
            "errors/running",
            "errors/settings",
            "errors/societies",
            "errors/sources",
            "errors/trust",
            "errors/waiting",
        ],
    },
    Section { english: "Changes", chinese: "变更", pages: &["changelog"] },
];
