//! The workflow's parts from outside, as whoever embeds Polis uses them.

mod reviewer;
