//! A second look at a draft, by somebody who did not write it.

mod editorial_review_agent;
mod editorial_review_interaction_units;
mod editorial_review_state_handlers;

pub(crate) use editorial_review_agent::EditorialReviewAgent;
