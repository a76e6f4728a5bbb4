// The society as a whole: who is there, what was, and what was done for a request.

import assert from 'node:assert/strict'

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
        await page.locator('.graph-agent').first().waitFor()
        assert.ok((await page.locator('.graph-agent').count()) < 120)
      } finally {
        await one.end()
      }
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
