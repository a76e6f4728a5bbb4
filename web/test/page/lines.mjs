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
      await page.locator('.requests .badge.running').waitFor()
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
      await page.waitForSelector('.requests li:first-child .status-icon.done', { state: 'attached' })
      assert.equal(await page.locator('.requests li', { hasText: 'A story that survives' }).count(), 1)
      assert.equal(await page.locator('.line-notice').count(), 0)
    },
  ],
  [
    'eight tabs work: those that are hidden close their line and take it up again',
    async ({ open, scripted }) => {
      const first = await open(scripted)
      const tabs = [first]
      const hide = (page, hidden) =>
        page.evaluate((value) => {
          Object.defineProperty(document, 'hidden', { value, configurable: true })
          document.dispatchEvent(new Event('visibilitychange'))
        }, hidden)
      for (let n = 1; n < 8; n += 1) {
        await hide(tabs.at(-1), true)
        tabs.push(await open(scripted, { context: first.context() }))
        await tabs.at(-1).waitForSelector('.light.live', { state: 'attached' })
      }
      for (const tab of tabs.slice(0, -1)) await tab.waitForSelector('.light.asleep', { state: 'attached' })
      await scripted.ask('/api/submit', { text: 'said while tabs slept' })
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
