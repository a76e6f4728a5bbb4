// Views of the server join the state: at the place where the state is, without gaps, and the fuller record counts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fold } from '../../src/store/fold'
import { type State, empty } from '../../src/store/state'
import { adopt, reaches } from '../../src/store/view'
import type { Recorded, View } from '../../src/types'

const spent = { tokens: 0, costNanos: 0, requests: 0, timeMs: 0 }
const task = { id: 't1', name: 'message', type: 'message', message: 'hello' }

function view(seq: number, more: object = {}): View {
  return { seq, place: String(seq), spent, allowed: [], agentCount: 1, waitingCount: 0, roles: [], agents: [], threads: [], turns: [], effects: [], requests: [], waiting: [], artifacts: [], offline: false, ...more } as unknown as View
}

const turn = (id: number, more: object = {}) => ({ id, thread: 'root', agent: 'root', behaviour: 'converse', task, origin: 'inbox', replyTo: 'user', startedAt: id, effects: [], omitted: 0, brief: false, steps: 0, spent, tools: 0, ...more })
const effect = (id: string, text: string) => ({ id, turn: Number(id.split('.')[0]), thread: 'root', effect: { model: { model: 'm', request: '' } }, startedAt: 1, startedSeq: 1, retries: [], stage: 'ended', children: [], inquiries: [], outcome: { reply: { text } } })
const message = (n: number) => ({ id: `m${n}`, sender: 'user', text: `message ${n}`, timestamp: n })
/** A page of the conversation that has the turns of these numbers. */
const page = (turns: number[], more: object = {}) => ({
  turns: turns.map((id) => turn(id)),
  threads: [{ id: 'root', agent: 'root', messages: Object.fromEntries(turns.map((n) => [n, message(n)])), items: turns.flatMap((n) => [{ kind: 'message', index: n, turn: n, seq: n, at: n }, { kind: 'turn', turn: n }]), holds: {}, ...more }],
})
const turnsOf = (state: State) => state.threads.get('root')?.items.flatMap((item) => (item.kind === 'turn' ? [item.turn] : []))

function first(seq: number, more: object): State {
  const state = empty()
  state.seq = seq
  adopt(state, view(seq, more), 'conversation', 'root')
  return state
}

test('what has happened since a view is applied to it', () => {
  const state = first(10, page([5]))
  const settled: Recorded = { seq: 11, at: 99, thread: 'root', event: { turnSettled: { turn: 7, settlement: 'done', index: 8, message: { id: 'a', sender: 'bot', text: 'done', timestamp: 99 } } } } as Recorded
  fold(state, settled)
  assert.equal(reaches(state, 10), true)
  assert.equal(reaches(state, 9), false)
  adopt(state, view(10, { turns: [turn(7)], threads: [] }), 'turn')
  assert.equal(state.turns.get(7)?.settledAt, 99)
  assert.equal(state.seq, 11)
})

test('earlier pages come before, a newer page stands alone, and a turn that is read by itself makes no gap', () => {
  const state = first(100, page([80, 90], { earlier: 80 }))
  adopt(state, view(100, page([60, 70], { earlier: 60, later: 80 })), 'earlier', 'root')
  assert.deepEqual(turnsOf(state), [60, 70, 80, 90])
  assert.equal(state.threads.get('root')?.earlier, 60)
  assert.equal(state.threads.get('root')?.later, undefined)
  adopt(state, view(100, page([10])), 'turn')
  assert.deepEqual(turnsOf(state), [60, 70, 80, 90])
  assert.deepEqual(state.turns.get(10)?.items?.length, 2)
  assert.equal(state.threads.get('root')?.messages[10]?.text, 'message 10')
  adopt(state, view(100, page([20, 30], { earlier: 20, later: 40 })), 'conversation', 'root')
  assert.deepEqual(turnsOf(state), [20, 30])
  assert.equal(state.threads.get('root')?.later, 40)
  // The end of the thread is not here: what is added there is not shown after the page.
  fold(state, { seq: 101, at: 1, thread: 'root', event: { turnStarted: { agent: 'root', behaviour: 'converse', phase: 'p', task, origin: 'inbox', replyTo: 'user', message: 'm101', index: 101 } } } as unknown as Recorded)
  assert.deepEqual(turnsOf(state), [20, 30])
})

test('the fuller record of a turn counts, whichever came first', () => {
  const whole = { turns: [turn(5, { effects: ['5.0', '5.1'] })], effects: [effect('5.0', 'all of it'), effect('5.1', 'more')] }
  const brief = { turns: [turn(5, { effects: ['5.1'], omitted: 1, brief: true, steps: 2 })], effects: [effect('5.1', 'mo…')] }
  for (const order of [[whole, brief], [brief, whole]]) {
    const state = first(10, {})
    for (const one of order) adopt(state, view(10, one), 'turn')
    assert.deepEqual(state.turns.get(5)?.effects, ['5.0', '5.1'])
    assert.equal(state.turns.get(5)?.brief, false)
    assert.equal(state.turns.get(5)?.omitted, 0)
    assert.deepEqual(['5.0', '5.1'].map((id) => (state.effects.get(id)?.outcome as { reply: { text: string } }).reply.text), ['all of it', 'more'])
  }
})
