// Doing something once for many occasions.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Batch } from '../../src/store/batch'

/** How often it is done for so many occasions, one every so many milliseconds, and a while after them. */
function times(occasions: number, everyMs: number, dropped = false): number {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  try {
    let done = 0
    const batch = new Batch(() => (done += 1))
    for (let n = 0; n < occasions; n += 1) {
      batch.add()
      mock.timers.tick(everyMs)
    }
    if (dropped) batch.drop()
    mock.timers.tick(10_000)
    return done
  } finally {
    mock.timers.reset()
  }
}

test('a hundred occasions that come close together count once, and those far apart each', () => {
  assert.equal(times(100, 0), 1)
  assert.equal(times(100, 10), 1)
  assert.equal(times(3, 1000), 3)
})

test('occasions without end do not put it off without end', () => {
  const done = times(100, 100)
  assert.ok(done >= 4 && done <= 6, `${done}`)
})

test('what is done already is not done again', () => {
  assert.equal(times(5, 10, true), 0)
})
