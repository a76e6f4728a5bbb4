// How things stand on the page: what is cut, what lies over what, what is not said in the reader's language.

import assert from 'node:assert/strict'

const PHONE = { width: 390, height: 844 }

/** Those of some elements that lie over one another. */
const overlaps = (page, selector) =>
  page.evaluate((wanted) => {
    const boxes = [...document.querySelectorAll(wanted)].map((node) => [node.textContent, node.getBoundingClientRect()]).filter(([, box]) => box.width > 0)
    return boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(([other]) => `${one} over ${other}`))
  }, selector)

/** Whether something is in sight in the box that scrolls it. */
const isInSight = (locator, box) =>
  locator.evaluate((node, selector) => {
    const inner = node.getBoundingClientRect()
    const outer = node.closest(selector).getBoundingClientRect()
    const foot = node.closest(selector).querySelector('.approval-foot')?.getBoundingClientRect().top ?? outer.bottom
    return inner.top >= outer.top && inner.bottom <= Math.min(outer.bottom, foot)
  }, box)

const submit = async (one, body) => (await one.ask('/api/submit', body)).taskId
const ended = async (one, task) => {
  while ((await one.ask(`/api/tasks/${task}`)).status === 'running') await new Promise((resolve) => setTimeout(resolve, 40))
}
const waiting = async (one) => {
  for (let tries = 0; tries < 250; tries += 1) {
    const [first] = (await one.ask('/api/approvals')).approvals
    if (first) return first.id
    await new Promise((resolve) => setTimeout(resolve, 40))
  }
  throw new Error('nothing waits')
}

