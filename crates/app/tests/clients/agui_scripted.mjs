// The official client of AG-UI against a scripted model: interrupts, answers, its own tools, connecting. No warning is allowed.
import assert from "node:assert/strict";
import { HttpAgent, buildResumeArray, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

console.warn = console.error = (...words) => {
  throw new Error(`the client complains: ${words.join(" ")}`);
};
class PolisAgent extends HttpAgent {
  connect(input) {
    return transformHttpEventStream(runHttpRequest(() => fetch(`${this.url}/connect`, this.requestInit(input))));
  }
}
const url = `${process.env.POLIS_URL}/agui/polis`;
const headers = { Authorization: `Bearer ${process.env.POLIS_TOKEN}` };
const at = (threadId) => new PolisAgent({ url, headers, threadId });

async function run(agent, parameters = {}) {
  let finished;
  let failed;
  await agent.runAgent(parameters, {
    onRunFinishedEvent: ({ event }) => (finished = event),
    onRunErrorEvent: ({ event }) => (failed = event),
  });
  return finished ?? failed;
}

// Approved, with other arguments.
const agent = at("write");
agent.addMessage({ id: "u1", role: "user", content: "write it" });
let { outcome } = await run(agent);
assert.equal(outcome.type, "interrupt");
const [asked] = outcome.interrupts;
assert.equal(asked.reason, "tool_call");
assert.match(asked.message, /May root use write_file\? Look first\./);
assert.ok(asked.responseSchema.properties.editedArgs);
const proposal = agent.messages.flatMap((message) => message.toolCalls ?? []).find((call) => call.id === asked.toolCallId);
assert.equal(JSON.parse(proposal.function.arguments).path, "planned.txt");

// Somebody else joins while it waits, and sees the same question.
const joined = at("write");
let seen;
await joined.connectAgent({}, { onRunFinishedEvent: ({ event }) => (seen = event) });
assert.equal(seen.outcome.interrupts[0].id, asked.id);
assert.equal(seen.outcome.interrupts[0].toolCallId, asked.toolCallId);

const editedArgs = { path: "other.txt", content: "by the person" };
let resume = buildResumeArray(outcome.interrupts, { [asked.id]: { status: "resolved", payload: { approved: true, editedArgs } } });
({ outcome } = await run(agent, { resume }));
assert.equal(outcome.type, "success");
assert.ok(agent.messages.some((message) => message.role === "tool" && message.toolCallId === asked.toolCallId));
assert.match(agent.messages.at(-1).content, /^it says: /);

// Denied.
const denied = at("denied");
denied.addMessage({ id: "u1", role: "user", content: "write it too" });
({ outcome } = await run(denied));
const no = { status: "resolved", payload: { approved: false, reason: "not today" } };
resume = buildResumeArray(outcome.interrupts, { [outcome.interrupts[0].id]: no });
await run(denied, { resume });
assert.match(denied.messages.at(-1).content, /not today/);

// The client's own tool.
const tools = [{ name: "pick_colour", description: "Asks for a colour", parameters: { type: "object", properties: {} } }];
const own = at("own");
own.addMessage({ id: "u1", role: "user", content: "which colour?" });
({ outcome } = await run(own, { tools }));
const [pending] = outcome.pendingToolCallIds;
own.addMessage({ id: "t1", role: "tool", toolCallId: pending, content: "blue" });
await run(own, { tools });
assert.equal(own.messages.at(-1).content, "it says: blue");

// Connecting to what is done tells it whole.
own.addMessage({ id: "u2", role: "user", content: "say it once more" });
await run(own);
assert.equal(own.messages.at(-1).content, "once more");
const later = at("own");
await later.connectAgent();
assert.deepEqual(
  later.messages.filter((message) => message.role === "user").map((message) => message.content),
  ["which colour?", "say it once more"],
);
assert.equal(later.messages.at(-1).content, "once more");
const ids = (messages) => messages.filter((message) => message.role !== "tool").map((message) => [message.role, message.id]);
assert.deepEqual(ids(later.messages), ids(own.messages));
