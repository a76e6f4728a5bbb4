//! Data flow: where content comes from and where a call takes it. A request that has read outside content must not send or
//! destroy anything without approval, because injected instructions act through such calls.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::redacted::name_digest;
use crate::{AgentId, EffectId, Reply, RoleId, TaskId, TurnId, VendorTool};

/// How many sources are remembered by name, the newest ones. Earlier ones are only counted.
const MAX_SOURCES: usize = 16;

/// How many files have trails of their own.
const MAX_FILES: usize = 1_024;

/// How many files a request is remembered to have created.
const MAX_MADE: usize = 256;

/// What a call does with content, as the toolbox knows before the call is made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    /// The outside source of its result as text: a web page, a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<Arc<str>>,
    /// Whether its result may contain private data.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whether its result may contain what agents have stored in files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recalls: bool,
    /// Whether its result may contain what was stored as an artifact.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recalls_artifacts: bool,
    /// Whether it stores something in files that agents may read later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stores: bool,
    /// The file that it reads or writes, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Arc<str>>,
    /// Whether its arguments leave this machine or reach a program outside the sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sends: bool,
    /// Whether it may destroy something that is older than the request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub destroys: bool,
    /// The name of what it writes, if it is a single thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Arc<str>>,
    /// Whether the person has named all of its targets in this request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// Whether a policy rule allows it even after outside content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exempt: bool,
}

/// What the context of a request or agent contains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trail {
    /// The outside sources, oldest first.
    pub sources: Vec<Arc<str>>,
    /// At least how many earlier ones there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u32,
    /// Whether it contains private data.
    pub private: bool,
    /// The files that the request itself has created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Arc<str>>,
}

/// The trails of a society. Requests and agents that have read neither outside content nor private data have none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trails {
    /// Of requests in progress.
    tasks: FxHashMap<TaskId, Trail>,
    /// Of agents, whose conversations outlive a request.
    agents: FxHashMap<AgentId, Trail>,
    /// Of roles that agents have created: their prompts may repeat anything that the creator has read.
    #[serde(default)]
    roles: FxHashMap<RoleId, Trail>,
    /// Of files written by agents with outside content in their trail, if it is unknown which files.
    stored: Trail,
    /// Of files with known paths.
    #[serde(default)]
    files: FxHashMap<Arc<str>, Trail>,
    /// Of artifacts: any result may be stored as one.
    #[serde(default)]
    artifacts: Trail,
    /// The running calls that read stored content: what others store meanwhile may be in their results.
    #[serde(default)]
    reading: FxHashMap<EffectId, (TaskId, Flow)>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Flow {
    /// Whether nothing is known about it.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the call could do harm for injected instructions.
    pub fn is_sensitive(&self) -> bool {
        self.sends || self.destroys
    }
}

impl Trail {
    fn add(&mut self, source: &Arc<str>) {
        if self.sources.contains(source) {
            return;
        }
        self.sources.push(source.clone());
        if self.sources.len() > MAX_SOURCES {
            self.sources.remove(0);
            self.earlier = self.earlier.saturating_add(1);
        }
    }

    fn join(&mut self, other: &Self) {
        self.earlier = self.earlier.max(other.earlier);
        other.sources.iter().for_each(|source| self.add(source));
        self.private |= other.private;
    }

    fn is_empty(&self) -> bool {
        self.sources.is_empty() && !self.private && self.made.is_empty()
    }
}

impl Trails {
    /// The outside content because of which a call needs an approval; empty if it needs none.
    pub fn exposes(&self, agent: &AgentId, task: &TaskId, flow: &Flow) -> Vec<Arc<str>> {
        if !flow.is_sensitive() || flow.named || flow.exempt {
            return Vec::new();
        }
        let trail = self.of(agent, task);
        let is_own = flow.target.as_ref().is_some_and(|target| trail.made.contains(target));
        let leaks = flow.sends && trail.private;
        let destroys = flow.destroys && !is_own;
        if !(leaks || destroys) {
            return Vec::new();
        }
        let earlier = (trail.earlier > 0).then(|| format!("{} earlier ones", trail.earlier).into());
        trail.sources.into_iter().chain(earlier).collect()
    }

    /// What an agent that works on a request may have in its context.
    pub fn of(&self, agent: &AgentId, task: &TaskId) -> Trail {
        let mut trail = self.tasks.get(task).cloned().unwrap_or_default();
        self.agents.get(agent).into_iter().for_each(|known| trail.join(known));
        trail
    }

