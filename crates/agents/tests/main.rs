//! The agents from outside, as others use them.
