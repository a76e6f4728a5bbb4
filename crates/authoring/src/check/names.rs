//! Names of types: after the business, whole words, `CamelCase`, with the ending of their kind.

use super::naming::{self, Abbreviations, Fault, alike, camel, is_camel};
use super::source::{Kind, Part};
use super::tree::{File, Tree};
use super::{Findings, Rule};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for folder in &tree.folders {
        folder.files.iter().for_each(|file| types(file, &tree.abbreviations, findings));
        for file in folder.files.iter().filter(|file| file.kind.is_some()) {
            bases(file, findings);
        }
        // The name of the files is judged with the agent's type; without one, by itself.
        let has_agent = folder.declared().any(|(_, found)| found.part.home() == Kind::Agent);
        if let Some(file) =
            folder.files.iter().find(|file| file.kind.is_some() && !file.owner.is_empty()).filter(|_| !has_agent)
        {
            check_name(file, 1, &file.owner, &tree.abbreviations, findings);
        }
    }
    tree.strays.iter().for_each(|file| types(file, &tree.abbreviations, findings));
    inconsistent(tree, findings);
}

fn types(file: &File, abbreviations: &Abbreviations, findings: &mut Findings) {
    for found in &file.source.declared {
        let (name, line, ending) = (&found.spot.name, found.spot.line, found.part.ending());
        let Some(business) = name.strip_suffix(ending) else {
            let remedy = format!("call it `{}{ending}`", camel(name));
            findings.add(&file.path, line, Rule::TypeName, format!("`{name}` does not end in `{ending}`"), remedy);
            continue;
        };
        let business = if found.part == Part::Handler { business.strip_suffix("State").unwrap_or(business) } else { business };
        if !is_camel(name) {
            let remedy = format!("call it `{}`", camel(name));
            findings.add(&file.path, line, Rule::NamingStyle, format!("`{name}` is not in CamelCase"), remedy);
        }
        check_name(file, line, business, abbreviations, findings);
        if found.part.home() == Kind::Agent
            && file.kind == Some(Kind::Agent)
            && !file.owner.is_empty()
            && !alike(business, &file.owner)
        {
            let wrong = format!("`{name}` is in the file of `{}`", naming::snake(&file.owner));
            findings.add(
                &file.path,
                line,
                Rule::TypeName,
                wrong,
                format!("call it `{}Agent`, or move it to a folder of its own", camel(&file.owner)),
            );
        }
    }
}

fn check_name(file: &File, line: usize, business: &str, abbreviations: &Abbreviations, findings: &mut Findings) {
    let (rule, wrong, remedy) = match naming::judge(business, abbreviations) {
        Some(Fault::Empty { wrong, remedy }) => (Rule::BusinessName, wrong, remedy),
        Some(Fault::Short { wrong, remedy }) => (Rule::Abbreviation, format!("`{business}`: {wrong}"), remedy),
        Some(Fault::Style { .. }) | None => return,
    };
    findings.add(&file.path, line, rule, wrong, remedy);
}

/// The library's traits are the only bases (the documents' 8.3).
fn bases(file: &File, findings: &mut Findings) {
    for spot in
        file.source.traits.iter().filter(|spot| ["Agent", "Handler", "Unit"].iter().any(|ending| spot.name.ends_with(ending)))
    {
        let wrong = format!("the trait `{}` is a base trait of your own", spot.name);
        findings.add(
            &file.path,
            spot.line,
            Rule::OwnBase,
            wrong,
            "implement the library's traits; put shared code into functions",
        );
    }
}

/// A defined abbreviation is not also written out.
fn inconsistent(tree: &Tree, findings: &mut Findings) {
    let all = || tree.folders.iter().flat_map(|folder| folder.declared());
    for (short, long) in &tree.abbreviations {
        let says = |name: &str, what: &str| format!("_{}_", naming::snake(name)).contains(&format!("_{what}_"));
        let Some((_, one)) = all().find(|(_, found)| says(&found.spot.name, short)) else { continue };
        for (file, found) in all().filter(|(_, found)| says(&found.spot.name, long)) {
            let wrong = format!("`{}` writes `{long}` out, `{}` writes `{short}`", found.spot.name, one.spot.name);
            findings.add(&file.path, found.spot.line, Rule::Abbreviation, wrong, "use one of them everywhere");
        }
    }
}
