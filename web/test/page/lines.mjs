// The line to the server: reloads, a server that is killed, and many tabs.

import assert from 'node:assert/strict'

export const checks = [
  [
    'a reload in mid-run goes on where it was, and nothing stands there twice',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 300
      await page.fill('#composer', 'One more story')
      await page.press('#composer', 'Enter')
      await page.waitForSelector('.reasoning.live')
      await page.reload()
      await page.waitForSelector('.light.live', { state: 'attached' })
      await page.locator('.conversations .badge.running').waitFor()
      model.pace = 1
      await page.locator('.message.bot', { hasText: 'Nobody missed the smell' }).last().waitFor()
      const task = page.url().split('/').at(-1)
      const asked = page.locator(`[id="request-${task}"]`)
      assert.equal(await asked.count(), 1)
    },
  ],
  [
    'a server that is killed and started again is noticed, and the work goes on',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 300
      await page.fill('#composer', 'A story that survives')
      await page.press('#composer', 'Enter')
      await page.waitForSelector('.reasoning.live')
      await scripted.kill()
      await page.locator('.line-notice').waitFor()
      await page.fill('#composer', 'meanwhile')
      await page.press('#composer', 'Enter')
      await page.locator('.composer-trouble').waitFor()
      assert.equal(await page.inputValue('#composer'), 'meanwhile', 'nothing that was written is lost')
      model.pace = 1
      await scripted.start()
      await page.waitForSelector('.light.live', { state: 'attached' })
      await page.waitForSelector('.conversations li:first-child .status-icon.idle', { state: 'attached' })
      assert.equal(await page.locator('.conversations li', { hasText: 'A story that survives' }).count(), 1)
      assert.equal(await page.locator('.line-notice').count(), 0)
    },
  ],
  [
    'the half of a reply that a crash has cut, or that a tab has slept through, does not stand there twice',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      const hide = (page, hidden) =>
        page.evaluate((value) => {
          Object.defineProperty(document, 'hidden', { value, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
        }, hidden)
      try {
        const page = await open(one)
        const said = page.locator('.said').last()
        const twice = async () => ((await said.innerText()).match(/\bword1\b/g) ?? []).length
        model.pace = 60
        await page.fill('#composer', 'A long reading')
        await page.press('#composer', 'Enter')
        await said.filter({ hasText: 'word12' }).waitFor()
        await hide(page, true)
        await page.waitForSelector('.light.asleep', { state: 'attached' })
        await hide(page, false)
        await page.waitForSelector('.light.live', { state: 'attached' })
        await said.filter({ hasText: 'word30' }).waitFor()
        assert.equal(await twice(), 1, 'after a sleep')
        await one.kill()
        await page.locator('.line-notice').waitFor()
        await one.start()
        await page.waitForSelector('.light.live', { state: 'attached' })
        await page.waitForFunction(() => !document.querySelector('.said')?.textContent?.includes('word30'))
        await said.filter({ hasText: 'word6' }).waitFor()
        assert.equal(await twice(), 1, 'after a crash')
        model.pace = 1
        await page.locator('.column > .timeline > .message.bot', { hasText: 'word599' }).waitFor()
      } finally {
        await one.end()
      }
    },
  ],
  [
    'eight windows side by side work: one has the line, and the others hear of it',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const { id: conversation } = await one.ask('/api/conversations', { title: 'Eight windows' })
        const path = `/chat/${conversation}`
        const first = await open(one, { path })
        const windows = [first]
        for (let n = 1; n < 8; n += 1) windows.push(await open(one, { path, context: first.context() }))
        for (const page of windows) await page.waitForSelector('.light.live', { state: 'attached' })
        model.pace = 20
        await one.ask('/api/submit', { text: 'A long reading', conversation })
        for (const page of windows) await page.locator('.said', { hasText: 'word9' }).waitFor()
        // Whoever comes late sees the beginning too, and when the one with the line goes another takes it.
        await windows.shift().close()
        const late = await open(one, { path, context: windows[0].context() })
        windows.push(late)
        await late.locator('.said', { hasText: 'word0 word1' }).waitFor()
        model.pace = 1
        for (const page of windows) {
          await page.locator('.column > .timeline > .message.bot', { hasText: 'word599' }).waitFor()
          assert.equal((await page.locator('.column > .timeline > .message.bot').last().innerText()).match(/\bword1\b/g).length, 1)
          assert.deepEqual(page.trouble, [])
        }
        await one.kill()
        for (const page of windows) await page.locator('.line-notice').waitFor()
        await one.start()
        await one.ask('/api/submit', { text: 'after the crash', conversation })
        for (const page of windows) await page.locator('.message.bot', { hasText: 'You said: after the crash' }).waitFor()
      } finally {
        await one.end()
      }
    },
  ],
  [
    'eight tabs work: those that are hidden close their line and take it up again',
    async ({ open, scripted }) => {
      const { id: conversation } = await scripted.ask('/api/conversations', { title: 'Eight tabs' })
      const path = `/chat/${conversation}`
      const first = await open(scripted, { path })
      const tabs = [first]
      const hide = (page, hidden) =>
        page.evaluate((value) => {
          Object.defineProperty(document, 'hidden', { value, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
        }, hidden)
      for (let n = 1; n < 8; n += 1) {
        await hide(tabs.at(-1), true)
        tabs.push(await open(scripted, { path, context: first.context() }))
        await tabs.at(-1).waitForSelector('.light.live', { state: 'attached' })
      }
      for (const tab of tabs.slice(0, -1)) await tab.waitForSelector('.light.asleep', { state: 'attached' })
      await scripted.ask('/api/submit', { text: 'said while tabs slept', conversation })
      await hide(first, false)
      await first.locator('.message.bot', { hasText: 'said while tabs slept' }).waitFor()
      assert.equal(await first.locator('.message.user', { hasText: 'said while tabs slept' }).count(), 1)
    },
  ],
  [
    'whoever has no token is asked for it, and told when it is wrong',
    async ({ own, scripted, browser }) => {
      const page = await own(await browser.newContext()).newPage()
      await page.goto(scripted.address)
      await page.getByRole('heading', { name: /token/ }).waitFor()
      await page.fill('.door input', 'wrong-wrong-wrong-wrong-wrong-wrong')
      await page.click('.door button')
      await page.locator('.door [role=alert]').waitFor()
      await page.fill('.door input', scripted.token)
      await page.click('.door button')
      await page.waitForSelector('.light.live', { state: 'attached' })
      assert.ok(!page.url().includes('token'))
      const tab = await page.context().newPage()
      await tab.goto(`${scripted.address}/settings/look`)
      await tab.waitForSelector('.light.live', { state: 'attached' })
    },
  ],
  [
    'the address that the start prints opens the page, and the token is nowhere in it',
    async ({ own, scripted, browser }) => {
      const page = await own(await browser.newContext()).newPage()
      await page.goto(`${scripted.address}/?token=${scripted.token}`)
      await page.waitForSelector('.light.live', { state: 'attached' })
      assert.ok(!page.url().includes('token'))
      assert.ok(!JSON.stringify(await page.evaluate(() => ({ ...sessionStorage, ...localStorage, cookie: document.cookie }))).includes(scripted.token))
      await page.goto(`${scripted.address}/settings/models`)
      await page.locator('.vendors li').first().waitFor()
      const deep = await own(await browser.newContext()).newPage()
      await deep.goto(`${scripted.address}/settings/models?token=${scripted.token}`)
      await deep.locator('.vendors li').first().waitFor()
      assert.ok(!deep.url().includes('token'), deep.url())
    },
  ],
  [
    'two hundred pieces a second leave the browser time to spare, and are drawn with the frames',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      const session = await page.context().newCDPSession(page)
      // The time of the thread itself: a busy machine does not change it.
      await session.send('Performance.enable', { timeDomain: 'threadTicks' })
      const spent = async () => (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value * 1000
      model.pace = 5
      model.pieces = 0
      await page.fill('#composer', 'A long reading')
      const before = await spent()
      await page.press('#composer', 'Enter')
      await page.waitForSelector('.said .prose.growing')
      await page.locator('.column > .timeline > .message.bot', { hasText: 'word599' }).waitFor()
      const each = ((await spent()) - before) / model.pieces
      assert.ok(model.pieces >= 600, `${model.pieces} pieces`)
      assert.ok(each < 5, `${each.toFixed(2)} ms of the browser's time for each piece`)
      if (process.env.SHOTS) console.log(`${each.toFixed(2)} ms of the browser's time for each of ${model.pieces} pieces`)
    },
  ],
]
