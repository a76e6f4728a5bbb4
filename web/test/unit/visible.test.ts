// Characters that hide or turn text around are shown by their numbers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parts } from '../../src/ui/hidden'

const read = (text: string) => parts(text).map((part) => (part.isHidden ? `[${part.text}]` : part.text)).join('')

test('what a person cannot see is shown by its number', () => {
  assert.equal(read('pay \u202Ebob\u2069'), 'pay [U+202E]bob[U+2069]')
  assert.equal(read('a\u200Bb\u{E0041}c\u001B]52'), 'a[U+200B]b[U+E0041]c[U+001B]]52')
})

test('plain text in any script stays as it is', () => {
  const plain = 'line one\n\tline two – 数据, émoji 🙂, ç'
  assert.equal(read(plain), plain)
})
