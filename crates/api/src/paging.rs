//! Paging: the entries after a cursor, up to a limit, and the cursor of the next page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many are listed where nobody says, and at most.
pub const MOST: usize = 10_000;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The `next` of the page before; the first page without it.
    pub after: Option<String>,
    /// Most entries of a page.
    pub limit: Option<u32>,
}

impl Paging {
    /// Whether an entry of this cursor is on this page or a later one.
    pub fn is_after(&self, cursor: &str) -> bool {
        self.after.as_ref().is_none_or(|after| cursor > after.as_str())
    }

    /// Most entries of the page, where so many are usual.
    pub fn most(&self, usual: usize) -> usize {
        self.limit.map_or(usual, |limit| (limit as usize).min(MOST))
    }

    /// The part of a list that is sorted by its cursors, and the cursor of the next part if there is one. A lazy list is made
    /// no further than the page.
    pub fn cut<T>(&self, list: impl IntoIterator<Item = T>, cursor: impl Fn(&T) -> String) -> (Vec<T>, Option<String>) {
        self.cut_at(list, MOST, cursor)
    }

    /// The same where fewer are listed unless somebody wants more.
    pub fn cut_at<T>(
        &self,
        list: impl IntoIterator<Item = T>,
        usual: usize,
        cursor: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let limit = self.most(usual);
        let mut rest = list.into_iter().filter(|entry| self.after.is_none() || self.is_after(&cursor(entry)));
        let page: Vec<T> = rest.by_ref().take(limit).collect();
        let next = rest.next().is_some().then(|| page.last().map(&cursor)).flatten();
        (page, next)
    }
}

/// A number as a cursor that sorts as the numbers do.
pub fn numbered(n: u64) -> String {
    format!("{n:020}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_put_together_are_the_list() {
        let all: Vec<u64> = (0..25).collect();
        for limit in [1, 7, 24, 25, 26, 100_000] {
            let (mut paging, mut seen) = (Paging { after: None, limit: Some(limit) }, Vec::new());
            loop {
                let (page, next) = paging.cut(all.clone(), |n| numbered(*n));
                assert!(page.len() <= limit as usize && !page.is_empty());
                seen.extend(page);
                match next {
                    Some(next) => paging.after = Some(next),
                    None => break,
                }
            }
            assert_eq!(seen, all, "{limit}");
        }
        assert_eq!(Paging::default().cut(Vec::<u64>::new(), |n| numbered(*n)), (Vec::new(), None));
        let mut made = 0;
        let lazy = all.iter().inspect(|_| made += 1);
        Paging { after: None, limit: Some(2) }.cut(lazy, |n| numbered(**n));
        assert_eq!(made, 3, "one more than the page has, to know whether there is a next one");
    }
}
