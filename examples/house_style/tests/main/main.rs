//! The reviewer in a society with a scripted team: what it changes, what it is told, what it survives.
#![cfg(test)]

mod bed;
mod documents;
mod review;