    /// Starts a call. Its result counts from here on, even if it fails, because errors contain text too.
    pub(crate) fn follow(&mut self, id: EffectId, agent: &AgentId, task: &TaskId, flow: &Flow) {
        if flow.is_none() {
            return;
        }
        let recalled = self.recalled(flow);
        let trail = self.tasks.entry(task.clone()).or_default();
        flow.outside.iter().for_each(|source| trail.add(source));
        trail.private |= flow.private;
        trail.join(&recalled);
        if let Some(target) = flow.target.as_ref().filter(|_| flow.stores && !flow.destroys)
            && trail.made.len() < MAX_MADE
            && !trail.made.contains(target)
        {
            trail.made.push(target.clone());
        }
        if trail.is_empty() {
            self.tasks.remove(task);
        }
        if flow.recalls || flow.recalls_artifacts {
            self.reading.insert(id, (task.clone(), flow.clone()));
        }
        let now = Trail { private: false, made: Vec::new(), ..self.of(agent, task) };
        if now.sources.is_empty() {
            return;
        }
        self.artifacts.join(&now);
        if !flow.stores {
            return;
        }
        match &flow.file {
            Some(file) if self.files.len() < MAX_FILES || self.files.contains_key(file) => {
                self.files.entry(file.clone()).or_default().join(&now);
            }
            _ => self.stored.join(&now),
        }
    }

    /// Ends a model call: its reply may contain what tools of the vendor have found.
    pub(crate) fn follow_reply(&mut self, id: EffectId, agent: &AgentId, task: &TaskId, reply: &Reply) {
        let has = |wanted: fn(VendorTool) -> bool| reply.vendor_calls.iter().any(|call| wanted(call.tool));
        let is_web = has(VendorTool::reads_web) || reply.citations.iter().any(|cited| !cited.url.is_empty());
        let outside = is_web.then(|| format!("a web search by {}", reply.model).into());
        let private = has(|tool| tool == VendorTool::FileSearch);
        self.follow(id, agent, task, &Flow { outside, private, ..Flow::default() });
    }

    /// What the result of a call may contain.
    fn recalled(&self, flow: &Flow) -> Trail {
        let mut trail = Trail::default();
        if flow.recalls {
            trail.join(&self.stored);
            match &flow.file {
                // Who wrote it may have been erased, and its name with that.
                Some(file) => {
                    let known = [self.files.get(file), self.files.get(&name_digest(file))];
                    known.into_iter().flatten().for_each(|known| trail.join(known));
                }
                None => self.files.values().for_each(|known| trail.join(known)),
            }
        }
        if flow.recalls_artifacts {
            trail.join(&self.artifacts);
        }
        trail
    }

    /// Ends a call: it may have read what was stored while it ran.
    pub(crate) fn end_call(&mut self, id: EffectId) {
        if self.reading.is_empty() {
            return;
        }
        if let Some((task, flow)) = self.reading.remove(&id) {
            let recalled = self.recalled(&flow);
            if !recalled.is_empty() {
                self.tasks.entry(task).or_default().join(&recalled);
            }
        }
    }

    /// Ends all calls of a turn.
    pub(crate) fn end_turn(&mut self, turn: TurnId) {
        if !self.reading.is_empty() {
            self.reading.retain(|id, _| id.turn != turn);
        }
    }

    /// An agent starts to work on a request: the content of its conversation is in its context.
    pub(crate) fn turn_to(&mut self, agent: &AgentId, task: &TaskId) {
        // Most societies have read nothing from outside, and turns begin and end very often.
        if self.agents.is_empty() {
            return;
        }
        if let Some(known) = self.agents.get(agent) {
            self.tasks.entry(task.clone()).or_default().join(known);
        }
    }

    /// An agent has worked on a request: its conversation contains what the request has read.
    pub(crate) fn turn_from(&mut self, agent: &AgentId, task: &TaskId) {
        if self.tasks.is_empty() {
            return;
        }
        if let Some(trail) = self.tasks.get(task).filter(|trail| trail.private || !trail.sources.is_empty()) {
            match self.agents.get_mut(agent) {
                Some(known) => known.join(trail),
                None => {
                    self.agents.insert(agent.clone(), Trail { made: Vec::new(), ..trail.clone() });
                }
            }
        }
    }

    /// An agent has created a role.
    pub(crate) fn make_role(&mut self, maker: &AgentId, task: &TaskId, role: &RoleId) {
        let trail = Trail { made: Vec::new(), ..self.of(maker, task) };
        if !trail.is_empty() {
            self.roles.insert(role.clone(), trail);
        }
    }

