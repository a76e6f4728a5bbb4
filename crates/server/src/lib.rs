//! HTTP and live events.
