// The official SDK against a scripted model: the client's own tools through both doors, an approval in the chat, a failure.
import assert from "node:assert/strict";
import OpenAI from "openai";

const polis = new OpenAI({ baseURL: `${process.env.POLIS_URL}/v1`, apiKey: process.env.POLIS_TOKEN });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "weather", description: "The weather in a city", parameters } }];

// Whole.
let messages = [{ role: "user", content: "weather in Bo?" }];
const first = (await polis.chat.completions.create({ model: "polis", messages, tools })).choices[0];
assert.equal(first.finish_reason, "tool_calls");
assert.deepEqual(first.message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]), [
  ["weather", { city: "Bo" }],
]);
messages.push(first.message, { role: "tool", tool_call_id: first.message.tool_calls[0].id, content: "rain" });
const second = (await polis.chat.completions.create({ model: "polis", messages, tools })).choices[0];
assert.equal(second.message.content, "it says: rain");

// With the SDK's own loop of calls.
const runner = polis.chat.completions.runTools({
  model: "polis",
  messages: [{ role: "user", content: "weather in Bo, please?" }],
  tools: [{ type: "function", function: { name: "weather", parameters, parse: JSON.parse, function: ({ city }) => `sun in ${city}` } }],
});
assert.equal(await runner.finalContent(), "it says: sun in Bo");

// As a response.
const flat = [{ type: "function", name: "weather", parameters, strict: false }];
const stream = polis.responses.stream({ model: "polis", input: "weather in Bo now?", tools: flat });
const asked = await stream.finalResponse();
const call = asked.output.find((item) => item.type === "function_call");
assert.equal(call.name, "weather");
const output = [{ type: "function_call_output", call_id: call.call_id, output: "snow" }];
const answered = await polis.responses.create({ model: "polis", input: output, previous_response_id: asked.id, tools: flat });
assert.equal(answered.output_text, "it says: snow");

// What waits for a person is said, and a word in the chat settles it.
messages = [{ role: "user", content: "write it" }];
const waits = (await polis.chat.completions.create({ model: "polis", messages })).choices[0].message;
assert.match(waits.content, /May root use write_file\? Look first\./);
messages.push(waits, { role: "user", content: "approve" });
const done = (await polis.chat.completions.create({ model: "polis", messages })).choices[0].message;
assert.match(done.content, /^it says: /);

await assert.rejects(
  polis.chat.completions.create({ model: "polis", messages: [{ role: "user", content: "fail" }] }),
  (error) => {
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.equal(error.code, "model_rejected");
    return true;
  },
);
