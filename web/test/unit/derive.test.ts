// Which turn's plan a conversation shows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turnShown } from '../../src/store/derive'
import type { State } from '../../src/store/state'

const state = (running?: number) => {
  const items = [1, 2].map((turn) => ({ kind: 'turn', turn }))
  const turns = new Map([1, 2].map((id) => [id, { id, task: { id: `task-${id}` } }]))
  return { threads: new Map([['c-1', { items, turn: running }]]), turns } as unknown as State
}

test('the plan of the request that was chosen is shown, also while another one runs', () => {
  assert.equal(turnShown(state(2), 'c-1', 'task-1')?.id, 1)
  assert.equal(turnShown(state(), 'c-1', 'task-1')?.id, 1)
})

test('without a choice, or before the chosen one has begun, it is that of the one under way, else of the newest', () => {
  assert.equal(turnShown(state(1), 'c-1', undefined)?.id, 1)
  assert.equal(turnShown(state(1), 'c-1', 'task-3')?.id, 1)
  assert.equal(turnShown(state(), 'c-1', undefined)?.id, 2)
  assert.equal(turnShown(state(), 'c-1', 'task-3'), undefined)
})
