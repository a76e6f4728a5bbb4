//! The workflow agent in a society with a scripted team: limits, actions, malformed replies, proof, crashes.

mod application;
mod bed;
mod broken;
mod crash;
mod embedded;
mod fallback;
mod limits;
mod person;
mod proof;
mod robust;
mod rounds;
mod seen;
mod within;
