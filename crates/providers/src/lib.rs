//! Models over HTTP, one file a vendor; and one that needs no key.
