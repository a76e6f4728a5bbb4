// Where a text stops being JSON.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultOf } from '../../src/json/fault'

test('what is JSON has no fault, and what is none has one', () => {
  const whole = ['{}', ' [] ', '{"a": [1, -2.5e3, "x\\n\\u4e2d", true, null], "b": {"c": ""}}', '"x"', '0', '{"中": "文"}']
  const broken = ['', '{', '{"a": }', '{"a": 1,}', '[1 2]', '{a: 1}', "{'a': 1}", '"open', '01', 'tru', '{} {}', '{"a": "\n"}', '[,]']
  for (const text of [...whole, ...broken]) {
    let isJson = true
    try {
      JSON.parse(text)
    } catch {
      isJson = false
    }
    assert.equal(faultOf(text) === undefined, isJson, text)
  }
})

test('it says where', () => {
  for (const [text, place] of [['{"a": }', 6], ['{"a": 1,}', 8], ['{"a": 1', 7], ['[1 2]', 3], ['{} x', 3]] as const) assert.equal(faultOf(text), place, text)
})
