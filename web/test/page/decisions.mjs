// What waits for a person, and what comes of the decision.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const checks = [
  [
    'a call that needs a word waits in reach, survives a reload, and is made as it was edited',
    async ({ open, scripted }) => {
      await scripted.ask('/api/submit', { text: 'Please write a report' })
      const page = await open(scripted)
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
    'a call is denied with a reason, by keyboard alone, and the reason is kept',
    async ({ open, scripted }) => {
      const { taskId } = await scripted.ask('/api/submit', { text: 'Please write a second report' })
      const page = await open(scripted)
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
      await scripted.ask('/api/submit', { text: 'write number four' })
      await page.goto(`${scripted.address}/chat`)
      await page.locator('.message.user', { hasText: 'write number four' }).waitFor()
      await page.waitForSelector('.requests li:first-child .status-icon.done', { state: 'attached' })
      assert.equal(await page.locator('.approval-bar').count(), 0, 'nobody is asked again')
      assert.ok(existsSync(join(scripted.folder, 'report.md')))
      await page.goto(`${scripted.address}/settings/tools`)
      await page.locator('.allowed', { hasText: 'write_file' }).waitFor()
    },
  ],
  [
    'a question to the person is answered with one of its options',
    async ({ open, scripted }) => {
      await scripted.ask('/api/submit', { text: 'ask me something' })
      const page = await open(scripted)
      const bar = page.locator('.approval-bar')
      await bar.getByText('Which city do you mean?').waitFor()
      await bar.getByRole('button', { name: 'Berlin' }).click()
      await page.locator('.message.bot', { hasText: 'Berlin' }).last().waitFor()
    },
  ],
  [
    'a plan that waits for a word can be put in another order, changed, shortened and added to',
    async ({ scripted, browser, own }) => {
      // The program asks about plans only where it is told to, so the log is written here.
      const todos = [1, 2, 3].map((n) => ({ id: `task-${n}`, title: `Thing ${n}`, description: `Thing ${n}`, priority: n, dependencies: n === 3 ? ['task-2'] : [], status: 'pending' }))
      const letter = { id: 'm1', from: 'user', to: 'root', taskId: 't1', kind: 'message', payload: { text: 'three things' }, replyTo: 'user' }
      const task = { id: 't1', name: 'message', type: 'message', message: 'three things' }
      const events = [
        { societyFounded: { seed: 'a', limits: {} } },
        { agentSpawned: { agent: 'root', role: 'root' } },
        { letterSent: { letter } },
        { turnStarted: { agent: 'root', behaviour: 'converse', phase: 'initial_phase', task, origin: 'inbox', replyTo: 'user', message: 'm1', index: 0 } },
        { effectStarted: { id: '4.0', effect: { approval: { question: 'May this plan be done?', details: { todos } } } } },
      ].map((event, place) => ({ seq: place + 1, at: 1, thread: 'root', event }))
      const context = own(await browser.newContext())
      await context.route('**/api/log?*', (route) => {
        const query = new URL(route.request().url()).searchParams
        route.fulfill({ json: { events: events.slice(Number(query.get('after')), Number(query.get('after')) + Number(query.get('limit'))), last: events.length } })
      })
      await context.route('**/api/events?*', (route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing\n\n' }))
      let said
      await context.route('**/api/approvals/4.0', (route) => {
        said = route.request().postDataJSON()
        route.fulfill({ json: { id: '4.0' } })
      })
      const page = await context.newPage()
      await page.goto(`${scripted.address}/inbox#token=${scripted.token}`)
      const plan = page.locator('.plan-editor')
      await plan.getByRole('button', { name: 'Leave out todo 2' }).click()
      await plan.getByRole('button', { name: 'Move todo 2 up' }).click()
      await plan.getByRole('textbox', { name: 'Todo 2' }).fill('Thing one, carefully')
      await plan.getByRole('button', { name: 'Add a todo' }).click()
      await plan.getByRole('textbox', { name: 'Todo 3' }).fill('Say thanks')
      await page.getByRole('button', { name: 'Approve as edited' }).click()
      await page.locator('[role=status]', { hasText: 'recorded' }).waitFor({ state: 'attached' })
      assert.equal(said.approved, true)
      assert.deepEqual(said.arguments.todos.map((todo) => [todo.id, todo.title, todo.dependencies]), [['task-3', 'Thing 3', []], ['task-1', 'Thing one, carefully', []], ['task-4', 'Say thanks', []]])
    },
  ],
]
