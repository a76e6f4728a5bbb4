//! Looking models up in a table by name.

use std::collections::BTreeMap;

/// The lines whose name a model has, longest name first. What is sold on is looked up as its maker's too.
///
/// A name stands for all that begin with it and go on with `-`, `:` or `@`; one that ends in `/` for everything below it, one that
/// ends in `*` for everything that begins with it. One that begins with `*/` stands for the models of any vendor; every other name
/// counts over it.
pub(crate) fn matches<'a, T>(table: &'a BTreeMap<String, T>, model: &str) -> Vec<&'a T> {
    let (vendor, name) = model.split_once('/').unwrap_or((model, ""));
    let mut found = of_name(table, model);
    match vendor {
        "openai-responses" | "azure" | "azure-responses" => found.extend(of_name(table, &format!("openai/{name}"))),
        "openrouter" => {
            let name =
                name.replacen("google/", "gemini/", 1).replacen("x-ai/", "xai/", 1).replacen("moonshotai/", "moonshot/", 1);
            // Makers also write a version with `-`.
            let dotless = name.replace('.', "-");
            found.extend(of_name(table, &name));
            found.extend(of_name(table, &dotless));
        }
        _ => {}
    }
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, line)| line).collect()
}

/// The lines, and how much of the name each of them names.
fn of_name<'a, T>(table: &'a BTreeMap<String, T>, model: &str) -> Vec<(usize, &'a T)> {
    let last = model.rsplit('/').next().unwrap_or(model);
    let is_meant = |name: &str| {
        if let Some(name) = name.strip_prefix("*/") {
            return is_like(last, name).map(|_| 0);
        }
        is_like(model, name)
    };
    table.iter().filter_map(|(name, line)| Some((is_meant(name)?, line))).collect()
}

/// How much of a model's name this name names.
fn is_like(model: &str, name: &str) -> Option<usize> {
    if let Some(start) = name.strip_suffix('*') {
        return model.starts_with(start).then_some(start.len());
    }
    let rest = model.strip_prefix(name)?;
    (rest.is_empty() || name.ends_with('/') || rest.starts_with(['-', ':', '@'])).then_some(name.len())
}
