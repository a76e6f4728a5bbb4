//! Finding memories by words and by meaning. All texts of a search are at hand, because a scope has a limited number of them, so
//! there is no index: nothing has to be erased from one, and how rare a word is does not depend on the memories of others.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// How fast repeated words count less, and how much a long text counts less (the usual values of BM25).
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// Lists that rank the same texts are merged by the sum of 1 / (this + rank).
const RANK_OFFSET: f64 = 60.0;

/// The indices of the texts that share words with the query, best first (BM25).
pub(super) fn by_words(query: &str, texts: &[&str]) -> Vec<usize> {
    let wanted: HashSet<String> = terms(query).into_iter().collect();
    let documents: Vec<Vec<String>> = texts.iter().map(|text| terms(text)).collect();
    let total: usize = documents.iter().map(Vec::len).sum();
    let average = (total as f64 / documents.len().max(1) as f64).max(1.0);
    let mut containing: HashMap<&str, f64> = HashMap::new();
    for document in &documents {
        for term in document.iter().filter(|term| wanted.contains(*term)).collect::<HashSet<_>>() {
            *containing.entry(term).or_default() += 1.0;
        }
    }
    let score = |document: &Vec<String>| {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * document.len() as f64 / average;
        let term_score = |(term, with): (&&str, &f64)| {
            let frequency = document.iter().filter(|word| word == term).count() as f64;
            let rarity = (1.0 + (documents.len() as f64 - with + 0.5) / (with + 0.5)).ln();
            rarity * frequency * (SATURATION + 1.0) / (frequency + SATURATION * length)
        };
        containing.iter().map(term_score).sum::<f64>()
    };
    sorted(documents.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0))
}

/// The indices of the vectors, nearest first (cosine). Vectors of another length, and of length 0, are left out.
pub(super) fn by_meaning(query: &[f32], vectors: &[Option<&[f32]>]) -> Vec<usize> {
    let cosine = |vector: &[f32]| {
        let dot: f64 = query.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let length = |vector: &[f32]| vector.iter().map(|part| f64::from(*part).powi(2)).sum::<f64>().sqrt();
        let lengths = length(query) * length(vector);
        (vector.len() == query.len() && lengths > 0.0).then_some(dot / lengths)
    };
    let scores = vectors.iter().enumerate().filter_map(|(index, vector)| Some((index, cosine((*vector)?)?)));
    sorted(scores)
}

/// Merges rankings of the same things (reciprocal rank fusion).
pub(super) fn merged<T: Copy + Eq + Hash + Ord>(rankings: &[Vec<T>]) -> Vec<T> {
    let mut scores: HashMap<T, f64> = HashMap::new();
    for ranking in rankings {
        for (rank, item) in ranking.iter().enumerate() {
            *scores.entry(*item).or_default() += 1.0 / (RANK_OFFSET + rank as f64);
        }
    }
    sorted(scores.into_iter())
}

/// Best first. Equal scores are in the order of the items, so that a search has one result.
fn sorted<T: Ord>(scores: impl Iterator<Item = (T, f64)>) -> Vec<T> {
    let mut scores: Vec<_> = scores.collect();
    scores.sort_by(|(one, a), (other, b)| b.total_cmp(a).then_with(|| one.cmp(other)));
    scores.into_iter().map(|(item, _)| item).collect()
}

/// The words of a text. Chinese, Japanese and Korean have no spaces between words: each character and each pair of neighbours
/// counts as one.
fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut word = String::new();
    let mut before = None;
    for c in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        if !is_cjk(c) && c.is_alphanumeric() {
            word.push(c);
            before = None;
            continue;
        }
        if !word.is_empty() {
            terms.push(stem(&std::mem::take(&mut word)));
        }
        if is_cjk(c) {
            terms.extend(before.map(|before| String::from_iter([before, c])));
            terms.push(c.to_string());
        }
        before = is_cjk(c).then_some(c);
    }
    terms
}

/// A word without the ending of the English plural, so that `cats` finds `cat`.
fn stem(word: &str) -> String {
    let plain = word.strip_suffix('s').filter(|rest| rest.len() > 2 && rest.is_ascii() && !rest.ends_with('s'));
    plain.unwrap_or(word).to_owned()
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_texts_and_rare_words_count_more() {
        let texts = ["the user has two cats", "the user likes the tea", "the tea shop is near the station and the harbour"];
        assert_eq!(by_words("cat?", &texts), [0]);
        assert_eq!(by_words("TEA", &texts), [1, 2]);
        assert_eq!(by_words("the station", &texts)[0], 2);
        assert_eq!(by_words("coffee", &texts), Vec::<usize>::new());
        assert_eq!(by_words("", &texts), Vec::<usize>::new());
    }

    #[test]
    fn chinese_is_found_by_pairs_of_characters_and_by_single_ones() {
        let texts = ["用户喜欢喝绿茶", "用户住在上海", "海上有很多船", "likes 茶"];
        assert_eq!(by_words("上海", &texts)[0], 1);
        assert_eq!(by_words("绿茶", &texts)[0], 0);
        assert_eq!(by_words("茶", &texts), [3, 0]);
        assert_eq!(by_words("咖啡", &texts), Vec::<usize>::new());
    }

    #[test]
    fn vectors_are_compared_by_their_direction() {
        let vectors = [Some(&[0.0, 9.0][..]), Some(&[0.2, 0.1]), None, Some(&[1.0]), Some(&[0.0, 0.0])];
        assert_eq!(by_meaning(&[1.0, 0.0], &vectors), [1, 0]);
    }

    #[test]
    fn what_both_rankings_have_comes_first() {
        assert_eq!(merged(&[vec![1, 2], vec![3, 2]]), [2, 1, 3]);
    }
}
