//! Looking models up in a table by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// How many models are kept with their lines. Requests name models, so there may be any number of them.
const MAX_FOUND: usize = 256;

/// Lines by names of models. Each call of a model asks for several of its lines, so those of a model are looked for once.
#[derive(Debug)]
pub(crate) struct NamesTable<T> {
    lines: Vec<(String, T)>,
    /// The places of a model's lines.
    found: RwLock<HashMap<String, Arc<[usize]>>>,
}

impl<T> NamesTable<T> {
    /// The lines in the order of their names.
    pub(crate) fn lines(&self) -> &[(String, T)] {
        &self.lines
    }

    /// The lines whose name a model has, longest name first. What is sold on is looked up as its maker's too.
    ///
    /// A name stands for all that begin with it and go on with `-`, `:` or `@`; one that ends in `/` for everything below it, one
    /// that ends in `*` for everything that begins with it. One that begins with `*/` stands for the models of any vendor; every
    /// other name counts over it.
    pub(crate) fn matches(&self, model: &str) -> impl Iterator<Item = &T> {
        let known = self.found.read().unwrap_or_else(PoisonError::into_inner).get(model).cloned();
        let places = known.unwrap_or_else(|| {
            let places: Arc<[usize]> = self.look_up(model).into();
            let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
            if found.len() >= MAX_FOUND {
                found.clear();
            }
            found.insert(model.to_owned(), places.clone());
            places
        });
        (0..places.len()).map(move |n| &self.lines[places[n]].1)
    }

    fn look_up(&self, model: &str) -> Vec<usize> {
        let (vendor, name) = model.split_once('/').unwrap_or((model, ""));
        let mut found = self.of_name(model);
        match vendor {
            "openai-responses" | "azure" | "azure-responses" => found.extend(self.of_name(&format!("openai/{name}"))),
            "openrouter" => {
                let name =
                    name.replacen("google/", "gemini/", 1).replacen("x-ai/", "xai/", 1).replacen("moonshotai/", "moonshot/", 1);
                // Makers also write a version with `-`.
                let dotless = name.replace('.', "-");
                found.extend(self.of_name(&name));
                found.extend(self.of_name(&dotless));
            }
            _ => {}
        }
        found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// The places of the lines, and how much of the name each of them names.
    fn of_name(&self, model: &str) -> Vec<(usize, usize)> {
        let last = model.rsplit('/').next().unwrap_or(model);
        let is_meant = |name: &str| {
            if let Some(name) = name.strip_prefix("*/") {
                return is_like(last, name).map(|_| 0);
            }
            is_like(model, name)
        };
        self.lines.iter().enumerate().filter_map(|(place, (name, _))| Some((is_meant(name)?, place))).collect()
    }
}

impl<T> From<BTreeMap<String, T>> for NamesTable<T> {
    fn from(lines: BTreeMap<String, T>) -> Self {
        Self { lines: lines.into_iter().collect(), found: RwLock::default() }
    }
}

impl<T> Default for NamesTable<T> {
    fn default() -> Self {
        BTreeMap::default().into()
    }
}

impl<T: Clone> Clone for NamesTable<T> {
    fn clone(&self) -> Self {
        Self { lines: self.lines.clone(), found: RwLock::default() }
    }
}

impl<T: PartialEq> PartialEq for NamesTable<T> {
    fn eq(&self, other: &Self) -> bool {
        self.lines == other.lines
    }
}

/// How much of a model's name this name names.
fn is_like(model: &str, name: &str) -> Option<usize> {
    if let Some(start) = name.strip_suffix('*') {
        return model.starts_with(start).then_some(start.len());
    }
    let rest = model.strip_prefix(name)?;
    (rest.is_empty() || name.ends_with('/') || rest.starts_with(['-', ':', '@'])).then_some(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_found_again_and_any_number_of_models_may_be_asked_for() {
        let table = NamesTable::from(BTreeMap::from(["a/", "a/m", "*/m"].map(|name| (name.to_owned(), name))));
        let of = |model: &str| table.matches(model).copied().collect::<Vec<_>>();
        for round in 0..2 {
            assert_eq!((of("a/m-1"), of("b/m"), of("b/n")), (vec!["a/m", "a/", "*/m"], vec!["*/m"], vec![]), "round {round}");
            (0..=MAX_FOUND).for_each(|n| assert_eq!(of(&format!("a/{n}")), ["a/"]));
            assert!(table.found.read().unwrap().len() <= MAX_FOUND);
        }
    }
}
