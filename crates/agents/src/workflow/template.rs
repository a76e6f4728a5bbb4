//! Templates: text with places such as `{{businessContext}}` that are filled strictly.

use std::collections::BTreeMap;

/// The place that every core template has.
pub const BUSINESS_CONTEXT: &str = "businessContext";

/// A text with places, checked when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(String),
}

/// Why a text is no template, or cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{{` without a name and `}}`.
    #[error("line {0} has `{{{{` that begins no place; a place is written {{{{name}}}}, with letters, digits and `_`")]
    BadPlace(usize),
    /// The business context would be lost.
    #[error("there is no place {{{{businessContext}}}}; a core template must have it once")]
    NoBusinessContext,
    /// Nobody fills this place.
    #[error("nothing is known for the place {{{{{place}}}}}; known are {known}")]
    Unknown {
        /// The place's name.
        place: String,
        /// What could be filled in.
        known: String,
    },
}

impl Template {
    /// A template from its text.
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find("{{") {
            let line = || text[..text.len() - rest.len() + begin].matches('\n').count() + 1;
            let after = &rest[begin + 2..];
            let length = after.find("}}").ok_or_else(|| TemplateError::BadPlace(line()))?;
            let name = after[..length].trim();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(TemplateError::BadPlace(line()));
            }
            parts.push(Part::Text(rest[..begin].to_owned()));
            parts.push(Part::Place(name.to_owned()));
            rest = &after[length + 2..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts })
    }

    /// A core template: it has one place for the business context.
    pub fn core(text: &str) -> Result<Self, TemplateError> {
        let template = Self::new(text)?;
        match template.places().filter(|name| *name == BUSINESS_CONTEXT).count() {
            1 => Ok(template),
            _ => Err(TemplateError::NoBusinessContext),
        }
    }

    /// The names of its places.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Place(name) => Some(&**name),
        })
    }

    /// The text with every place filled. What is filled in is not looked into: `{{` in it stays as it is.
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<String, TemplateError> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(name) => match values.get(name) {
                    Some(value) => filled.push_str(value.trim()),
                    None => {
                        let known = values.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                        return Err(TemplateError::Unknown { place: name.clone(), known });
                    }
                },
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn places_are_filled_once_and_not_looked_into() {
        let template = Template::core("a {{businessContext}} b {{ tools }}}} {x} {{A_B}}").unwrap();
        let filled = template.fill(&values(&[("businessContext", " {{tools}} \n"), ("tools", "T"), ("A_B", "o")])).unwrap();
        assert_eq!(filled, "a {{tools}} b T}} {x} o");
    }

    #[test]
    fn what_cannot_be_filled_is_refused() {
        let unknown =
            Template::core("{{businessContext}} {{tool}}").unwrap().fill(&values(&[("businessContext", "x"), ("tools", "T")]));
        assert_eq!(
            unknown.unwrap_err().to_string(),
            "nothing is known for the place {{tool}}; known are businessContext, tools"
        );
        for (text, error) in [
            ("no place", TemplateError::NoBusinessContext),
            ("{{businessContext}} {{businessContext}}", TemplateError::NoBusinessContext),
            ("{{business context}}", TemplateError::BadPlace(1)),
            ("a\n{{}} {{businessContext}}", TemplateError::BadPlace(2)),
            ("{{businessContext}}\n\nx {{never", TemplateError::BadPlace(3)),
        ] {
            assert_eq!(Template::core(text), Err(error), "{text}");
        }
        assert!(TemplateError::BadPlace(1).to_string().contains("`{{` that begins no place"));
    }
}
