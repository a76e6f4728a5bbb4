// The society as a whole: who is there, what was, and what was done for a request.

import assert from 'node:assert/strict'
import { AXE, violations } from './everywhere.mjs'

/** A society with as many agents below root, in three levels. */
async function crowd(one, n) {
  const org = await one.ask('/api/org')
  const [root] = org.agents
  const role = { ...org.roles[0], id: 'worker', name: 'Worker' }
  const lead = (place) => `lead-${Math.floor(place / 30)}`
  const agents = []
  for (let place = 0; place < n; place += 1) {
    if (place % 30 === 0) agents.push({ ...root, id: lead(place), roleId: 'worker', parentAgentId: 'root' })
    else agents.push({ ...root, id: `worker-${place}`, roleId: 'worker', parentAgentId: lead(place) })
  }
  return one.ask('/api/org', { ...org, roles: [...org.roles, role], agents: [...org.agents, ...agents] })
}

export const checks = [
  [
    'the request of every call in a workflow can be read: the system prompt and the messages',
    async ({ open, scripted }) => {
      const { taskId } = await scripted.ask('/api/submit', { text: 'Compare for the inspector', strategy: 'workflow' })
      const page = await open(scripted, { path: `/trace/${taskId}` })
      await page.locator('.view-head .badge.done').waitFor()
      const calls = page.locator('.span-row.model')
      const inspector = page.locator('.inspector')
      await calls.first().click()
      await inspector.locator('pre', { hasText: '# Planner' }).waitFor()
      await inspector.locator('.said-list li', { hasText: 'Compare for the inspector' }).first().waitFor()
      await page.locator('.span-row', { hasText: 'verifier' }).last().waitFor()
      await calls.last().click()
      await inspector.locator('pre', { hasText: '# Verifier' }).waitFor()
      const executor = calls.nth(2)
      await executor.click()
      await inspector.locator('pre', { hasText: '# Executor' }).waitFor()
      await inspector.locator('.said-list li', { hasText: 'sales.csv' }).first().waitFor()
    },
  ],
  [
    'the tree shows who made whom and what each is at, and is walked by keyboard',
    async ({ open, scripted }) => {
      const { conversation } = await scripted.ask('/api/submit', { text: 'found a team for the files' })
      const page = await open(scripted, { path: '/organisation' })
      const row = (name) => page.locator(`#agent-${name}`)
      await row('ben').waitFor()
      assert.deepEqual(await Promise.all([conversation, 'ada', 'ben'].map((name) => row(name).getAttribute('aria-level'))), ['1', '2', '3'])
      await page.locator('[role=tree]').focus()
      await row(conversation).click()
      await page.locator('[role=tree]').focus()
      await page.keyboard.press('ArrowLeft')
      await row('ada').waitFor({ state: 'detached' })
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.locator('.agent-page h1', { hasText: 'ada' }).waitFor()
      assert.match(page.url(), /\/organisation\/ada$/)
      await page.locator('.agent-page', { hasText: 'RESEARCHER: you find things out.' }).waitFor()
      await page.locator('.agent-page .turn-list li').first().waitFor()
      await page.locator('.agent-page .chips', { hasText: 'read_file' }).waitFor()
      await page.locator('.agent-page .facts', { hasText: 'openai-compatible/scripted' }).waitFor()
      await page.locator('.agent-page', { hasText: 'Its last request had' }).waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'the slider shows the society as it was, and forks it there',
    async ({ open, scripted }) => {
      const page = await open(scripted, { path: '/organisation' })
      await page.locator('#agent-ben').waitFor()
      await page.goto(`${scripted.address}/organisation?at=4`)
      await page.locator('#agent-root').waitFor()
      assert.equal(await page.locator('#agent-ada').count(), 0, 'she was not there yet')
      await page.getByRole('button', { name: 'Fork from here' }).click()
      const open_ = page.getByRole('button', { name: /^Open / })
      await open_.click()
      await page.waitForURL(/\/s\/[^/]+\/chat/)
      await page.waitForSelector('.light.live', { state: 'attached' })
      await page.goto(page.url().replace('/chat', '/organisation'))
      await page.locator('#agent-root').waitFor()
      assert.equal(await page.locator('#agent-ada').count(), 0, 'nor is she in the fork')
    },
  ],
  [
    'an agent is let go from its page, and the graph no longer has it',
    async ({ open, scripted }) => {
      const page = await open(scripted, { path: '/organisation/ben?as=graph' })
      await page.locator('.graph-agent', { hasText: 'ben' }).waitFor()
      await page.getByRole('button', { name: 'Terminate' }).click()
      await page.getByLabel('Why').fill('the files are read')
      await page.keyboard.press('Enter')
      await page.locator('.graph-agent', { hasText: 'ben' }).waitFor({ state: 'detached' })
      await page.locator('.agent-page', { hasText: 'the files are read' }).waitFor()
    },
  ],
  [
    'a thousand agents are drawn as far as they are in sight, also while they are scrolled through',
    async ({ open, society, program }) => {
      const one = await society({ program })
      try {
        assert.equal((await crowd(one, 990)).agents, 990)
        const page = await open(one, { path: '/organisation' })
        await page.locator('#agent-worker-1').waitFor()
        assert.ok((await page.locator('.tree-row').count()) < 80)
        const most = await page.evaluate(async () => {
          const box = document.querySelector('.tree')
          let rows = 0
          for (let step = 0; step < 60; step += 1) {
            box.scrollTop += 600
            await new Promise((resolve) => requestAnimationFrame(resolve))
            rows = Math.max(rows, document.querySelectorAll('.tree-row').length)
          }
          return rows
        })
        assert.ok(most < 80, `${most} rows are drawn while it scrolls`)
        await page.goto(`${one.address}/organisation?as=graph`)
        const boxes = page.locator('.graph-agent')
        const group = (name) => page.locator('.graph-group', { hasText: name })
        await group('Worker × 33').getByText('957 more below them').waitFor()
        assert.equal(await boxes.count(), 2, 'root, and the leads as one group')
        await page.locator('.graph').focus()
        await group('Worker × 33').click()
        await group('Worker × 29').first().waitFor()
        assert.ok((await boxes.count()) < 120, 'only what is in sight is drawn')
        const inSight = (name) => page.locator('.graph-agent', { hasText: name }).evaluate((node) => {
          const [box, here] = [document.querySelector('.graph').getBoundingClientRect(), node.getBoundingClientRect()]
          return here.left >= box.left && here.right <= box.right && here.top >= box.top && here.bottom <= box.bottom
        })
        assert.ok(await inSight('root'), 'root stays in sight when others come')
        const scale = () => page.locator('.graph-sheet').evaluate((node) => Number(node.style.zoom))
        const before = await scale()
        await page.locator('.graph').focus()
        await page.keyboard.press('+')
        await page.waitForFunction((before) => Number(document.querySelector('.graph-sheet').style.zoom) > before, before)
        const box = await page.locator('.graph').boundingBox()
        await page.mouse.move(box.x + 300, box.y + 20)
        const left = () => page.locator('.graph').evaluate((node) => node.scrollLeft)
        const from = await left()
        await page.mouse.down()
        await page.mouse.move(box.x + 100, box.y + 20, { steps: 4 })
        await page.mouse.up()
        assert.equal((await left()) - from, 200, 'it is dragged')
        const near = await scale()
        await page.keyboard.down('Control')
        await page.mouse.wheel(0, 400)
        await page.keyboard.up('Control')
        await page.waitForFunction((near) => Number(document.querySelector('.graph-sheet').style.zoom) < near, near)
        await page.getByRole('button', { name: 'Show everything' }).click()
        await page.waitForFunction(() => {
          const graph = document.querySelector('.graph')
          return graph.scrollWidth <= graph.clientWidth + 1
        })
        await page.getByRole('button', { name: 'Find an agent' }).click()
        await page.keyboard.type('worker-98')
        await page.getByRole('option', { name: 'worker-987' }).waitFor()
        await page.keyboard.type('7')
        await page.keyboard.press('Enter')
        await page.waitForURL(/\/organisation\/worker-987\?as=graph/)
        await page.locator('.graph-agent[aria-pressed=true]', { hasText: 'worker-987' }).waitFor()
        assert.ok((await scale()) >= 0.6 && (await inSight('worker-987')), 'what was found can be read')
        await page.reload()
        await page.locator('.graph-agent[aria-pressed=true]', { hasText: 'worker-987' }).waitFor()
        for (const width of [390, 820]) {
          const narrow = await open(one, { path: '/organisation?as=graph', width, theme: width < 400 ? 'dark' : 'light' })
          await narrow.locator('.graph-group').waitFor()
          const { x, width: wide } = await narrow.locator('.graph-agent', { hasText: 'root' }).first().boundingBox()
          assert.ok(x >= 0 && x + wide <= width, `root is in sight at ${width} px`)
          await narrow.locator('.graph-group').click()
          await narrow.locator('.graph-group').nth(1).waitFor()
          await narrow.evaluate(AXE)
          assert.deepEqual(await violations(narrow), [])
        }
        // Whom a message goes to is found among all, also those that the conversation has not read.
        const chat = await open(one, { path: '/chat/root' })
        await chat.locator('.pick-agent').click()
        await chat.keyboard.type('worker-9')
        await chat.locator('.palette-rest').waitFor()
        await chat.evaluate(AXE)
        assert.deepEqual(await violations(chat), [])
        await chat.keyboard.type('87')
        await chat.getByRole('option', { name: 'worker-987' }).waitFor()
        await chat.keyboard.press('Enter')
        await chat.waitForURL(/\/chat\/worker-987/)
        assert.deepEqual([...page.trouble, ...chat.trouble], [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a message lights its way for a time, however much happens meanwhile',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const ended = async (task) => {
          while ((await one.ask(`/api/tasks/${task}`)).status === 'running') await new Promise((resolve) => setTimeout(resolve, 40))
        }
        const { conversation, taskId } = await one.ask('/api/submit', { text: 'found a team for the lights' })
        await ended(taskId)
        const page = await open(one, { path: '/organisation?as=graph' })
        await page.locator('.graph-agent', { hasText: 'ada' }).waitFor()
        await page.clock.install()
        await page.clock.pauseAt(Date.now() + 60_000)
        const lit = page.locator('.envelope')
        assert.equal(await lit.count(), 0, 'what was sent before is not lit')
        const { last } = await one.ask('/api/log?after=0&limit=1')
        const { taskId: next } = await one.ask('/api/submit', { text: 'Have the team look for lights', conversation })
        await ended(next)
        for (let n = 0; n < 30; n += 1) await one.ask('/api/conversations', { title: `Event ${n}` })
        // Time stands still in the page until it has read everything.
        const { last: now } = await one.ask('/api/log?after=0&limit=1')
        assert.ok(now > last + 40)
        for (let n = 0; n < 200 && !(await page.getByText(`Now, after ${now} events`).count()); n += 1) await page.clock.runFor(5)
        assert.ok((await lit.count()) > 0, 'it is lit')
        assert.ok((await page.locator('.graph-agent.lit').count()) >= 2, 'and so are those at its ends')
        await page.clock.runFor(5000)
        assert.equal(await lit.count(), 0, 'it has gone out, with nothing new in the log')
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'the rows of a trace are aligned, and the totals of a workflow name its roles',
    async ({ open, scripted }) => {
      const { taskId } = await scripted.ask('/api/submit', { text: 'Compare the files with the notes, word by word, and say at length what differs', strategy: 'workflow' })
      const page = await open(scripted, { path: `/trace/${taskId}` })
      await page.locator('.view-head .badge.done').waitFor()
      await page.locator('.span-row', { hasText: 'verifier' }).last().waitFor()
      for (const width of [1440, 820]) {
        await page.setViewportSize({ width, height: 900 })
        const places = await page.locator('.span-row').evaluateAll((rows) => rows.map((row) => [row.ariaLevel, row.querySelector('.span-name > .icon').getBoundingClientRect().x]))
        assert.ok(places.length > 8)
        for (const [level, x] of places) assert.ok(Math.abs(x - places.find((other) => other[0] === level)[1]) < 0.5, JSON.stringify(places))
      }
      for (const role of ['planner', 'executor', 'verifier']) await page.locator('.totals-sheet tbody td', { hasText: `› ${role}` }).first().waitFor()
    },
  ],
  [
    'a trace has every call with what it took, and shows what was asked and answered',
    async ({ open, scripted }) => {
      const { taskId } = await scripted.ask('/api/submit', { text: 'found another team for the files' })
      const page = await open(scripted, { path: '/trace' })
      await page.locator('tr', { hasText: 'found another team' }).locator('.badge.done').waitFor()
      await page.getByRole('link', { name: 'found another team for the files' }).click()
      assert.ok(page.url().endsWith(`/trace/${taskId}`))
      await page.locator('.span-row.tool', { hasText: 'create_role' }).first().click()
      await page.locator('.inspector', { hasText: 'RESEARCHER: you find things out.' }).waitFor()
      await page.locator('.span-row.model').first().click()
      await page.locator('.inspector', { hasText: 'This needs a colleague.' }).waitFor()
      const inspector = page.locator('.inspector')
      await inspector.locator('.said-list li', { hasText: 'found another team for the files' }).waitFor()
      await inspector.getByText('Put together from the log').waitFor()
      await page.locator('.span-row.model').nth(1).click()
      await inspector.locator('.said-list li', { hasText: 'create_role {' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByPlaceholder('Search spans').fill('create_role')
      await page.locator('.span-row.model').first().waitFor({ state: 'detached' })
      assert.ok((await page.locator('.totals-sheet tbody tr').count()) > 0)
    },
  ],
]
