// How the views lay out a society.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fold } from '../../src/store/fold'
import { type State, empty } from '../../src/store/state'
import type { Recorded } from '../../src/types'
import { grouped, wayTo } from '../../src/views/organisation/groups'
import { BOX, layout } from '../../src/views/organisation/layout'
import { LIT_MS, lightsAt } from '../../src/views/organisation/lights'
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
  const { placed } = layout(grouped(forest(at(events.length), true), new Set()))
  const places = new Set(placed.map(({ x, y }) => `${x},${y}`))
  assert.equal(places.size, placed.length)
  const [root, a, , b] = placed
  assert.equal(root?.x, ((a?.x ?? 0) + (b?.x ?? 0)) / 2)
})

/** Root, leads below it, and as many workers below each. */
function crowd(leads: number, workers: number): State {
  const state = at(3)
  let seq = state.seq
  const spawn = (agent: string, parent: string, role: string) => fold(state, { seq: (seq += 1), at: seq, event: { agentSpawned: { agent, role, parent } } } as Recorded)
  for (let lead = 0; lead < leads; lead += 1) {
    spawn(`lead-${lead}`, 'root', 'lead')
    for (let worker = 0; worker < workers; worker += 1) spawn(`worker-${lead}-${worker}`, `lead-${lead}`, 'w')
  }
  return state
}

test('many agents of one role are a group, which is opened on the way to one of them', () => {
  const roots = forest(crowd(34, 29), false)
  const names = (opened: string[]) => layout(grouped(roots, new Set(opened))).placed.map(({ key }) => key)
  assert.deepEqual(names([]), ['root', 'root/lead'])
  const opened = names(['root/lead'])
  assert.equal(opened.length, 2 + 34 * 2)
  const way = wayTo(roots, 'worker-7-3')
  assert.deepEqual(way, ['/w', 'root/lead', 'lead-7/w'])
  assert.ok(names(way).includes('worker-7-3') && !names(way).includes('worker-8-3'))
  assert.equal(layout(grouped(forest(crowd(3, 9), false), new Set())).placed.length, 31, 'few agents stand by themselves')
  const { placed, byId, width, frames } = layout(grouped(roots, new Set(['root/lead', 'lead-7/w'])))
  assert.equal(byId.get('worker-8-3')?.key, 'lead-8/w', 'who is in a closed group is where the group is')
  assert.equal(new Set(placed.map(({ x, y }) => `${x},${y}`)).size, placed.length)
  assert.ok(placed.every(({ x }) => x >= 0 && x + BOX.width <= width) && frames.length === 1)
})

test('a message lights its way for a length of time, whatever comes after it', () => {
  const sent = (seq: number) => ({ seq, at: seq, event: { messageSent: { envelope: { id: `e${seq}`, from: 'a', to: 'b', taskId: 't', payload: { text: '' }, kind: 'message' } } } }) as unknown as Recorded
  const other = (seq: number) => ({ seq, at: seq, event: { agentDismissed: { agent: 'a', caller: 'root' } } }) as unknown as Recorded
  const first = lightsAt([], [sent(4), sent(5)], 4, 1000)
  assert.deepEqual(first, [{ key: '5', from: 'a', to: 'b', until: 1000 + LIT_MS }], 'what was there before is not lit')
  const crowdOfEvents = Array.from({ length: 500 }, (_, n) => other(6 + n))
  assert.equal(lightsAt(first, crowdOfEvents, 5, 1000 + LIT_MS - 1).length, 1)
  assert.equal(lightsAt(first, [], 5, 1000 + LIT_MS).length, 0)
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
