// Components: what they take, what becomes of a result, and that names can be replaced.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseToolResultContent } from '../../src/components/parse'
import { check } from '../../src/components/schema'
import { planner, todoList } from '../../src/components/shipped/schemas'
import { samples } from '../../src/components/shipped/samples'

test('a component gets what its schema names and nothing else', () => {
  const { value, wrong } = check(todoList, { todos: [{ id: 'a', description: 'b', html: '<img>' }], dangerouslySetInnerHTML: { __html: '' } })
  assert.deepEqual(value, { todos: [{ id: 'a', description: 'b' }] })
  assert.deepEqual(wrong, [])
})

test('what is missing or of another kind is named with its place', () => {
  const { wrong } = check(planner, { todos: [{ id: 'a', status: 'lost' }, 7] })
  assert.deepEqual(wrong, ['props.todos[0].status: is none of pending, in_progress, executing, completed, failed, skipped', 'props.todos[1]: is no object', 'props: summary is missing'])
})

test('while it is written nothing is missing', () => {
  assert.deepEqual(check(planner, { todos: [{ id: 'a', status: 'comp' }] }, true).wrong, [])
})

test('every example fits its schema at every length', () => {
  const whole = JSON.stringify(samples['planner-response'])
  for (let length = 1; length <= whole.length; length += 1) {
    const [item] = parseToolResultContent(`{"type":"component","component":"planner-response","props":${whole.slice(0, length)}`, true)
    assert.equal(item?.component, 'planner-response')
    assert.deepEqual(check(planner, item?.props ?? {}, true).wrong, [])
  }
})

test('a result is read as pieces, and what cannot be read is text', () => {
  const items = parseToolResultContent('{"content":[{"type":"text","value":"found:"},{"type":"component","component":"resource-list","props":{"resources":[]}},{"type":"webcomponent","value":"<x-y></x-y>"}]}')
  assert.deepEqual(items, [
    { type: 'text', value: 'found:' },
    { type: 'component', component: 'resource-list', props: { resources: [] } },
    { type: 'webcomponent', value: '<x-y></x-y>' },
  ])
  assert.deepEqual(parseToolResultContent('{"broken": '), [{ type: 'text', value: '{"broken": ' }])
  assert.deepEqual(parseToolResultContent('plain'), [{ type: 'text', value: 'plain' }])
  assert.deepEqual(parseToolResultContent('{"a":1}'), [{ type: 'json', value: '{\n  "a": 1\n}' }])
  assert.deepEqual(parseToolResultContent(''), [])
})

test('props may stand beside the name of the component', () => {
  assert.deepEqual(parseToolResultContent('{"type":"component","component":"summary-response","summary":"s","verified":true}'), [
    { type: 'component', component: 'summary-response', props: { summary: 's', verified: true } },
  ])
})
