// What differs between two texts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { around, diff, fileLines, lines } from '../../src/views/inbox/diff'

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

const told = (before: string[], after: string[], isCut: boolean) =>
  fileLines({ before: before.join(''), after: after.join(''), line: 1, isCut })
    .map(({ kind, text }) => `${{ same: ' ', gone: '-', new: '+' }[kind]}${text}`)
    .join('|')

test('where a change is cut, lines that only one side still shows are neither removed nor added', () => {
  const file = Array.from({ length: 1000 }, (_, n) => `line ${n}\n`)
  const ten = Array.from({ length: 10 }, (_, n) => `new ${n}\n`)
  const shown = told(file, [...ten, ...file.slice(0, -10)], true)
  assert.doesNotMatch(shown, /\|-/)
  assert.equal(shown.match(/\+new/g)?.length, 10)
  assert.match(shown, /\| line 989$/)
  assert.match(told(file, [...ten, ...file.slice(0, -10)], false), /\|-line 999$/, 'a whole text is compared to its end')
})

test('a cut change that has nothing in common is shown, and a cut is no end of the file', () => {
  assert.equal(told(['a\n'], ['x\n', 'y'], true), '-a|+x|+y')
  assert.equal(told([], ['x\n', 'y\n'], true), '+x|+y')
  assert.equal(told(['a\n', 'b\n'], ['a\n', 'c\n'], true), ' a|-b|+c')
})

test('a line end that is added or removed at the end of a file is a change', () => {
  assert.equal(told(['a'], ['a\n'], false), ' a|+')
  assert.equal(told(['a\n'], ['a\n', 'b\n'], false), ' a|+b')
})
