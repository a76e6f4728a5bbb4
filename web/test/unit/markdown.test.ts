// When the blocks of a text are drawn again while it grows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocksOf, isSame } from '../../src/ui/blocks'

/** Which blocks are kept as they are when a text becomes another. */
function kept(before: string, after: string): boolean[] {
  const [old, next] = [blocksOf(before, true), blocksOf(after, true)]
  return old.map((block, place) => isSame(block, next[place]!))
}

test('a block is drawn again when the target of its link grows', () => {
  const text = 'See [the page][1].\n\nMore.\n\n'
  assert.deepEqual(kept(`${text}[1]: https://exam`, `${text}[1]: https://example.com/x`), [false, false])
  assert.deepEqual(kept(`${text}> [1]: https://exam`, `${text}> [1]: https://example.com/x`).slice(0, 2), [false, false], 'in a quote too')
  assert.deepEqual(kept(`${text}[1]: https://example.com`, `${text}[1]: https://example.com\n[2]: https://b.example`), [false, false])
})

test('a block is kept while the text after it grows', () => {
  assert.deepEqual(kept('One.\n\nTwo', 'One.\n\nTwo and three'), [true, false])
  assert.deepEqual(kept('One.\n\n[1]: https://a.example\n\nTwo', 'One.\n\n[1]: https://a.example\n\nTwo and three'), [true, false])
})
