//! Whole bodies of vendors, in the dialect that the first byte names: calls are put together the same however the bytes come, and a
//! reply that was cut anywhere before its end is no reply or the same one.

use polis_domain::Reply;
use polis_providers::Dialect;
use polis_providers::fuzzing::reply;

use super::CUTS;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "reply",
    run,
    words: &[
        "data: ",
        "\n\n",
        "[DONE]",
        "\"choices\":[",
        "\"delta\":",
        "\"tool_calls\":[{\"index\":0",
        "\"arguments\":\"",
        "\"finish_reason\":\"stop\"",
        "\"content\":",
        "\"index\":1",
        "\"index\":4294967295",
        "\"partial_json\":",
        "\"functionCall\":",
        "\"args\":",
        "\"done\":true",
        "\"type\":",
        "response.completed",
        "message_stop",
        "\"usage\":",
        "18446744073709551616",
        "-1",
    ],
};

const DIALECTS: [(u8, Dialect); 6] = [
    (b'c', Dialect::OpenAiChat),
    (b'r', Dialect::OpenAiResponses),
    (b'a', Dialect::Anthropic),
    (b'g', Dialect::Gemini),
    (b'o', Dialect::Ollama),
    (b'b', Dialect::Bedrock),
];

fn run(input: &[u8]) {
    let Some((first, body)) = input.split_first() else { return };
    let Some((_, dialect)) = DIALECTS.iter().find(|(envelope, _)| envelope == first) else { return };
    let whole = reply(*dialect, &[body]);
    for size in CUTS {
        let chunks: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(reply(*dialect, &chunks), whole, "{dialect:?} in chunks of {size}");
    }
    if let Ok(reply) = &whole {
        let calls = reply.tool_calls.len();
        assert!(calls <= body.len(), "each call takes room in the body");
        assert!(Reply::without_torn_call(reply.clone()).tool_calls.len() + 1 >= calls);
    }
}
