// Reading JSON that is still being written.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PartialJson, parsePartialJson } from '../../src/json/partial'

const SAMPLES = [
  '{"a":1,"b":[true,false,null,-1.5e3],"c":{"d":"x\\n\\u4e2d\\"","e":[]},"f":{}}',
  '["one","two",["three"],{"four":"4"},"",0]',
  '{ "summary" : "读取\\u6587件" , "todos" : [ { "id" : "t1" , "title" : "a" } ] }',
  '"alone"',
  '[[[[]]],{"":""}]',
  '{"__proto__":{"x":1}}',
]

test('every way of cutting gives what JSON.parse gives', () => {
  for (const sample of SAMPLES) {
    for (const size of [1, 2, 3, 7, 1000]) {
      const parser = new PartialJson()
      for (let at = 0; at < sample.length; at += size) parser.push(sample.slice(at, at + size))
      assert.deepEqual(parser.value, JSON.parse(sample), `${sample} in pieces of ${size}`)
      assert.ok(parser.isDone)
    }
  }
})

test('every beginning can be read, and never breaks', () => {
  for (const sample of SAMPLES) {
    for (let end = 0; end < sample.length; end += 1) {
      const parser = new PartialJson().push(sample.slice(0, end))
      assert.ok(!parser.isBroken, sample.slice(0, end))
    }
  }
})

test('half a text is shown, half a number is not', () => {
  const { data } = parsePartialJson<{ a: string; b?: number }>('{"a":"hel')
  assert.deepEqual(data, { a: 'hel' })
  assert.deepEqual(parsePartialJson('{"a":"x","b":12').data, { a: 'x' })
  assert.deepEqual(parsePartialJson('[ "one", "tw').data, ['one', 'tw'])
})

test('words and a fence around it do no harm', () => {
  const { data, isWhole } = parsePartialJson('Here it is:\n```json\n{"a":1}\n``` done')
  assert.deepEqual(data, { a: 1 })
  assert.ok(isWhole)
})

test('what is no JSON is said to be none', () => {
  for (const bad of ['{a:1}', '[1,,2]', '{"a" "b"}', '[tru]', '{"a":1,}', '["\\x"]']) {
    assert.ok(new PartialJson().push(bad).isBroken, bad)
  }
})
