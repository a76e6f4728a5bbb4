//! Polis among others: as an MCP server for clients, and with agents elsewhere as members.

mod a2a;
mod mcp_server;
mod others;
mod proxy;
