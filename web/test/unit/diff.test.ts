// What differs between two texts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diff } from '../../src/views/inbox/diff'

const brief = (a: string, b: string) => diff(a, b).map(({ kind, text }) => `${{ same: ' ', gone: '-', new: '+' }[kind]}${text}`).join('|')

test('a changed line is gone and new', () => {
  assert.equal(brief('a\nb\nc', 'a\nx\nc'), ' a|-b|+x| c')
})

test('lines that are added or left out stand alone', () => {
  assert.equal(brief('a\nc', 'a\nb\nc'), ' a|+b| c')
  assert.equal(brief('a\nb\nc', 'a\nc'), ' a|-b| c')
  assert.equal(brief('a', 'a'), ' a')
})
