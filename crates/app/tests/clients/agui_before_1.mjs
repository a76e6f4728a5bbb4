// The client of AG-UI from before version 1.0, which CopilotKit still uses: an answer, its own tool, connecting, cancelling.
import assert from "node:assert/strict";
import { HttpAgent, runHttpRequest, transformHttpEventStream } from "ag-ui-client-before-1";

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
const tools = [{ name: "pick_colour", description: "Asks for a colour", parameters: { type: "object", properties: {} } }];

const agent = new PolisAgent({ url, headers, threadId: "own", initialState: { page: 7 } });
agent.addMessage({ id: "u1", role: "user", content: "which colour?" });
let finished;
const hear = { onRunFinishedEvent: ({ event }) => (finished = event) };
await agent.runAgent({ tools }, hear);
assert.deepEqual(finished.outcome, { type: "success" });
const call = agent.messages.flatMap((message) => message.toolCalls ?? []).at(-1);
assert.equal(call.function.name, "pick_colour");
agent.addMessage({ id: "t1", role: "tool", toolCallId: call.id, content: "blue" });
await agent.runAgent({ tools }, hear);
assert.equal(agent.messages.at(-1).content, "it says: blue");
assert.equal(agent.state.page, 7);

const ids = (messages) => messages.map((message) => [message.role, message.id]).filter(([role]) => role !== "tool");
const before = ids(agent.messages);
agent.addMessage({ id: "u2", role: "user", content: "say it once more" });
await agent.runAgent({ tools }, hear);
const later = new PolisAgent({ url, headers, threadId: "own" });
await later.connectAgent();
assert.deepEqual(ids(later.messages).slice(0, before.length), before);
assert.deepEqual(ids(later.messages), ids(agent.messages));
assert.equal(later.state.page, 7);
