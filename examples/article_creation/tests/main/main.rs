//! The article example: what it does, what it survives, and that it runs.
#![cfg(test)]

mod article;
mod editor;
mod killed;
mod program;
