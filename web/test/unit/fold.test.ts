// Folding the log: requests, delegations, what waits for a person, and what comes beside the log.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, agentStatus, conversationStatus, isFor, planOf, requestStatus, sortedConversations, turnStatus } from '../../src/store/derive'
import { fold } from '../../src/store/fold'
import { forget, hear, see } from '../../src/store/live'
import { type State, empty } from '../../src/store/state'
import { adoptConversations } from '../../src/store/view'
import type { Conversation, Recorded } from '../../src/types'

/** A state after these events; each is `[thread, event]`. */
function after(...events: [string | undefined, Recorded['event']][]): State {
  const state = empty()
  const all: [string | undefined, Recorded['event']][] = [[undefined, { societyFounded: { seed: '1', limits: {} } }], [undefined, { agentSpawned: { agent: 'root', role: 'root' } }], ...events]
  all.forEach(([thread, event], place) => fold(state, { seq: place + 1, at: 100 + place, ...(thread && { thread }), event }))
  return state
}

const envelope = (from: string, to: string, kind: unknown = 'message') => ({ messageSent: { envelope: { id: `m-${from}`, from, to, taskId: 't1', kind, payload: { text: 'hello' }, replyTo: 'user' } } })
const started = { turnStarted: { agent: 'root', behaviour: 'converse', phase: 'initial_phase', task: { id: 't1', name: 'message', type: 'message', message: 'hello' }, origin: 'inbox', replyTo: 'user', message: 'm-user', index: 0 } }
const effect = (id: string, what: unknown) => ({ effectStarted: { id, effect: what } })
const write = { tool: { callId: 'c', tool: 'write_file', arguments: '{}', class: 'write' } }
const asked: [string, Recorded['event']][] = [['task:t1', envelope('user', 'root')], ['root', started]]

test('a request is queued, runs, and is done', () => {
  const status = (state: State) => requestStatus(state, [...state.requests.values()][0]!)
  assert.equal(status(after(asked[0]!)), 'queued')
  assert.equal(status(after(...asked)), 'running')
  const settled = { turnSettled: { turn: 4, settlement: 'done', index: 1, message: { id: 'b', sender: 'bot', text: 'hi', timestamp: 1 } } }
  const done = after(...asked, ['root', settled], ['task:t1', envelope('root', 'user', 'answer')])
  assert.equal(status(done), 'done')
  assert.equal(agentStatus(done, 'root'), 'idle')
  assert.deepEqual(Object.values(done.threads.get('root')?.messages ?? {}).map((message) => message.text), ['hello', 'hi'])
  assert.equal(done.agents.get('root')?.inbox.length, 0)
})

test('an event that comes twice counts once', () => {
  const state = after(...asked)
  const before = state.threads.get('root')?.items.length
  fold(state, { seq: 4, at: 0, thread: 'root', event: started })
  assert.equal(state.threads.get('root')?.items.length, before)
})

test('a write in doubt waits for a person until somebody says what came of it', () => {
  const doubted = after(...asked, ['root', effect('4.0', write)], ['root', { effectDoubted: { id: '4.0' } }])
  assert.deepEqual([...doubted.waiting.values()].map((waiting) => waiting.what.kind), ['in_doubt'])
  assert.equal(requestStatus(doubted, doubted.requests.get('t1')!), 'needs_you')
  fold(doubted, { seq: 7, at: 0, thread: 'root', event: { effectCleared: { id: '4.0' } } })
  assert.equal(doubted.waiting.size, 0)
})

test('what waits is void when its turn is called off', () => {
  const approval = effect('4.0', { approval: { question: 'may I?' } })
  const state = after(...asked, ['root', approval])
  assert.equal(turnStatus(state, state.turns.get(4)!), 'needs_you')
  fold(state, { seq: 6, at: 0, thread: 'root', event: { turnSettled: { turn: 4, settlement: { cancelled: { code: 'cancelled', message: 'x' } }, index: 1 } } })
  assert.equal(state.waiting.size, 0)
  assert.equal(turnStatus(state, state.turns.get(4)!), 'cancelled')
})

test('a parked turn and a budget wait as well', () => {
  const state = after(...asked, ['root', { turnParked: { turn: 4, reason: { code: 'no_code', message: 'x' } } }], ['root', effect('4.0', { grant: { lacking: [], calls: { root: 3 } } })])
  assert.deepEqual([...state.waiting.values()].map((waiting) => waiting.what.kind), ['parked', 'grant'])
  assert.deepEqual([...state.waiting.values()].at(-1)!.what, { kind: 'grant', lacking: [], calls: { root: 3 } })
})

