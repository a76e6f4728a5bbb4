//! Parses one Rust file for the agents, handlers, units and phases that it declares. Comments, strings and tests are ignored.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprMethodCall, ImplItemFn, Item, ItemConst, ItemImpl, ItemTrait, ItemUse, Lit, Macro, Path, Token, Type,
    UseTree,
};

/// The library that agents are written against.
const LIBRARY: &str = "polis";

/// The three files of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Agent,
    InteractionUnits,
    StateHandlers,
}

/// The kind of a type, by the trait that it implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Agent,
    SubThreadAgent,
    Handler,
    Unit,
}

/// A name and its line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedLine {
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// A type that is a part of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub(crate) part: Part,
    pub(crate) spot: NamedLine,
    /// The trait is the library's; else it came through another module, and its name is all we know.
    pub(crate) certain: bool,
    /// The methods that its code calls.
    pub(crate) calls: Vec<NamedLine>,
}

/// A text as far as it can be read without running the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    Literal(String),
    /// A constant of this name.
    Constant(String),
    Unknown,
}

/// A phase that is registered, and what follows it.
#[derive(Debug, Clone)]
pub(crate) struct PhaseRegistration {
    pub(crate) phase: Text,
    /// Nothing when the handler decides.
    pub(crate) next: Option<Text>,
    pub(crate) line: usize,
}

/// The declarations of one file.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// It uses the library.
    pub(crate) uses_library: bool,
    pub(crate) declared: Vec<Declaration>,
    /// Traits that are made here.
    pub(crate) traits: Vec<NamedLine>,
    pub(crate) registered: Vec<PhaseRegistration>,
    /// Phases that code suggests by itself.
    pub(crate) suggested: Vec<(Text, usize)>,
    /// Types that are spoken of, apart from imports.
    pub(crate) mentioned: BTreeSet<NamedLine>,
    pub(crate) constants: BTreeMap<String, String>,
    /// Modules in files of their own that are there for tests alone.
    pub(crate) test_modules: Vec<String>,
    /// An agent here chooses by itself what comes next, or when it is done.
    pub(crate) decides: bool,
    /// Why it cannot be read, and where.
    pub(crate) unreadable: Option<(String, usize)>,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Agent, Self::InteractionUnits, Self::StateHandlers];

    /// How the file's name ends.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Agent => "_agent",
            Self::InteractionUnits => "_interaction_units",
            Self::StateHandlers => "_state_handlers",
        }
    }

    /// The kind of a file by its name without `.rs`, and its owner. Other styles are recognised as well, to report them.
    pub(crate) fn of(stem: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| {
            let camel: String = super::naming::camel(kind.ending());
            let camel_start = format!("{}{}", camel[..1].to_lowercase(), &camel[1..]);
            let owner = stem.strip_suffix(kind.ending()).or_else(|| stem.strip_suffix(camel.as_str()));
            let owner = owner.or_else(|| stem.strip_suffix(&kind.ending().replace('_', "-"))).filter(|owner| !owner.is_empty());
            owner.or_else(|| (stem == camel_start || stem == &kind.ending()[1..]).then_some("")).map(|owner| (kind, owner))
        })
    }
}

impl Part {
    fn of(trait_name: &str) -> Option<Self> {
        Some(match trait_name {
            "Agent" => Self::Agent,
            "SubThreadAgent" => Self::SubThreadAgent,
            "StateHandler" => Self::Handler,
            "InteractionUnit" => Self::Unit,
            _ => return None,
        })
    }

    /// The file where such a type belongs.
    pub(crate) fn home(self) -> Kind {
        match self {
            Self::Agent | Self::SubThreadAgent => Kind::Agent,
            Self::Handler => Kind::StateHandlers,
            Self::Unit => Kind::InteractionUnits,
        }
    }

    /// How the type's name ends.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Agent | Self::SubThreadAgent => "Agent",
            Self::Handler => "Handler",
            Self::Unit => "Unit",
        }
    }
}

impl Source {
    /// Reads a file.
    pub(crate) fn read(text: &str) -> Self {
        let file = match syn::parse_file(text) {
            Ok(file) => file,
            Err(error) => {
                let unreadable = Some((error.to_string(), line(error.span())));
                return Self { uses_library: text.contains("use polis::"), unreadable, ..Self::default() };
            }
        };
        let mut reader = Reader::default();
        reader.visit_file(&file);
        let Reader { mut source, library, passed_on, implemented, .. } = reader;
        source.registered.sort_by_key(|registered| registered.line);
        for (trait_path, spot, calls) in implemented {
            let (Some(first), Some(last)) = (trait_path.first(), trait_path.last()) else { continue };
            let is_bare = trait_path.len() == 1;
            let certain = if is_bare { library.names.contains_key(last) || library.everything } else { first == LIBRARY };
            let possible = is_bare && (passed_on.names.contains_key(last) || passed_on.everything);
            let original = library.names.get(last).or_else(|| passed_on.names.get(last)).unwrap_or(last);
            if let Some(part) = Part::of(original).filter(|_| certain || possible) {
                source.declared.push(Declaration { part, spot, certain, calls });
            }
        }
        source
    }
}

