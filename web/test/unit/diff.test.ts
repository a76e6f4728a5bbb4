// What differs between two texts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { around, diff, lines } from '../../src/views/inbox/diff'

const brief = (a: string, b: string) => diff(a, b).map(({ kind, text }) => `${{ same: ' ', gone: '-', new: '+' }[kind]}${text}`).join('|')

test('a changed line is gone and new', () => {
  assert.equal(brief('a\nb\nc', 'a\nx\nc'), ' a|-b|+x| c')
})

test('lines that are added or left out stand alone', () => {
  assert.equal(brief('a\nc', 'a\nb\nc'), ' a|+b| c')
  assert.equal(brief('a\nb\nc', 'a\nc'), ' a|-b| c')
  assert.equal(brief('a', 'a'), ' a')
})

test('a text of several lines is compared line by line, and a backslash before an n is no line', () => {
  assert.equal(lines({ a: 'x\ny', b: 'c:\\new' }), '{\n  "a": "x\\n\n    y",\n  "b": "c:\\\\new"\n}')
  assert.equal(brief(lines({ a: 'x\ny' }), lines({ a: 'x\nz' })), ' {|   "a": "x\\n|-    y"|+    z"| }')
})

test('of what stays the same only what is near a change is shown', () => {
  const told = (before: string, after: string) => around(diff(before, after)).map((line) => line.text).join('|')
  assert.equal(told('a\nb\nc\nd\ne\nf\ng', 'a\nb\nc\nd\ne\nf\nx'), '⋯|e|f|g|x')
  assert.equal(told('a\nb\nc\nd\ne\nf\ng', 'x\nb\nc\nd\ne\nf\ng'), 'a|x|b|c|⋯')
})
