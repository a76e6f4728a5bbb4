// The official SDK against the offline model: models, answers whole and streamed, errors, side requests, leaving early.
import assert from "node:assert/strict";
import OpenAI from "openai";

const baseURL = `${process.env.POLIS_URL}/v1`;
const apiKey = process.env.POLIS_TOKEN;
const polis = new OpenAI({ baseURL, apiKey });

const models = [];
for await (const model of polis.models.list()) models.push(model.id);
assert.ok(models.includes("polis") && models.includes("agent/root"), models.join());
assert.equal((await polis.models.retrieve("agent/root")).id, "agent/root");

const messages = [{ role: "user", content: "what is 15% of 240?" }];
const whole = await polis.chat.completions.create({ model: "polis", messages });
assert.match(whole.choices[0].message.content, /36/);
assert.equal(whole.choices[0].finish_reason, "stop");
assert.ok(whole.usage.total_tokens > 0);

const params = { model: "polis", messages, stream: true, stream_options: { include_usage: true } };
let text = "";
let usage;
for await (const chunk of await polis.chat.completions.create(params)) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.match(text, /36/);
assert.ok(usage.total_tokens > 0);

// The SDK's own accumulator must make sense of the stream too.
const collected = await polis.chat.completions.stream({ model: "polis", messages }).finalChatCompletion();
assert.match(collected.choices[0].message.content, /36/);

const events = async () => {
  const reply = await fetch(`${process.env.POLIS_URL}/api/log?after=0`, { headers: { Authorization: `Bearer ${apiKey}` } });
  assert.equal(reply.status, 200);
  return (await reply.text()).length;
};
const before = await events();
const prompt =
  "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n### Output:\nJSON format: { \"title\": \"…\" }\n" +
  "### Chat History:\n<chat_history>\nUSER: bake bread\nASSISTANT: yes\n</chat_history>";
const title = await polis.chat.completions.create({ model: "polis", messages: [{ role: "user", content: prompt }] });
assert.equal(JSON.parse(title.choices[0].message.content).title, "bake bread");
assert.equal(await events(), before, "a title starts nothing");

await assert.rejects(polis.chat.completions.create({ model: "gpt-9", messages }), (error) => {
  assert.ok(error instanceof OpenAI.NotFoundError);
  assert.equal(error.code, "model_not_found");
  return true;
});
await assert.rejects(new OpenAI({ baseURL, apiKey: "wrong" }).models.list(), (error) => {
  assert.ok(error instanceof OpenAI.AuthenticationError);
  assert.equal(error.code, "unauthorized");
  return true;
});
const picture = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,?" } }] }];
await assert.rejects(polis.chat.completions.create({ model: "polis", messages: picture }), (error) => {
  assert.ok(error instanceof OpenAI.BadRequestError);
  assert.deepEqual([error.code, error.param], ["bad_attachment", "messages[0].content[0]"]);
  return true;
});

const left = await polis.chat.completions.create({ model: "polis", messages: [{ role: "user", content: "hello" }], stream: true });
left.controller.abort();

const response = await polis.responses.create({ model: "polis", input: "what is 6 times 7?" });
assert.match(response.output_text, /42/);
const next = await polis.responses.create({ model: "polis", input: "what is 5 times 5?", previous_response_id: response.id });
assert.match(next.output_text, /25/);
assert.match((await polis.responses.retrieve(response.id)).output[0].content[0].text, /42/);
const final = await polis.responses.stream({ model: "polis", input: "what is 2 times 4?" }).finalResponse();
assert.match(final.output_text, /8/);
