//! The agents that ship with Polis.