/** A turn of root with a unit in a sub-thread, which has a unit in another one. */
function nested(): State {
  const unit = (thread: string, behaviour: string) => ({ unit: { thread, behaviour, task: { id: 't1', name: 'x', type: 'action', message: 'go' } } })
  const turn = (behaviour: string, by: string) => ({ turnStarted: { ...started.turnStarted, behaviour, origin: { unit: by }, replyTo: 'nobody', message: undefined } })
  const opened = (parent: string) => ({ threadOpened: { by: '4.0', agent: 'root', parent, settings: {} } })
  const linked = (child: string, index: number) => ({ threadLinked: { by: '4.0', index, slot: 'meta._thread', child } })
  return after(
    ...asked,
    ['sub', opened('root')],
    ['root', linked('sub', 1)],
    ['root', effect('4.2', unit('sub', 'converse/workflow/initial_phase'))],
    ['sub', turn('converse/workflow/initial_phase', '4.2')],
    ['deep', opened('sub')],
    ['sub', linked('deep', 0)],
    ['sub', effect('8.2', unit('deep', 'converse/workflow/initial_phase/planner/initial_phase'))],
    ['deep', turn('converse/workflow/initial_phase/planner/initial_phase', '8.2')],
  )
}

test('a thread below a thread has an address, and what it spends counts above', () => {
  const state = nested()
  assert.equal(addressOf(state, state.threads.get('deep')!), 'root.messages[1].meta._thread.messages[0].meta._thread')
  const spent = { tokens: 7, costNanos: 1, requests: 1, timeMs: 1 }
  fold(state, { seq: 13, at: 0, thread: 'deep', event: effect('12.0', { model: { model: '', request: 'x' } }) })
  fold(state, { seq: 14, at: 0, thread: 'deep', event: { effectEnded: { id: '12.0', outcome: { reply: { text: 'x' } }, spent } } })
  assert.deepEqual([4, 8, 12].map((turn) => state.turns.get(turn)?.spent.tokens), [7, 7, 7])
})

test('todos are there while the planner writes them, one after the other', () => {
  const state = nested()
  const piece = (index: number) => see(state, { thread: 'deep', path: '', agentType: 'planner', action: 'planning', component: 'planner-response', chunk: { item: { field: 'todos', index, value: { id: `t${index}`, title: `do ${index}` } } } })
  piece(0)
  assert.deepEqual(planOf(state, state.turns.get(4)!)?.steps.map((step) => step.text), ['do 0'])
  piece(1)
  assert.deepEqual(planOf(state, state.turns.get(4)!), { steps: [0, 1].map((n) => ({ id: `t${n}`, text: `do ${n}`, status: 'pending' })), isGrowing: true })
  see(state, { thread: 'deep', path: '', agentType: 'planner', action: 'planning', component: 'planner-response', chunk: 'again' })
  assert.equal(planOf(state, state.turns.get(4)!), undefined, 'it begins anew')
})

test('a reply grows beside the log and is gone when the log has the whole', () => {
  const state = after(...asked, ['root', effect('4.0', { model: { model: '', request: 'x' } })])
  hear(state, { effect: '4.0', thread: 'root', delta: { reasoning: 'hm' } })
  hear(state, { effect: '4.0', thread: 'root', delta: { content: 'he' } })
  hear(state, { effect: '4.0', thread: 'root', delta: { content: 'llo' } })
  hear(state, { effect: '4.0', thread: 'root', delta: { tool_call: { index: 0, name: 'now', arguments: '{' } } })
  assert.deepEqual(state.effects.get('4.0')?.live, { text: 'hello', reasoning: 'hm', calls: [{ name: 'now', arguments: '{' }] })
  fold(state, { seq: 6, at: 0, thread: 'root', event: { effectEnded: { id: '4.0', outcome: { reply: { text: 'hello' } } } } })
  assert.equal(state.effects.get('4.0')?.live, undefined)
  hear(state, { effect: '4.0', thread: 'root', delta: { content: 'late' } })
  assert.equal(state.effects.get('4.0')?.live, undefined)
})

test('what a model said before it was asked again is dropped', () => {
  const model = { model: { model: 'm', request: 'x', reserve: {} } }
  const state = after(...asked, ['root', effect('4.0', model)])
  const say = (content: string) => hear(state, { effect: '4.0', thread: 'root', delta: { content } } as Parameters<typeof hear>[1])
  say('the first half')
  fold(state, { seq: 6, at: 0, thread: 'root', event: { effectRestarted: { id: '4.0' } } as Recorded['event'] })
  say('anew')
  assert.equal(state.effects.get('4.0')?.live?.text, 'anew')
  const attempt = { attempt: 1, model: 'm', failure: { code: 'overloaded', message: 'try later' } }
  fold(state, { seq: 7, at: 0, thread: 'root', event: { effectRetried: { id: '4.0', attempt } } as unknown as Recorded['event'] })
  say('once more')
  assert.equal(state.effects.get('4.0')?.live?.text, 'once more')
  forget(state)
  say('on another line')
  assert.equal(state.effects.get('4.0')?.live?.text, 'on another line')
})

