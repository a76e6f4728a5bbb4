// The official client against a society: node a2a_client.mjs URL TOKEN. It ends with status 0 if everything is as it should be.
import assert from 'node:assert/strict';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [url, token] = process.argv.slice(2);
const signed = (address, init = {}) => fetch(address, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl: signed })],
  cardResolver: new DefaultAgentCardResolver(),
});
const client = await new ClientFactory(options).createFromUrl(url);

const wish = (messageId, text, more = {}) => ({
  tenant: '',
  message: {
    messageId,
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
  configuration: undefined,
  metadata: undefined,
});
const textOf = (task) => task.artifacts[0].parts[0].content.value;

// One message, its task, and the same message again.
const task = await client.sendMessage(wish('m1', 'what is 15% of 240?'));
assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
assert.match(textOf(task), /36/);
const again = await client.sendMessage(wish('m1', 'what is 15% of 240?'));
assert.equal(again.id, task.id);
const got = await client.getTask({ tenant: '', id: task.id, historyLength: 1 });
assert.equal(got.history.length, 1);

// A stream, to its end.
const events = [];
for await (const event of client.sendMessageStream(wish('m2', 'what is 25% of 240?'))) events.push(event.payload);
assert.equal(events[0].$case, 'task');
const states = events.filter((it) => it.$case !== 'artifactUpdate').map((it) => it.value.status.state);
assert.equal(states.at(-1), TaskState.TASK_STATE_COMPLETED);

// What waits for a person is answered, and who subscribes hears what comes of it.
const asking = await client.sendMessage(wish('m3', 'what time is it?'));
assert.equal(asking.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
const heard = [];
const listening = (async () => {
  for await (const event of client.resubscribeTask({ tenant: '', id: asking.id })) heard.push(event.payload);
})();
while (heard.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
const answered = await client.sendMessage(wish('m4', 'yes', { taskId: asking.id, contextId: asking.contextId }));
assert.equal(answered.status.state, TaskState.TASK_STATE_COMPLETED);
await listening;
assert.equal(heard[0].value.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
assert.equal(heard.at(-1).value.status.state, TaskState.TASK_STATE_COMPLETED);

// A list, page by page.
const page = await client.listTasks({ tenant: '', contextId: '', status: TaskState.TASK_STATE_COMPLETED, pageSize: 1, pageToken: '' });
assert.equal(page.tasks.length, 1);
assert.ok(page.totalSize >= 2);
assert.notEqual(page.nextPageToken, '');

// What cannot be done is an error of the protocol.
await assert.rejects(client.getTask({ tenant: '', id: 'none' }), /no such task/);
await assert.rejects(client.cancelTask({ tenant: '', id: task.id, metadata: undefined }), /cannot be cancelled/);
await assert.rejects(async () => {
  for await (const event of client.resubscribeTask({ tenant: '', id: task.id })) assert.fail(JSON.stringify(event));
}, /has ended/);
console.log('all well');