    /// An agent was created: it starts with what its role and its creator have read.
    pub(crate) fn spawn(&mut self, maker: Option<(&AgentId, &TaskId)>, role: &RoleId, made: &AgentId) {
        let mut trail = maker.map(|(agent, task)| self.of(agent, task)).unwrap_or_default();
        trail.made.clear();
        self.roles.get(role).into_iter().for_each(|known| trail.join(known));
        if !trail.is_empty() {
            self.agents.insert(made.clone(), trail);
        }
    }

    /// Drops the trail of an ended request.
    pub(crate) fn end_task(&mut self, task: &TaskId) {
        if !self.tasks.is_empty() {
            self.tasks.remove(task);
        }
    }

    /// Takes out the trail of an agent that leaves memory.
    pub(crate) fn take_out(&mut self, agent: &AgentId) -> Option<Trail> {
        self.agents.remove(agent)
    }

    pub(crate) fn put_back(&mut self, agent: &AgentId, trail: Trail) {
        self.agents.insert(agent.clone(), trail);
    }

    /// Drops the trail of a terminated agent.
    pub(crate) fn end_agent(&mut self, agent: &AgentId) {
        self.agents.remove(agent);
    }
}

/// Whether a text names a value as a separate word. Only specific values can be named, such as an address, a path or a
/// number; ordinary words ("all", "make") may occur in a request without meaning a target. A value that a sentence warns of
/// is not named by it.
pub fn names(text: &str, value: &str) -> bool {
    let is_specific = value.contains(|c: char| c.is_ascii_digit() || "@./\\:".contains(c));
    if !is_specific || !value.contains(char::is_alphanumeric) {
        return false;
    }
    let mut from = 0;
    while let Some(at) = text[from..].find(value).map(|at| from + at) {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        if !before.ends_with(in_word) && !goes_on(after) && !warns(before, after) {
            return true;
        }
        from = at + value.chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// Words that negate a sentence. A false match only costs a question to the person.
const WARNINGS: &[&str] = &[
    "never",
    "not",
    "no",
    "cannot",
    "nor",
    "neither",
    "avoid",
    "except",
    "exclude",
    "excluding",
    "without",
    "unless",
    "skip",
    "leave",
    "keep",
    "instead",
    "rather",
    "stop",
    "beware",
    "refuse",
    "forbid",
    "forbidden",
];
const WARNINGS_UNSPACED: &[&str] = &["不", "别", "勿", "禁止", "除了", "保留", "避免", "拒绝"];

/// Whether the sentence around these texts is negated.
fn warns(before: &str, after: &str) -> bool {
    let ends = |text: &str, at: usize, c: char| match c {
        '\n' | ';' | '。' | '！' | '？' | '；' => true,
        '.' | '!' | '?' => text[at + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    };
    let from = before.char_indices().rev().find(|(at, c)| ends(before, *at, *c));
    let to = after.char_indices().find(|(at, c)| ends(after, *at, *c));
    let head = &before[from.map_or(0, |(at, c)| at + c.len_utf8())..];
    let sentence = format!("{head} {}", &after[..to.map_or(after.len(), |(at, _)| at)]).to_lowercase().replace('\u{2019}', "'");
    let is_warning = |word: &str| WARNINGS.contains(&word) || word.ends_with("n't");
    sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').any(is_warning)
        || WARNINGS_UNSPACED.iter().any(|word| sentence.contains(word))
}

/// Characters that may be part of an address, a path or a number.
fn in_word(c: char) -> bool {
    (c.is_alphanumeric() && !is_unspaced(c)) || "_@./-+%=&#~:?$*\\".contains(c)
}

/// Letters of scripts without spaces between words: an address next to them is still a separate word.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a word continues here: a full stop or colon that ends a sentence does not count.
fn goes_on(after: &str) -> bool {
    let rest = after.trim_start_matches(['.', ':', '?']);
    if rest.len() < after.len() { rest.starts_with(in_word) } else { after.starts_with(in_word) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seq;

    #[test]
    fn a_reply_with_a_web_search_of_the_vendor_is_outside_content() {
        use crate::{Citation, VendorCall};

        let (root, task) = (AgentId::root(), TaskId::from("t"));
        let reply = Reply { model: "v/m".into(), ..Reply::default() };
        let searched = Reply { vendor_calls: [VendorCall::new(VendorTool::WebSearch, "q")].into(), ..reply.clone() };
        let cited = Reply { citations: [Citation::new("a", "https://a")].into(), ..reply.clone() };
        let ran = Reply { vendor_calls: [VendorCall::new(VendorTool::CodeExecution, "1+1")].into(), ..reply.clone() };
        let files = Reply { vendor_calls: [VendorCall::new(VendorTool::FileSearch, "q")].into(), ..reply };
        let trail = |reply: &Reply| {
            let mut trails = Trails::default();
            trails.follow_reply(call(), &root, &task, reply);
            let trail = trails.of(&root, &task);
            (trail.sources, trail.private)
        };
        assert_eq!(trail(&searched), (vec!["a web search by v/m".into()], false));
        assert_eq!(trail(&cited).0.len(), 1);
        assert_eq!((trail(&ran), trail(&files)), ((vec![], false), (vec![], true)));
    }

    #[test]
    fn a_value_is_named_only_as_a_word_of_its_own() {
        let text = "Send 10 to bob@corp.example. Then read https://a.example/x, 发给li@corp.cn吧; write notes/a.txt: done?";
        for value in ["bob@corp.example", "10", "https://a.example/x", "li@corp.cn", "notes/a.txt"] {
            assert!(names(text, value), "{value}");
        }
        for value in [
            "done",
            "BOB@corp.example",
            " bob@corp.example",
            "Notes/a.txt",
            "bob",
            "corp.example",
            "1",
            "100",
            "https://a.example",
            "a.txt",
            "notes",
            "evil@x.example",
            "",
            " ",
        ] {
            assert!(!names(text, value), "{value}");
        }
        let odd = "* first and / or - see info@bücher.example, delete /data/*.log in C:\\data\\old";
        for value in ["*", "/", "-", "cher.example", "ller@x.example", "/data/", "C:\\data", "C:"] {
            assert!(!names(odd, value), "{value}");
        }
    }

    #[test]
    fn what_a_sentence_warns_of_is_not_named() {
        for text in [
            "Never send anything to eve@x.example.",
            "Send it to bob@x.example, but not to eve@x.example",
            "Don't write to bob@x.example or eve@x.example!",
            "Don\u{2019}t mail eve@x.example",
            "不要发给eve@x.example",
            "Mail all except eve@x.example",
            "eve@x.example must never get this.",
            "Leave eve@x.example alone",
            "eve@x.example 不要发",
        ] {
            assert!(!names(text, "eve@x.example"), "{text}");
        }
        for text in [
            "Do not wait. Send it to eve@x.example",
            "No rush; eve@x.example gets it",
            "别急。发给eve@x.example",
            "Never mail eve@x.example in the morning. Now mail eve@x.example",
        ] {
            assert!(names(text, "eve@x.example"), "{text}");
        }
    }

    fn call() -> EffectId {
        EffectId { turn: TurnId(Seq(1)), n: 0 }
    }

    fn sends() -> Flow {
        Flow { sends: true, ..Flow::default() }
    }

    fn reads(source: &str) -> Flow {
        Flow { outside: Some(source.into()), private: true, ..Flow::default() }
    }

    #[test]
    fn outside_content_and_private_data_together_need_a_word_for_what_is_sent() {
        let (root, task) = (AgentId::root(), TaskId::from("t"));
        let web = Flow { outside: Some("a page".into()), ..Flow::default() };
        let file = Flow { private: true, recalls: true, ..Flow::default() };
        let check = |flows: &[&Flow], wanted: &Flow| {
            let mut trails = Trails::default();
            flows.iter().for_each(|flow| trails.follow(call(), &root, &task, flow));
            trails.exposes(&root, &task, wanted).len()
        };
        let destroys = Flow { destroys: true, ..Flow::default() };
        assert_eq!([check(&[], &sends()), check(&[&web], &sends()), check(&[&file], &sends())], [0, 0, 0]);
        assert_eq!([check(&[&web, &file], &sends()), check(&[&file, &web], &sends())], [1, 1]);
        assert_eq!([check(&[&web], &destroys), check(&[&file], &destroys)], [1, 0], "destroying needs no private data");
        assert_eq!(check(&[&web, &file], &Flow { named: true, ..sends() }), 0, "the person named it");
        assert_eq!(check(&[&web, &file], &Flow { exempt: true, ..sends() }), 0, "the operator's rule says so");
        assert_eq!(check(&[&web, &file], &file), 0, "reading goes on");
    }

    #[test]
    fn what_a_request_made_itself_it_may_write_again() {
        let (root, task) = (AgentId::root(), TaskId::from("t"));
        let write = |destroys| Flow { stores: true, destroys, target: Some("report.md".into()), ..Flow::default() };
        let mut trails = Trails::default();
        trails.follow(call(), &root, &task, &reads("a page"));
        assert_eq!(trails.exposes(&root, &task, &write(true)).len(), 1);
        trails.follow(call(), &root, &task, &write(false));
        assert_eq!(trails.exposes(&root, &task, &write(true)).len(), 0);
        assert_eq!(trails.exposes(&root, &"other".into(), &write(true)).len(), 0, "another request has read nothing");
    }

    #[test]
    fn content_goes_with_agents_from_request_to_request_and_through_what_they_store() {
        let (root, other) = (AgentId::root(), AgentId::from("other"));
        let (first, second, third) = (TaskId::from("1"), TaskId::from("2"), TaskId::from("3"));
        let mut trails = Trails::default();
        trails.follow(call(), &root, &first, &reads("a page"));
        trails.follow(call(), &root, &first, &Flow { stores: true, ..Flow::default() });
        let mut at_once = Trails::default();
        at_once.follow(call(), &root, &first, &Flow { stores: true, ..reads("a page") });
        at_once.follow(call(), &other, &third, &Flow { private: true, recalls: true, ..Flow::default() });
        assert_eq!(at_once.exposes(&other, &third, &sends()).len(), 1, "one call that fetches and stores");
        trails.spawn(Some((&root, &first)), &"plain".into(), &"child".into());
        trails.make_role(&root, &first, &"told".into());
        trails.spawn(None, &"told".into(), &"late".into());
        assert_eq!(trails.exposes(&"late".into(), &third, &sends()).len(), 1, "a role that it wrote");
        trails.turn_from(&root, &first);
        trails.end_task(&first);
        trails.turn_to(&root, &second);
        assert_eq!(trails.exposes(&root, &second, &sends()), ["a page".into()], "the conversation still holds it");
        assert_eq!(trails.exposes(&other, &second, &sends()).len(), 1, "and so does the request that it works on");
        assert_eq!(trails.exposes(&"child".into(), &third, &sends()).len(), 1, "and whoever it made");
        trails.turn_to(&other, &third);
        assert_eq!(trails.exposes(&other, &third, &sends()).len(), 0);
        trails.follow(call(), &other, &third, &Flow { private: true, recalls: true, ..Flow::default() });
        assert_eq!(trails.exposes(&other, &third, &sends()), ["a page".into()], "a file that it left");
        trails.end_agent(&"child".into());
        trails.end_task(&second);
        assert_eq!(trails.exposes(&"child".into(), &second, &sends()).len(), 0);
    }

    #[test]
    fn what_one_has_read_does_not_taint_what_others_read_elsewhere() {
        let (root, other) = (AgentId::root(), AgentId::from("other"));
        let (first, second) = (TaskId::from("1"), TaskId::from("2"));
        let file = |path: &str, stores: bool| Flow {
            private: true,
            recalls: !stores,
            stores,
            file: Some(path.into()),
            ..Flow::default()
        };
        let mut trails = Trails::default();
        trails.follow(call(), &root, &first, &reads("a page"));
        trails.follow(call(), &root, &first, &file("copy.txt", true));
        let exposed = |flow: &Flow| {
            let mut trails = trails.clone();
            trails.follow(call(), &other, &second, flow);
            trails.exposes(&other, &second, &sends()).len()
        };
        let everything = Flow { private: true, recalls: true, ..Flow::default() };
        let artifacts = Flow { private: true, recalls_artifacts: true, ..Flow::default() };
        assert_eq!([exposed(&file("own.txt", false)), exposed(&file("copy.txt", false))], [0, 1]);
        assert_eq!([exposed(&everything), exposed(&artifacts)], [1, 1], "a long result may have become an artifact");
        // A call that reads while the other one stores.
        let mut late = Trails::default();
        late.follow(call(), &other, &second, &everything);
        let writer = EffectId { turn: TurnId(Seq(2)), n: 0 };
        late.follow(writer, &root, &first, &Flow { stores: true, ..reads("a page") });
        assert_eq!(late.exposes(&other, &second, &sends()).len(), 0);
        late.end_call(call());
        assert_eq!(late.exposes(&other, &second, &sends()).len(), 1);
    }

    #[test]
    fn sources_are_bounded() {
        let (root, task) = (AgentId::root(), TaskId::from("t"));
        let mut trails = Trails::default();
        (0..100).for_each(|n| trails.follow(call(), &root, &task, &reads(&format!("page {n}"))));
        let trail = trails.of(&root, &task);
        assert_eq!((trail.sources.len(), trail.earlier), (MAX_SOURCES, 100 - MAX_SOURCES as u32));
        let named = trails.exposes(&root, &task, &sends());
        assert_eq!((&*named[MAX_SOURCES - 1], &*named[MAX_SOURCES]), ("page 99", "84 earlier ones"));
    }
}
