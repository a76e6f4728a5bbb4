// Which societies hold another wording of a request, from where each parts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Society, waysOf } from '../../src/store/ways'
import type { Request } from '../../src/store/state'

const one = (name: string, forkedFrom?: string, forkedAt?: number, events = 99): Society => ({ name, events, works: false, first: name === 'main', ...(forkedFrom && { forkedFrom, forkedAt: forkedAt ?? 0 }) })
const asked = (id: string, seq: number) => ({ id, seq }) as Request

test('a request that was asked in three ways has three, wherever one stands', () => {
  const all = [one('main'), one('main-1', 'main', 9), one('main-2', 'main', 9)]
  const ways = (name: string, request: Request) => waysOf(all, name, [asked('a', 4), request], request)
  assert.deepEqual(ways('main', asked('b', 10)), ['main', 'main-1', 'main-2'])
  assert.deepEqual(ways('main-1', asked('c', 11)), ['main', 'main-1', 'main-2'])
  assert.deepEqual(waysOf(all, 'main', [asked('a', 4), asked('b', 10)], asked('a', 4)), [], 'the one before was asked once')
})

test('a later branch of a branch keeps the ways of what both share', () => {
  const all = [one('main'), one('main-1', 'main', 9), one('main-3', 'main-1', 20)]
  const requests = [asked('a', 4), asked('c', 11), asked('d', 22)]
  assert.deepEqual(waysOf(all, 'main-3', requests, asked('c', 11)), ['main', 'main-3'])
  assert.deepEqual(waysOf(all, 'main-3', requests, asked('d', 22)), ['main-1', 'main-3'])
})

test('a fork in which nothing was asked is no other way', () => {
  const all = [one('main'), one('main-1', 'main', 9, 10)]
  assert.deepEqual(waysOf(all, 'main', [asked('b', 10)], asked('b', 10)), [])
})

test('ten comes after two', () => {
  const all = [one('main'), one('main-10', 'main', 9), one('main-2', 'main', 9)]
  assert.deepEqual(waysOf(all, 'main', [asked('b', 10)], asked('b', 10)), ['main', 'main-2', 'main-10'])
})