/// The imports of a file from one source: local names with the original ones, or everything.
#[derive(Default)]
struct Imported {
    names: BTreeMap<String, String>,
    everything: bool,
}

#[derive(Default)]
struct Reader {
    source: Source,
    library: Imported,
    /// From other modules of the same crate.
    passed_on: Imported,
    /// What follows the registration at this place.
    next: BTreeMap<(usize, usize), Text>,
    /// The trait and the type of each `impl`, and the methods that are called in it.
    implemented: Vec<(Vec<String>, NamedLine, Vec<NamedLine>)>,
    /// The methods that were called since the `impl` began.
    calls: Vec<NamedLine>,
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
                self.source.test_modules.push(module.ident.to_string());
            }
            _ if is_for_tests(attributes(item)) => {}
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let UseTree::Path(path) = &item.tree else { return };
        if path.ident == LIBRARY {
            self.source.uses_library = true;
            self.library.add(&path.tree);
        } else if ["crate", "self", "super"].iter().any(|own| path.ident == own) {
            self.passed_on.add(&path.tree);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let outer = std::mem::take(&mut self.calls);
        visit::visit_item_impl(self, item);
        let calls = std::mem::replace(&mut self.calls, outer);
        if let (Some((path, _)), Type::Path(own)) = (&item.trait_, &*item.self_ty)
            && let Some(own) = own.path.segments.last()
        {
            let spot = NamedLine { name: own.ident.to_string(), line: line(own.ident.span()) };
            self.implemented.push((path.segments.iter().map(|segment| segment.ident.to_string()).collect(), spot, calls));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.source.traits.push(NamedLine { name: item.ident.to_string(), line: line(item.ident.span()) });
        visit::visit_item_trait(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        if let Text::Literal(text) = text(&item.expr) {
            self.source.constants.insert(item.ident.to_string(), text);
        }
        visit::visit_item_const(self, item);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.source.uses_library |= path.segments.len() > 1 && path.segments[0].ident == LIBRARY;
        for segment in &path.segments {
            let name = segment.ident.to_string();
            if name.starts_with(char::is_uppercase) {
                self.source.mentioned.insert(NamedLine { name, line: line(segment.ident.span()) });
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.source.decides |= ["is_terminal", "next_unit"].iter().any(|name| function.sig.ident == name);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.calls.push(NamedLine { name: call.method.to_string(), line: line(call.method.span()) });
        let place = |phase: &Expr| start(phase).unwrap_or(call.method.span());
        match (call.method.to_string().as_str(), call.args.first(), call.args.len()) {
            ("suggest_phase" | "to_phase" | "or_to_phase", Some(phase), 1) => {
                self.source.suggested.push((text(phase), line(place(phase))));
            }
            ("then", Some(phase), 1) if text(phase) != Text::Unknown || is_of_phases(&call.receiver) => {
                match registration(&call.receiver) {
                    Some(on) => {
                        self.next.insert(position(on.method.span()), text(phase));
                    }
                    None => self.source.suggested.push((text(phase), line(place(phase)))),
                }
            }
            ("on", Some(phase), 2) if text(phase) != Text::Unknown || is_of_phases(&call.receiver) => {
                let next = self.next.remove(&position(call.method.span()));
                self.source.registered.push(PhaseRegistration { phase: text(phase), next, line: line(place(phase)) });
            }
            _ => {}
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, made: &'ast Macro) {
        // `vec![…]` and its like hold expressions; what does not is left alone.
        if let Ok(inside) = made.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            // The chunks live only here, so they are read by a reader of their own.
            let mut reader = Reader::default();
            inside.iter().for_each(|expression| reader.visit_expr(expression));
            self.source.registered.extend(reader.source.registered);
            self.source.suggested.extend(reader.source.suggested);
            self.source.mentioned.extend(reader.source.mentioned);
            self.calls.extend(reader.calls);
        }
        visit::visit_macro(self, made);
    }
}

impl Imported {
    fn add(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add(&path.tree),
            UseTree::Name(name) => {
                self.names.insert(name.ident.to_string(), name.ident.to_string());
            }
            UseTree::Rename(renamed) => {
                self.names.insert(renamed.rename.to_string(), renamed.ident.to_string());
            }
            UseTree::Glob(_) => self.everything = true,
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree)),
        }
    }
}

/// The `.on(…)` that a later link of the same chain speaks of.
fn registration(receiver: &Expr) -> Option<&ExprMethodCall> {
    let Expr::MethodCall(call) = receiver else { return None };
    if call.method == "on" { Some(call) } else { registration(&call.receiver) }
}

/// Whether a chain begins with `Phases::new()` or `Units::new()`.
fn is_of_phases(receiver: &Expr) -> bool {
    match receiver {
        Expr::MethodCall(call) => is_of_phases(&call.receiver),
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return false };
            path.path.segments.iter().any(|segment| segment.ident == "Phases" || segment.ident == "Units")
        }
        _ => false,
    }
}

