//! Messages of an MCP server, one a line: what cannot be read is passed over, and a server cannot have more than 64 requests open.

use polis_tools::fuzzing::received;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "mcp_frames",
    run,
    words: &[
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
        "\"method\":\"roots/list\"",
        "\"method\":\"sampling/createMessage\"",
        "\"result\":{}",
        "\"error\":{\"code\":-32601,\"message\":\"x\"}",
        "\"params\":{",
        "\"id\":null",
        "\"jsonrpc\":\"2.0\"",
        "\"method\":\"notifications/cancelled\"",
        "\"requestId\":1",
    ],
};

const MAX_OPEN: usize = 64;

fn run(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let messages = received(&lines);
    assert!(messages.len() <= lines.len());
    let (mut open, mut most) = (0_usize, 0);
    for (message, is_request) in &messages {
        open += usize::from(*is_request);
        if message["method"] == "notifications/cancelled" {
            open = open.saturating_sub(1);
        }
        most = most.max(open);
    }
    assert!(most <= MAX_OPEN, "{most} requests are open");
}
