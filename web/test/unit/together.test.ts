// Deciding several calls together.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Waiting } from '../../src/store/state'
import { decideEach, together } from '../../src/views/inbox/together'

const call = (id: string, details: unknown = null) => ({ id, what: { kind: 'approval', question: '', details, call: { tool: 'write_file', arguments: '{}' } } }) as unknown as Waiting

test('calls that need caution, and what is no call, are decided one by one', () => {
  const all = [
    call('1.0'),
    call('1.1', { outside: ['https://a.example'] }),
    call('1.2', { changed: { before: 'a', after: 'b' } }),
    call('1.3', { outside: [], changed: null, covers: 'x' }),
    { id: '1.4', what: { kind: 'grant', lacking: [], calls: {} } } as unknown as Waiting,
    { id: '1.5', what: { kind: 'approval', question: 'may this plan be carried out?' } } as unknown as Waiting,
  ]
  assert.deepEqual(together(all).map(({ id }) => id), ['1.0', '1.3'])
})

/** Decides three calls, of which one fails: which were tried, and which are left. */
async function decided(failing: string, error: unknown): Promise<[string[], string[]]> {
  const tried: string[] = []
  const left = await decideEach([call('1'), call('2'), call('3')], async (id) => {
    tried.push(id)
    if (id === failing) throw error
  })
  return [tried, left.map(({ waiting }) => waiting.id)]
}

test('one that waits no more does not keep the others from a decision', async () => {
  assert.deepEqual(await decided('2', { status: 409 }), [['1', '2', '3'], ['2']])
  assert.deepEqual(await decided('', undefined), [['1', '2', '3'], []])
})

test('after another error none is decided, and all that are left are known', async () => {
  assert.deepEqual(await decided('2', { status: 401 }), [['1', '2'], ['2', '3']])
})
