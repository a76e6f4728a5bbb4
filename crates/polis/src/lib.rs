//! A durable society of AI agents, for people who embed it.
