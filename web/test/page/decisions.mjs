// What waits for a person, and what comes of the decision.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AXE, violations } from './everywhere.mjs'

const ASK_WRITES = ['write_file', 'edit_file'].map((tool) => `[[policy]]\ntool = "${tool}"\nthen = "ask"\n`).join('\n')

export const checks = [
  [
    'a call that needs a word waits in reach, survives a reload, and is made as it was edited',
    async ({ open, scripted }) => {
      const { conversation } = await scripted.ask('/api/submit', { text: 'Please write a report' })
      const page = await open(scripted, { path: `/chat/${conversation}` })
      const bar = page.locator('.approval-bar')
      await bar.getByText('files are changed only with your word').waitFor()
      await bar.getByText('Tea sells best in Paris.').waitFor()
      assert.match(await page.title(), /^\(1\)/)
      await page.reload()
      await bar.getByRole('button', { name: /^Edit/ }).click()
      await bar.getByLabel('path').fill('edited.md')
      await bar.locator('.difference .new', { hasText: 'edited.md' }).waitFor()
      await bar.getByRole('button', { name: 'Approve as edited' }).click()
      await page.locator('.message.bot', { hasText: 'It is written.' }).last().waitFor()
      assert.match(readFileSync(join(scripted.folder, 'edited.md'), 'utf8'), /Tea sells best/)
      assert.ok(!existsSync(join(scripted.folder, 'report.md')))
      assert.equal(await bar.count(), 0)
    },
  ],
  [
    'an edit that cannot be read is said to be so, and is never approved as something else',
    async ({ open, scripted }) => {
      const { taskId } = await scripted.ask('/api/submit', { text: 'Please write an unreadable report' })
      const page = await open(scripted, { path: '/inbox' })
      const card = page.locator('.inbox .approval')
      await card.getByRole('button', { name: /^Edit/ }).click()
      await card.getByRole('button', { name: 'Raw' }).click()
      const approve = card.getByRole('button', { name: /^Approve/ })
      for (const [text, why] of [['{"path": "half.md",\n "content": ', /line 2, column 13/], ['{\n "path": ,\n "content": "x"\n}', /line 2, column 10/], ['[]', /object/], ['"x"', /object/], ['null', /object/], ['', /object/]]) {
        await card.locator('textarea.raw').fill(text)
        await card.locator('.form-bad', { hasText: why }).waitFor()
        assert.ok(await approve.isDisabled(), text)
        assert.ok(await card.getByRole('button', { name: 'Raw' }).isDisabled(), 'the text is not thrown away')
      }
      assert.equal((await scripted.ask('/api/approvals')).approvals.length, 1, taskId)
      await card.locator('textarea.raw').fill('{"path": "whole.md", "content": "read and meant"}')
      assert.equal(await card.locator('.form-bad').count(), 0)
      await card.getByRole('button', { name: 'Approve as edited' }).click()
      await page.getByText('Nothing waits for you.').waitFor()
      while ((await scripted.ask(`/api/tasks/${taskId}`)).status === 'running') await new Promise((resolve) => setTimeout(resolve, 50))
      assert.equal(readFileSync(join(scripted.folder, 'whole.md'), 'utf8'), 'read and meant')
      assert.ok(!existsSync(join(scripted.folder, 'report.md')) && !existsSync(join(scripted.folder, 'half.md')))
    },
  ],
  [
    'a decision is made with Alt while somebody writes, and the card says so',
    async ({ open, scripted }) => {
      const { conversation } = await scripted.ask('/api/submit', { text: 'Please write while I write' })
      const page = await open(scripted, { path: `/chat/${conversation}` })
      const bar = page.locator('.approval-bar')
      await bar.locator('kbd', { hasText: /^A$/ }).waitFor()
      await page.focus('#composer')
      await bar.locator('kbd', { hasText: 'Alt A' }).waitFor()
      await page.keyboard.type('a')
      assert.equal(await page.inputValue('#composer'), 'a')
      await page.keyboard.press('Alt+a')
      await page.locator('.message.bot', { hasText: 'It is written.' }).last().waitFor()
      assert.equal(await page.inputValue('#composer'), 'a')
      await page.fill('#composer', '')
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'a call is denied with a reason, by keyboard alone, and the reason is kept',
    async ({ open, scripted }) => {
      const { taskId, conversation } = await scripted.ask('/api/submit', { text: 'Please write a second report' })
      const page = await open(scripted, { path: `/chat/${conversation}` })
      await page.locator('.approval-bar').waitFor()
      await page.locator('.scroller').focus()
      await page.keyboard.press('d')
      await page.keyboard.type('not today')
      await page.keyboard.press('Enter')
      await page.locator('.approval-bar').waitFor({ state: 'detached' })
      await page.waitForFunction(() => !document.querySelector('.rail .pulse'))
      const log = await scripted.ask('/api/log?limit=1000')
      assert.ok(JSON.stringify(log).includes('not today'), taskId)
    },
  ],
  [
    'the inbox holds what waits from everywhere; A approves, and always means always',
    async ({ open, scripted }) => {
      await scripted.ask('/api/submit', { text: 'write number three' })
      const page = await open(scripted, { path: '/inbox' })
      await page.locator('.inbox .approval').waitFor()
      await page.getByRole('button', { name: 'Raw' }).click()
      await page.locator('.inbox pre', { hasText: '"path": "report.md"' }).waitFor()
      await page.selectOption('.always select', 'tool')
      await page.locator('#content').focus()
      await page.keyboard.press('a')
      await page.getByText('Nothing waits for you.').waitFor()
      const { conversation } = await scripted.ask('/api/submit', { text: 'write number four' })
      await page.goto(`${scripted.address}/chat/${conversation}`)
      await page.locator('.message.user', { hasText: 'write number four' }).waitFor()
      await page.waitForSelector('.conversations li:first-child .status-icon.idle', { state: 'attached' })
      assert.equal(await page.locator('.approval-bar').count(), 0, 'nobody is asked again')
      assert.ok(existsSync(join(scripted.folder, 'report.md')))
      await page.goto(`${scripted.address}/settings/policies`)
      await page.locator('.allowed', { hasText: 'write_file' }).waitFor()
    },
  ],
  [
    'several calls are approved at once, but not past one that is being edited',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[[policy]]\ntool = "write_file"\nthen = "ask"\n' })
      try {
        const org = await one.ask('/api/org')
        const [root] = org.agents
        await one.ask('/api/org', { ...org, agents: [...org.agents, { ...root, id: 'wendy', parentAgentId: 'root' }] })
        await one.ask('/api/submit', { text: 'write this' })
        await one.ask('/api/send', { agentId: 'wendy', text: 'write that' })
        const page = await open(one, { path: '/inbox' })
        const all = page.getByRole('button', { name: 'Approve all 2' })
        await all.waitFor()
        await page.getByRole('button', { name: 'Approve all 2', disabled: false }).waitFor()
        const first = page.locator('.inbox .approval').first()
        await first.getByRole('button', { name: /^Edit/ }).click()
        await first.getByLabel('path').fill('other.md')
        assert.ok(await all.isDisabled(), 'what is shown would not be what is sent')
        await first.getByRole('button', { name: 'Leave as it was' }).click()
        await all.click()
        await page.getByText('Nothing waits for you.').waitFor()
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a call that changes a file is shown as a comparison with the file, with line numbers and nothing hidden',
    async ({ open, society, program, model }) => {
      const long = Array.from({ length: 40 }, (_, n) => `line ${n + 1}`)
      const one = await society({ program, model, settings: ASK_WRITES, files: { 'long.txt': `${long.join('\n')}\n` } })
      try {
        const make = async (name, args) => (await one.ask('/api/submit', { text: `make ${name} ${JSON.stringify(args)}` })).conversation
        const at = await make('edit_file', { path: 'long.txt', edits: [{ old_text: 'line 20', new_text: 'the twentieth\nline\nmore' }, { old_text: 'line 35\n', new_text: '' }] })
        const page = await open(one, { path: `/chat/${at}` })
        const card = page.locator('.approval-bar .approval')
        const change = card.locator('.file-change')
        await change.waitFor()
        assert.equal(await change.locator('.change-head code').innerText(), 'long.txt')
        assert.equal(await change.locator('.change-count').getAttribute('aria-label'), '3 lines added, 2 lines removed')
        const rows = await change.locator('.change-line').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim()).join(',')))
        const same = (n, shift) => `${n},${n + shift},,line ${n}`
        assert.deepEqual(rows, [same(17, 0), same(18, 0), same(19, 0), '20,,−,line 20', ',20,+,the twentieth', ',21,+,line', ',22,+,more', same(21, 2), same(22, 2), same(23, 2), ',,,⋯', same(32, 2), same(33, 2), same(34, 2), '35,,−,line 35', same(36, 1), same(37, 1), same(38, 1)])
        await card.getByRole('button', { name: 'Raw' }).click()
        await card.locator('pre.long', { hasText: '"old_text": "line 20"' }).waitFor()
        await card.getByRole('button', { name: 'Raw' }).click()
        await card.getByRole('button', { name: /^Edit/ }).click()
        assert.equal(await change.count(), 0, 'what was proposed is not what would be sent')
        await card.getByRole('button', { name: 'Leave as it was' }).click()
        await change.waitFor()
        await card.getByRole('button', { name: /^Approve/ }).click()
        await page.locator('.message.bot', { hasText: 'Made: wrote' }).waitFor()
        assert.equal(readFileSync(join(one.folder, 'long.txt'), 'utf8'), `${[...long.slice(0, 19), 'the twentieth', 'line', 'more', ...long.slice(20, 34), ...long.slice(35)].join('\n')}\n`, 'what was shown is what was done')

        await page.goto(`${one.address}/chat/${await make('write_file', { path: 'new/note.md', content: 'pay \u202enrut' })}`)
        await change.getByText('new file').waitFor()
        assert.equal(await change.locator('.hidden-character').count(), 1, 'a mark that turns the text around is seen')
        await page.goto(`${one.address}/chat/${await make('write_file', { path: 'notes.md', content: '# Notes\n\nBuy milk. Milk is good.\n' })}`)
        await change.getByText('The file has this content already.').waitFor()
        await page.goto(`${one.address}/chat/${await make('write_file', { path: 'notes.md', content: `${'m\n'.repeat(1100)}` })}`)
        await change.getByText('Only the beginning of the change is shown here').waitFor()
        await page.goto(`${one.address}/chat/${await make('edit_file', { path: 'notes.md', edits: [{ old_text: 'Buy bread', new_text: 'Buy nothing' }] })}`)
        await card.getByText('the old_text of edit 1 is not in it').waitFor()
        await card.locator('.value', { hasText: 'Buy nothing' }).waitFor()
        assert.equal(await change.count(), 0)
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a comparison is made again when another call has changed the file',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: ASK_WRITES, files: { 'list.txt': 'a\nb\nc\n' } })
      try {
        const edit = (old_text, new_text) => `make edit_file ${JSON.stringify({ path: 'list.txt', edits: [{ old_text, new_text }] })}`
        await one.ask('/api/submit', { text: edit('a', 'first') })
        await one.ask('/api/submit', { text: edit('c', 'last') })
        const page = await open(one, { path: '/inbox' })
        const other = page.locator('.approval', { hasText: '+last' })
        await other.locator('.change-line.same', { hasText: 'a' }).waitFor()
        await page.locator('.approval', { hasText: '+first' }).getByRole('button', { name: /^Approve/ }).click()
        await other.locator('.change-line.same', { hasText: 'first' }).waitFor()
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'the calls of one reply that wait together are decided together where one talks, all of them or one by one',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[[policy]]\ntool = "read_file"\nthen = "ask"\n' })
      try {
        const text = ['sales.csv', 'notes.md', 'polis.toml'].map((path) => `make read_file ${JSON.stringify({ path })}`).join('\n')
        const { conversation } = await one.ask('/api/submit', { text })
        const page = await open(one, { path: `/chat/${conversation}` })
        const bar = page.locator('.approval-bar')
        await bar.getByRole('button', { name: 'Approve all 3', disabled: false }).waitFor()
        const lines = bar.locator('.approval-choice li button')
        assert.deepEqual(await lines.locator('.step-brief').allInnerTexts(), ['sales.csv', 'notes.md', 'polis.toml'], 'what would be approved is seen')
        await lines.nth(2).focus()
        await page.keyboard.press('Enter')
        await bar.locator('.approval .value', { hasText: 'polis.toml' }).waitFor()
        await bar.getByRole('button', { name: /^Edit/ }).click()
        assert.ok(await bar.getByRole('button', { name: 'Approve all 3' }).isDisabled(), 'not past one that is being edited')
        await bar.getByRole('button', { name: 'Leave as it was' }).click()
        await bar.getByRole('button', { name: /^Deny …/ }).click()
        await page.keyboard.type('not this one')
        await page.keyboard.press('Enter')
        await bar.getByRole('button', { name: 'Approve all 2' }).click()
        const answer = page.locator('.message.bot', { hasText: 'Made:' })
        await answer.filter({ hasText: 'city,product' }).filter({ hasText: 'Buy milk' }).filter({ hasText: 'not this one' }).waitFor()
        assert.equal(await bar.count(), 0)
        const later = await one.ask('/api/submit', { text: `Once more:\n${text}` })
        const phone = await open(one, { path: `/chat/${later.conversation}`, language: 'zh', width: 390, height: 844 })
        const none = phone.getByRole('button', { name: '全部拒绝（3）' })
        await none.waitFor()
        await phone.evaluate(AXE)
        assert.deepEqual(await violations(phone), [])
        assert.ok((await phone.evaluate(() => document.documentElement.scrollWidth)) <= 390)
        await none.click()
        await phone.locator('.message.bot', { hasText: 'Made:' }).waitFor()
        assert.doesNotMatch(await phone.locator('.message.bot').last().innerText(), /city,product|Buy milk/)
        for (const window of [page, phone]) assert.deepEqual(window.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a budget that is used up says who made the calls, and goes on with one word',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[budget.task]\nrequests = 1\n' })
      try {
        await one.ask('/api/submit', { text: 'run it' })
        const page = await open(one, { path: '/inbox' })
        const card = page.locator('.inbox .approval')
        await card.getByText('Model calls by agent: root 1').waitFor()
        await card.getByRole('button', { name: 'Grant as much again' }).click()
        await page.getByText('Nothing waits for you.').waitFor()
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a question to the person is answered with one of its options',
    async ({ open, scripted }) => {
      const { conversation } = await scripted.ask('/api/submit', { text: 'ask me something' })
      const page = await open(scripted, { path: `/chat/${conversation}` })
      const bar = page.locator('.approval-bar')
      await bar.getByText('Which city do you mean?').waitFor()
      await bar.getByRole('button', { name: 'Berlin' }).click()
      await page.locator('.message.bot', { hasText: 'Berlin' }).last().waitFor()
    },
  ],
  [
    'a plan that waits for a word is planned anew, then done in another order, changed, shortened and added to',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[workflow]\nplan_approval = "ask"\nask_above = 2\nat_once = 1\n' })
      try {
        const { taskId, conversation } = await one.ask('/api/submit', { text: 'Compare the files with the notes', strategy: 'workflow' })
        const page = await open(one, { path: `/chat/${conversation}` })
        const first = page.locator('.approval-bar .approval')
        await first.getByText('May this plan be carried out?').waitFor()
        const waiting = async () => (await one.ask('/api/approvals')).approvals[0]?.id
        const before = await waiting()
        await first.getByRole('button', { name: /^Plan anew/ }).click()
        await page.keyboard.type('shorter, please')
        await first.getByRole('button', { name: 'Plan anew', exact: true }).click()
        for (let now = before; !now || now === before; ) now = await waiting()
        await page.reload()
        const plan = page.locator('.plan-editor')
        await plan.getByRole('textbox', { name: 'Todo 3', exact: true }).waitFor()
        assert.equal(await page.locator('.plan-bar .todo').count(), 0, 'the plan stands there once')
        await page.locator('.plan-head').click()
        assert.deepEqual(await page.locator('.plan-bar .todo-text').allInnerTexts(), ['List the files of the folder', 'Read the notes', 'Compare both and write the answer'], 'the bar shows the plan that is asked about')
        await plan.getByRole('button', { name: 'Leave out todo 2' }).click()
        await plan.getByRole('button', { name: 'Move todo 2 up' }).click()
        await plan.getByRole('textbox', { name: 'Todo 2', exact: true }).fill('List them, carefully')
        await plan.getByRole('button', { name: 'Add a todo' }).click()
        assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Todo 3', 'the new one is where one writes')
        await page.getByText('Todo 3 is empty.').waitFor()
        assert.ok(await page.getByRole('button', { name: 'Approve as edited' }).isDisabled(), 'a blank todo is not carried out')
        await plan.getByRole('textbox', { name: 'Todo 1', exact: true }).fill('')
        assert.equal(await plan.getByRole('textbox', { name: 'Todo 1', exact: true }).inputValue(), '', 'a title can be emptied')
        await plan.getByRole('textbox', { name: 'Todo 1', exact: true }).fill('Compare both and write the answer')
        await plan.getByRole('textbox', { name: 'Todo 3', exact: true }).fill('Say thanks')
        await page.getByRole('button', { name: 'Approve as edited' }).click()
        await page.locator('.column > .timeline > .message.bot', { hasText: 'buy milk' }).waitFor()
        const events = (await one.ask('/api/log?limit=10000')).events.map((recorded) => recorded.event)
        const verdicts = events.flatMap((event) => (event.effectEnded?.outcome.verdict ? [event.effectEnded.outcome.verdict] : []))
        assert.deepEqual(verdicts.map((verdict) => verdict.approved), [false, true], taskId)
        assert.equal(verdicts[0].reason, 'shorter, please')
        const { todos } = JSON.parse(verdicts[1].arguments)
        assert.deepEqual(todos.map((todo) => [todo.id, todo.title, todo.dependencies]), [['task-3', 'Compare both and write the answer', []], ['task-1', 'List them, carefully', []], ['task-4', 'Say thanks', []]])
        await page.getByText('3 of 3').waitFor()
        await page.locator('.column > .timeline > .turn').last().locator('.delegation-line').first().click()
        const done = page.locator('.below .delegation-line', { hasText: 'executor' })
        await done.nth(2).waitFor()
        const order = (await done.allInnerTexts()).map((line) => ['Compare both', 'List them, carefully', 'Say thanks'].findIndex((title) => line.includes(title)))
        assert.deepEqual(order, [0, 1, 2])
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a write that a crash has cut is shown as in doubt, and is settled by what the person found',
    async ({ open, society, program, model }) => {
      const settings = `[mcp.press]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ["press.mjs"]\noutside = false\n\n[[policy]]\nserver = "press"\nthen = "allow"\n`
      const one = await society({ program, model, settings, files: { 'press.mjs': PRESS } })
      const printed = () => (existsSync(join(one.folder, 'printed')) ? readFileSync(join(one.folder, 'printed'), 'utf8').length : 0)
      try {
        const { id: conversation } = await one.ask('/api/conversations', { title: 'The press' })
        const page = await open(one, { path: `/chat/${conversation}` })
        const card = page.locator('.approval-bar .approval')
        const cut = async (times) => {
          await one.ask('/api/submit', { text: 'press it', conversation })
          while (printed() < times) await new Promise((resolve) => setTimeout(resolve, 20))
          await one.kill()
          await one.start()
          await card.getByText('nobody knows whether it was done').waitFor()
          await card.getByText('Tea sells best in Paris.').waitFor()
        }
        await cut(1)
        await card.getByLabel('What came of it').fill('a sheet lies in the tray')
        await card.getByRole('button', { name: 'It was done' }).click()
        await page.locator('.message.bot', { hasText: 'The press: a sheet lies in the tray' }).waitFor()
        assert.equal(printed(), 1, 'it was not done twice')
        await cut(2)
        writeFileSync(join(one.folder, 'awake'), '')
        await card.getByRole('button', { name: 'Do it again' }).click()
        await page.locator('.message.bot', { hasText: 'The press: printed 3' }).waitFor()
        assert.equal(await page.locator('.approval-bar').count(), 0)
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
]

/** A server with one tool that does what it is asked and then says nothing, unless it is awake. */
const PRESS = `import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
const tools = [{ name: 'print', description: 'Prints a sheet.', inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } }]
createInterface({ input: process.stdin })
  .on('close', () => process.exit(0))
  .on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    const answer = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'initialize') answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'press', version: '1' } })
    else if (method === 'tools/list') answer({ tools })
    else if (method === 'ping') answer({})
    else if (method === 'tools/call') {
      appendFileSync('printed', '#')
      if (existsSync('awake')) answer({ content: [{ type: 'text', text: 'printed ' + readFileSync('printed', 'utf8').length }] })
    } else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown method' } }))
  })
`
