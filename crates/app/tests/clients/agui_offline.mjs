// The official client of AG-UI against the offline model. Whatever it warns about is a failure.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";

console.warn = console.error = (...words) => {
  throw new Error(`the client complains: ${words.join(" ")}`);
};
const url = `${process.env.POLIS_URL}/agui/polis`;
const headers = { Authorization: `Bearer ${process.env.POLIS_TOKEN}` };

const agent = new HttpAgent({ url, headers, threadId: "reckoning" });
agent.addMessage({ id: "u1", role: "user", content: "what is 15% of 240?" });
let finished;
const hear = { onRunFinishedEvent: ({ event }) => (finished = event) };
const { newMessages, result } = await agent.runAgent({}, hear);
assert.match(newMessages.at(-1).content, /36/);
assert.match(result.answer, /36/);
assert.equal(finished.outcome.type, "success");
assert.ok(finished.usage[0].totalTokens > 0);
assert.equal(agent.state.taskId, "reckoning");

agent.addMessage({ id: "u2", role: "user", content: "what is 6 times 7?" });
await agent.runAgent({}, hear);
assert.match(agent.messages.at(-1).content, /42/);

// Planner, executor and verifier: nested sub-agents, activities and todos.
const planned = new HttpAgent({ url, headers, threadId: "planned" });
planned.addMessage({ id: "u1", role: "user", content: "how many files are here, by kind?" });
const started = [];
const activities = new Set();
await planned.runAgent(
  { forwardedProps: { strategy: "workflow" } },
  {
    onEvent: ({ event }) => {
      if (event.type === "SUBAGENT_STARTED") started.push(event);
      if (event.type.startsWith("ACTIVITY_")) activities.add(event.activityType);
    },
  },
);
const names = started.map((event) => event.name);
assert.ok(names.includes("planner") && names.includes("verifier"), names.join());
assert.ok(started.every((event) => event.parentToolCallId), "a delegation is a call as well");
assert.ok(started.some((event) => event.parentSubagentRunId), "sub-agents nest");
assert.ok(activities.has("planner-response"), [...activities].join());
assert.ok(planned.state.todos.length > 0);

const capabilities = await (await fetch(url, { headers })).json();
assert.equal(capabilities.humanInTheLoop.approveWithEdits, true);