fn position(span: Span) -> (usize, usize) {
    (span.start().line, span.start().column)
}

/// The text of an expression: `"x"`, `"x".into()`, `Some("x")`, `Phase::new("x")?`, `NAME`.
fn text(expression: &Expr) -> Text {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(literal) => Text::Literal(literal.value()),
            _ => Text::Unknown,
        },
        Expr::Path(path) => match path.path.segments.last() {
            Some(last) if last.ident.to_string().chars().all(|c| c == '_' || c.is_uppercase() || c.is_numeric()) => {
                Text::Constant(last.ident.to_string())
            }
            _ => Text::Unknown,
        },
        Expr::MethodCall(call) if call.args.is_empty() || ["expect", "map_err"].iter().any(|name| call.method == name) => {
            text(&call.receiver)
        }
        Expr::Try(tried) => text(&tried.expr),
        Expr::Call(call) if call.args.len() == 1 => call.args.first().map_or(Text::Unknown, text),
        Expr::Reference(reference) => text(&reference.expr),
        Expr::Paren(paren) => text(&paren.expr),
        Expr::Group(group) => text(&group.expr),
        _ => Text::Unknown,
    }
}

/// The position of the text, if there is one.
fn start(expression: &Expr) -> Option<Span> {
    match expression {
        Expr::Lit(literal) => Some(literal.lit.span()),
        Expr::Path(path) => path.path.segments.last().map(|last| last.ident.span()),
        Expr::MethodCall(call) => start(&call.receiver),
        Expr::Try(tried) => start(&tried.expr),
        Expr::Call(call) => call.args.first().and_then(start),
        Expr::Reference(reference) => start(&reference.expr),
        _ => None,
    }
}

fn line(span: Span) -> usize {
    span.start().line.max(1)
}

/// Whether something is there for tests alone: `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, but not `#[cfg(not(test))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if !path.is_ident("cfg") {
            return path.segments.last().is_some_and(|last| last.ident == "test");
        }
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        let condition: String = condition.split_whitespace().collect();
        condition == "test"
            || (condition.starts_with("all(")
                && condition.split(['(', ',', ')']).any(|word| word == "test")
                && !condition.contains("not("))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(text: &str) -> Vec<(Part, String, usize)> {
        Source::read(text).declared.into_iter().map(|found| (found.part, found.spot.name, found.spot.line)).collect()
    }

    #[test]
    fn only_real_code_that_uses_the_library_counts() {
        let text = r##"
//! impl StateHandler for CommentHandler {}
use polis::{Agent, StateHandler as Handles, Turn};
/* impl Agent for BlockAgent {} */
const TEXT: &str = r#"impl Agent for TextAgent {}"#;
impl Agent for OrderAgent {}
impl<T: Send> Handles for order::PackingHandler<T> {}
impl other::StateHandler for ForeignHandler {}
impl polis::InteractionUnit for PackingUnit {}
macro_rules! agent { ($x:ident) => { impl Agent for $x {} } }
#[cfg(test)]
mod tests { use super::*; impl Agent for TestAgent {} }
#[cfg(not(test))]
impl Agent for RealAgent {}
#[test]
fn a_test() { struct Inner; impl Agent for Inner {} }
impl Clone for OrderAgent {}
"##;
        let found = [
            (Part::Agent, "OrderAgent".to_owned(), 6),
            (Part::Handler, "PackingHandler".to_owned(), 7),
            (Part::Unit, "PackingUnit".to_owned(), 9),
            (Part::Agent, "RealAgent".to_owned(), 14),
        ];
        assert_eq!(declared(text), found);
        assert!(declared("use other::Agent;\nimpl Agent for OrderAgent {}").is_empty(), "another library's agent");
        assert!(declared("trait Agent {}\nimpl Agent for OrderAgent {}").is_empty(), "an agent of its own");
        assert_eq!(declared("use polis::*;\nimpl Agent for OrderAgent {}").len(), 1);
        let passed_on = Source::read("use super::*;\nimpl Agent for OrderAgent {}");
        assert!(matches!(&passed_on.declared[..], [found] if !found.certain));
    }

    #[test]
    fn the_kind_of_a_file_is_in_its_name_in_any_style() {
        for (stem, kind) in [
            ("data_pipeline_agent", Some((Kind::Agent, "data_pipeline"))),
            ("DataPipelineStateHandlers", Some((Kind::StateHandlers, "DataPipeline"))),
            ("data-pipeline-interaction-units", Some((Kind::InteractionUnits, "data-pipeline"))),
            ("agent", Some((Kind::Agent, ""))),
            ("state_handlers", Some((Kind::StateHandlers, ""))),
            ("agents", None),
            ("reagent", None),
        ] {
            assert_eq!(Kind::of(stem), kind, "{stem}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_says_where() {
        let source = Source::read("use polis::Agent;\nfn broken( {\n");
        assert_eq!(source.unreadable.unwrap().1, 2);
    }
}
