// How the views lay out a society.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fold } from '../../src/store/fold'
import { type State, empty } from '../../src/store/state'
import type { Recorded } from '../../src/types'
import { layout } from '../../src/views/organisation/layout'
import { flat, forest } from '../../src/views/organisation/tree'
import { costs, extent, spans, sums } from '../../src/views/trace/spans'

const task = { id: 't1', name: 'message', type: 'message', message: 'add them up' }
const events: Recorded[] = [
  { societyFounded: { seed: '1', limits: {} } },
  { roleCreated: { role: { id: 'w', name: 'Worker' } } },
  { agentSpawned: { agent: 'root', role: 'w' } },
  { agentSpawned: { agent: 'a', role: 'w', parent: 'root' } },
  { agentSpawned: { agent: 'b', role: 'w', parent: 'root' } },
  { agentSpawned: { agent: 'a1', role: 'w', parent: 'a' } },
  { turnStarted: { agent: 'root', behaviour: 'converse', phase: 'p', task, origin: 'inbox', index: 0 } },
  { effectStarted: { id: '7.0', effect: { model: { model: 'm', request: '' } } } },
  { effectEnded: { id: '7.0', outcome: { reply: { text: 'x' } }, spent: { tokens: 12, costNanos: 5, requests: 1, timeMs: 3 } } },
  { effectStarted: { id: '7.1', effect: { tool: { callId: 'c', tool: 'add', arguments: '{}', class: 'read' } } } },
  { effectEnded: { id: '7.1', outcome: { result: { content: 'no', isError: true } } } },
  { agentTerminated: { agent: 'a1' } },
  { turnSettled: { turn: 7, settlement: 'done', index: 1 } },
].map((event, place) => ({ seq: place + 1, at: 100 * (place + 1), thread: 'root', event }))

/** The state after some of the events. */
function at(seq: number): State {
  const state = empty()
  for (const event of events) if (event.seq <= seq) fold(state, event)
  return state
}

test('agents stand in a tree by who made them, without those that are gone unless wanted', () => {
  const state = at(events.length)
  const names = (withGone: boolean, closed: string[] = []) => flat(forest(state, withGone), new Set(closed)).map(({ agent, depth }) => `${depth}${agent.id}`)
  assert.deepEqual(names(true), ['0root', '1a', '2a1', '1b'])
  assert.deepEqual(names(false), ['0root', '1a', '1b'])
  assert.deepEqual(names(true, ['a']), ['0root', '1a', '1b'])
})

test('in the graph nobody stands on anybody else', () => {
  const { placed } = layout(forest(at(events.length), true))
  const places = new Set(placed.map(({ x, y }) => `${x},${y}`))
  assert.equal(places.size, placed.length)
  const [root, a, , b] = placed
  assert.equal(root?.x, ((a?.x ?? 0) + (b?.x ?? 0)) / 2)
})

test('a trace has every effect with its time, its cost and how it ended', () => {
  const state = at(events.length)
  const list = spans(state, 't1', new Set())
  assert.deepEqual(
    list.map(({ id, kind, status, start, end }) => [id, kind, status, start, end]),
    [
      ['7', 'turn', 'done', 700, 1300],
      ['7.0', 'model', 'done', 800, 900],
      ['7.1', 'tool', 'failed', 1000, 1100],
    ],
  )
  assert.equal(spans(state, 't1', new Set(['7'])).length, 1)
  assert.equal(spans(state, 'another', new Set()).length, 0)
  assert.deepEqual(costs(state, undefined), costs(state, 't1'))
  assert.deepEqual(extent(list, 5000), [700, 1300])
  assert.deepEqual(sums(costs(state, 't1'), (cost) => cost.agent), [{ name: 'root', tokens: 12, costNanos: 5, requests: 1, timeMs: 3 }])
})