test('a message has the time at which it was written', () => {
  const state = after(...asked)
  assert.equal(state.threads.get('root')?.messages[0]?.timestamp, 102, 'not that of the turn, which began at 103')
})

test('the plan that is asked about is the plan', () => {
  const state = nested()
  const turn = state.turns.get(4)!
  const seq = state.seq
  fold(state, { seq: seq + 1, at: 0, thread: 'root', event: { planSet: { by: '4.9', plan: { steps: [{ text: 'a note of its own', status: 'in_progress' }] } } } as unknown as Recorded['event'] })
  assert.notEqual(planOf(state, turn)?.steps[0]?.text, 'a note of its own', 'a workflow is at it')
  const approval = { approval: { question: 'may it?', details: { todos: [{ id: 'task-1', title: 'Look', status: 'pending' }, { id: 'task-2', title: 'Say', status: 'pending' }] } } }
  fold(state, { seq: seq + 2, at: 0, thread: 'sub', event: effect('8.5', approval) as Recorded['event'] })
  assert.deepEqual(planOf(state, turn)?.steps.map((step) => step.text), ['Look', 'Say'])
})

const begun = (agent: string, title = agent): [string, Recorded['event']] => [agent, { conversationStarted: { agent, role: 'root', person: 'owner', title, settings: { model: 'm' } } } as unknown as Recorded['event']]
const turnIn = (agent: string): [string, Recorded['event']] => [agent, { turnStarted: { ...started.turnStarted, agent } } as unknown as Recorded['event']]
const said = (from: string, to: string): [string, Recorded['event']] => ['task:t1', envelope(from, to) as unknown as Recorded['event']]
const titles = (state: State) => sortedConversations(state).map((chat) => chat.title)

test('conversations move up with their messages, pinned ones stay first, and root is listed when something was said in it', () => {
  assert.deepEqual(titles(after(begun('a'), begun('b'))), ['b', 'a'])
  assert.deepEqual(titles(after(begun('a'), begun('b'), said('user', 'a'))), ['a', 'b'])
  const changed = (agent: string, change: object): [string, Recorded['event']] => [agent, { conversationChanged: { agent, change } } as unknown as Recorded['event']]
  const state = after(begun('a'), begun('b'), begun('c'), changed('a', { pinned: true, title: 'first' }), changed('b', { archived: true, settings: {} }))
  assert.deepEqual(titles(state), ['first', 'c', 'b'])
  assert.deepEqual([state.conversations.get('b')?.archived, state.conversations.get('b')?.model, state.conversations.get('a')?.model], [true, undefined, 'm'])
  assert.deepEqual(titles(after(...asked, begun('a'))), ['a', 'root'])
})

test('a conversation is taken up again by its person, and is gone when it is deleted', () => {
  const archive: [string, Recorded['event']] = ['a', { conversationChanged: { agent: 'a', change: { archived: true } } } as unknown as Recorded['event']]
  assert.equal(after(begun('a'), archive, said('a', 'user')).conversations.get('a')?.archived, true)
  const state = after(begun('a'), archive, said('user', 'a'))
  assert.equal(state.conversations.get('a')?.archived, false)
  assert.equal(state.agentCount, 1, 'its agent is no agent of the staff')
  fold(state, { seq: 9, at: 0, event: { agentTerminated: { agent: 'a' } } } as Recorded)
  assert.deepEqual(titles(state), [])
  assert.equal(state.agentCount, 1)
})

test('a decision waits in the conversation that it belongs to, at any depth', () => {
  const spawned: [undefined, Recorded['event']] = [undefined, { agentSpawned: { agent: 'ada', role: 'r', parent: 'a' } } as Recorded['event']]
  const ask = effect('7.0', { approval: { question: 'may it?' } }) as unknown as Recorded['event']
  const state = after(begun('a'), begun('b'), spawned, said('user', 'b'), turnIn('ada'), ['ada', ask])
  const [waiting] = [...state.waiting.values()]
  assert.equal(isFor(state, waiting!, 'a'), true)
  assert.equal(conversationStatus(state, state.conversations.get('a')!), 'needs_you')
})

test('a conversation that was not here is asked for; what happened meanwhile counts', () => {
  const state = after(said('user', 'old'))
  assert.deepEqual([...state.strangers], ['old'])
  const since = state.seq
  fold(state, { seq: since + 1, at: 500, thread: 'old', event: { turnSettled: { turn: 99, settlement: 'done', index: 1 } } } as unknown as Recorded)
  const found = { id: 'old', title: 'Old', person: 'owner', roleId: 'root', createdAt: 1, activeAt: 2, status: 'running', messages: 3 } as Conversation
  adoptConversations(state, [found], since)
  assert.equal(state.conversations.get('old')?.status, 'idle')
})