export const checks = [
  [
    'an older request is brought into sight, and the page around it stays where it is',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const { id: conversation } = await one.ask('/api/conversations', { title: 'Stories' })
        const tasks = []
        for (const text of ['the first story', 'the second story', 'the third story']) {
          tasks.push(await submit(one, { text, conversation, strategy: 'workflow' }))
          await ended(one, tasks.at(-1))
        }
        const page = await open(one, { height: 500, path: `/chat/${conversation}` })
        await page.locator('.message.user', { hasText: 'the third story' }).waitFor()
        for (const line of await page.locator('.column > .timeline > .turn .delegation-line').all().then((all) => all.reverse())) await line.click()
        const wish = page.locator('.message.user', { hasText: 'the second story' })
        await page.evaluate((to) => {
          history.pushState(null, '', to)
          dispatchEvent(new PopStateEvent('popstate'))
        }, `/chat/${conversation}/${tasks[1]}`)
        await page.waitForTimeout(100)
        assert.ok(await isInSight(wish, '.scroller'))
        assert.equal(await page.locator('.frame').evaluate((node) => node.getBoundingClientRect().top), 0)
      } finally {
        await one.end()
      }
    },
  ],
  [
    'in Chinese the vendors, the tools, the decisions and the times are Chinese too',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[tools]\ncommands = true\n' })
      try {
        const page = await open(one, { path: '/settings/models', language: 'zh' })
        await page.locator('.vendors li').first().waitFor()
        for (const words of await page.locator('.vendors .faint').allInnerTexts()) assert.match(words, /\p{Script=Han}/u)
        await page.goto(`${one.address}/settings/tools`)
        await page.locator('tbody tr').first().waitFor()
        for (const words of await page.locator('tbody td:last-child').allInnerTexts()) assert.match(words, /\p{Script=Han}/u)
        const { taskId: task, conversation } = await one.ask('/api/submit', { text: 'run it, please' })
        const id = await waiting(one)
        await page.goto(`${one.address}/inbox`)
        const question = page.locator('.approval-question')
        await question.filter({ hasText: '可以让 root 使用 run_command 吗？' }).waitFor()
        assert.doesNotMatch(await question.innerText(), /May|outside/)
        await page.getByRole('button', { name: /^修改/ }).click()
        for (const hint of await page.locator('.hint').allInnerTexts()) assert.match(hint, /\p{Script=Han}/u)
        await page.getByRole('button', { name: '恢复原样' }).click()
        await page.goto(`${one.address}/chat/${conversation}`)
        assert.match(await page.locator('.card.asked .step-brief').innerText(), /^可以让/)
        await one.ask(`/api/approvals/${id}`, { approved: false })
        await ended(one, task)
        await page.goto(`${one.address}/trace/${task}`)
        await page.locator('.span-row').first().waitFor()
        for (const time of await page.locator('.span-cost').allInnerTexts()) assert.match(time, /^[\d.]+ (毫秒|秒)/)
        await page.goto(`${one.address}/organisation?at=5`)
        await page.locator('.time-word .faint', { hasText: /^\s*\p{Script=Han}+ ·/u }).waitFor()
        await page.setViewportSize({ width: 320, height: 640 })
        const wide = await page.locator('.organisation-main').evaluate((node) => node.scrollWidth - node.clientWidth)
        assert.ok(wide <= 0, `the time line is ${wide} pixels too wide for a phone`)
        await page.goto(`${one.address}/settings/budgets`)
        await page.locator('tbody th', { hasText: '社会' }).waitFor()
        await page.locator('tbody th', { hasText: /智能体 c-\w+/ }).waitFor()
      } finally {
        await one.end()
      }
    },
  ],
  [
    'the organisation says what each is at and what it cost, at any width, now and then',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const org = await one.ask('/api/org')
        await one.ask('/api/org', { ...org, agents: [...org.agents, { ...org.agents[0], id: 'wendy', parentAgentId: 'root' }] })
        const { taskId, conversation } = await one.ask('/api/submit', { text: 'Have the team look' })
        await ended(one, taskId)
        const { events } = await one.ask('/api/log?limit=1000')
        const asked = events.find(({ event }) => event.effectStarted?.effect.model).seq
        const page = await open(one, { path: `/organisation?at=${asked}`, width: 820, height: 1100 })
        assert.match(await page.locator(`#agent-${conversation} .now`).innerText(), /^thinking( with \S+)?$/)
        await page.goto(`${one.address}/organisation`)
        await page.locator('#agent-ben').waitFor()
        assert.ok(await page.locator('#agent-ada .spent').isVisible())
        const edges = await page.locator('.tree-row .badge').evaluateAll((all) => all.map((node) => Math.round(node.getBoundingClientRect().left)))
        assert.equal(new Set(edges).size, 1, 'they stand in one column')
        await page.goto(`${one.address}/organisation?as=graph`)
        await page.locator('.graph-agent', { hasText: 'ada' }).filter({ hasText: /tok · \$/ }).waitFor()

        const phone = await open(one, { ...PHONE, path: '/organisation?as=graph' })
        await phone.locator('.graph-agent', { hasText: 'wendy' }).waitFor()
        const box = await phone.locator('.graph').evaluate((node) => node.scrollWidth - node.clientWidth)
        assert.ok(box <= 0, `two agents side by side are ${box} pixels too wide for a phone`)
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a trace can be read at any width: no mark over another, models by name, todos by title',
    async ({ open, scripted }) => {
      const task = await submit(scripted, { text: 'Compare **all** the files', strategy: 'workflow' })
      await ended(scripted, task)
      for (const [width, height] of [[1280, 860], [820, 1100], [390, 844]]) {
        const page = await open(scripted, { path: `/trace/${task}`, width, height })
        await page.locator('.span-row.model').first().waitFor()
        assert.deepEqual(await overlaps(page, '.ruler-marks span'), [], `${width}`)
        assert.deepEqual(await page.locator('.span-row.model .span-text').first().innerText(), 'scripted')
        assert.equal(await page.locator('h1').innerText(), 'Compare all the files')
        await page.locator('.span-row', { hasText: 'Read the notes' }).first().waitFor()
        const [bar] = await page.locator('.span-row.turn .bar').evaluateAll((all) => all.map((node) => node.getBoundingClientRect().width))
        assert.ok(bar > 20, 'the turn has a bar')
        await page.locator('.span-row.model').first().click()
        await page.locator('.inspector h2', { hasText: 'Model' }).waitFor()
        assert.deepEqual(await overlaps(page, '.ruler-marks span'), [], `${width} with the inspector`)
        await page.goto(`${scripted.address}/trace`)
        await page.locator('.sheet-table').first().waitFor()
        const wide = await page.evaluate(() => Math.max(...[...document.querySelectorAll('.sheet-table')].map((table) => table.getBoundingClientRect().right - table.closest('.view').getBoundingClientRect().right)))
        assert.ok(wide <= 0, `the table is ${wide} pixels too wide at ${width}`)
      }
    },
  ],
  [
    'a phone shows how the line stands and what was spent, every tab, and whole names',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[budget]\nusd = 5.0\ntokens = 2_000_000\n\n[budget.task]\ntokens = 400_000\n' })
      try {
        await ended(one, await submit(one, { text: 'hello there' }))
        await submit(one, { text: 'ask me **before** you go on' })
        await waiting(one)
        await one.ask('/api/fork', { at: 4, name: 'a-branch-with-a-name' })
        const page = await open(one, { ...PHONE, path: '/settings/page' })
        assert.ok(await page.locator('.light').isVisible())
        assert.match(await page.locator('.totals').innerText(), /2,040 tok\s+\$0/)
        const cut = await page.locator('.rail-text').evaluateAll((all) => all.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.textContent))
        assert.deepEqual(cut, [])
        const name = page.locator('fieldset .name', { hasText: 'a-branch-with-a-name' })
        await name.waitFor()
        assert.equal(await name.evaluate((node) => node.getClientRects().length), 1, 'a name is on one line')
        for (const tab of ['Models', 'Connect', 'This page']) {
          const link = page.locator('.sections').getByRole('link', { name: tab })
          await link.click()
          assert.ok(await link.evaluate((node) => node.getBoundingClientRect().right <= innerWidth), `${tab} is in sight`)
        }
        const rows = await page.locator('.sections a').evaluateAll((all) => new Set(all.map((node) => node.offsetTop)).size)
        assert.equal(rows, 1, 'the tabs are one line')
        await page.locator('.sections').getByRole('link', { name: 'Tools' }).click()
        await page.locator('tbody tr').first().waitFor()
        await page.locator('.settings').evaluate((node) => node.scrollTo(0, 9999))
        await page.locator('.sections').getByRole('link', { name: 'Connect' }).evaluate((node) => node.click())
        await page.locator('.snippet', { hasText: 'curl' }).first().waitFor()
        assert.equal(await page.locator('.settings').evaluate((node) => node.scrollTop), 0, 'another part is read from its beginning')
        await page.locator('.sections').getByRole('link', { name: 'Budgets' }).click()
        await page.locator('tbody tr', { hasText: 'society' }).waitFor()
        const box = await page.locator('.table-box').evaluate((node) => node.scrollWidth - node.clientWidth)
        assert.ok(box <= 0, `the budgets are ${box} pixels too wide`)
        await page.locator('tbody th', { hasText: 'ask me before you go on' }).waitFor()
        await one.kill()
        await page.locator('.light.lost').waitFor()
        assert.ok(await page.locator('.light.lost').isVisible())
        assert.equal(await page.locator('.line-notice').isVisible(), false, 'it is said once, and over nothing')
      } finally {
        await one.end()
      }
    },
  ],
  [
    'an edit shows first what it changes, and its keys are off while somebody writes',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model, settings: '[[policy]]\ntool = "write_file"\nthen = "ask"\n' })
      try {
        const { conversation } = await one.ask('/api/submit', { text: 'Please **write** a report' })
        const id = await waiting(one)
        for (const size of [{}, PHONE]) {
          const page = await open(one, { ...size, path: `/chat/${conversation}` })
          const card = page.locator('.approval-bar .approval')
          await card.getByRole('button', { name: /^Edit/ }).click()
          await card.getByLabel('content').fill('# Report\n\nTea sells best in Lyon.\n')
          const changed = card.locator('.difference .new')
          await changed.first().waitFor()
          assert.deepEqual((await changed.allInnerTexts()).map((line) => line.trim()), ['+     Tea sells best in Lyon.\\n'], 'only the line that was changed')
          await card.evaluate((node) => node.scrollTo(0, 0))
          assert.ok(await isInSight(changed.first(), '.approval'), 'it is in sight')
          assert.equal(await card.getByRole('button', { name: 'Approve as edited' }).locator('kbd').count(), 0)
          await page.locator('.scroller').focus()
          await page.keyboard.press('a')
          assert.equal(await waiting(one), id, 'nothing was approved')
          assert.equal(await page.locator('.approval-for').innerText(), 'Please write a report')
          if (!size.width) assert.equal(await page.locator('.entry-title').first().innerText(), 'Please write a report')
        }
      } finally {
        await one.end()
      }
    },
  ],
  [
    'work beside the conversation says whose it is, and a call is told in words',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      const { taskId, conversation } = await one.ask('/api/submit', { text: 'Have a new team look' })
      await ended(one, taskId)
      const page = await open(one, { path: `/chat/${conversation}` })
      await page.setViewportSize({ width: 1280, height: 420 })
      const line = page.locator('.column > .timeline > .turn').last().locator('.delegation-line').first()
      await line.click()
      await page.locator('.below').first().waitFor()
      await page.getByRole('button', { name: 'Latest' }).waitFor()
      assert.ok(await isInSight(line, '.scroller'), 'what is opened stays in sight')
      await page.setViewportSize({ width: 1280, height: 860 })
      await line.focus()
      await page.keyboard.press('Shift+Enter')
      const drawer = page.locator('.drawer')
      await drawer.locator('.path-crumbs').waitFor()
      assert.deepEqual(await drawer.locator('.path').innerText(), 'root\nada')
      const asked = drawer.locator('.card', { hasText: 'request_collaboration' }).locator('.step-brief')
      assert.equal(await asked.innerText(), 'ben · List the files of the workspace.')
      await drawer.locator('.delegation-line', { hasText: 'ben' }).click()
      assert.deepEqual(await drawer.locator('.below .path-crumbs li').allInnerTexts(), ['root', 'ada', 'ben'])
      await one.end()
    },
  ],
  [
    'the pieces of an answer stand apart, links have the colour of the page, numbers stand below one another',
    async ({ open, scripted }) => {
      const kept = await fetch(`${scripted.address}/api/artifacts?name=page.html`, { method: 'POST', headers: { authorization: `Bearer ${scripted.token}`, 'content-type': 'text/html' }, body: '<p>hello</p>' }).then((response) => response.json())
      const { taskId, conversation } = await scripted.ask('/api/submit', { text: 'in pieces, please', artifacts: [{ id: kept.id, name: kept.name, mediaType: kept.mediaType }] })
      await ended(scripted, taskId)
      const page = await open(scripted, { path: `/chat/${conversation}` })
      const pieces = page.locator('.tool-result').last()
      await pieces.locator('.component-card').waitFor()
      await page.waitForFunction(() => document.querySelector('.tool-result .html')?.shadowRoot?.querySelector('a'))
      const gaps = await pieces.evaluate((node) => {
        const boxes = [...node.children].map((child) => child.getBoundingClientRect())
        return boxes.slice(1).map((box, place) => box.top - boxes[place].bottom)
      })
      assert.ok(gaps.length === 3 && gaps.every((gap) => gap >= 8 && gap <= 20), gaps.join(' '))
      const colours = await pieces.locator('.html').evaluate((host) => [getComputedStyle(host.shadowRoot.querySelector('a')).color, getComputedStyle(document.querySelector('.message.bot .prose a')).color])
      assert.equal(colours[0], colours[1])
      assert.deepEqual(await pieces.locator('.html').evaluate((host) => [...host.shadowRoot.querySelectorAll('td, a')].map((node) => node.getAttributeNames().sort().join(' '))), ['colspan', 'href rel target title', ''])
      assert.equal(await pieces.locator('ol').getAttribute('start'), '3')
      assert.equal(await pieces.locator('.prose td').first().evaluate((cell) => getComputedStyle(cell).textAlign), 'left')
      assert.equal(await pieces.locator('.prose td').last().evaluate((cell) => getComputedStyle(cell).textAlign), 'right')
      assert.equal(await pieces.locator('.badge').innerText(), 'done')
      const file = page.locator('.message.user .files li').last()
      const [chip, show] = await file.locator(':scope > *').evaluateAll((all) => all.map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right]))
      assert.ok(show[0] - chip[1] >= 4, 'what shows a file stands apart from it')
    },
  ],
  [
    'a question to the person is Markdown, and a society in the past is played with a triangle',
    async ({ open, scripted }) => {
      await submit(scripted, { text: 'ask me in **bold**' })
      const page = await open(scripted, { path: '/inbox' })
      assert.equal(await page.locator('.approval-question strong').first().innerText(), 'city')
      for (const one of (await scripted.ask('/api/approvals')).approvals) await scripted.ask(`/api/approvals/${one.id}`, { approved: false })
      await page.goto(`${scripted.address}/organisation`)
      const [play, twist] = await Promise.all([page.getByRole('button', { name: 'Play' }), page.locator('.twist').first()].map((one) => one.evaluate((node) => node.innerHTML)))
      assert.notEqual(play.replace(/(width|height)="\d+"/g, ''), twist.replace(/(width|height)="\d+"/g, ''))
    },
  ],
]
