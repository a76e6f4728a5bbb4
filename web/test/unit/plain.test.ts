// Markdown as one line of text.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainText } from '../../src/ui/plain'

test('the marks go, the words stay', () => {
  assert.equal(plainText('make **all** of it _now_, see [here](https://a.example)'), 'make all of it now, see here')
  assert.equal(plainText('# Title\n- `one`\n1. two'), 'Title\none\ntwo')
})

test('what is no Markdown stays as it is', () => {
  assert.equal(plainText('2 * 3 * 4 and snake_case_name'), '2 * 3 * 4 and snake_case_name')
})
