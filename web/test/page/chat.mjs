// What a person does in a conversation.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RUST } from './model.mjs'

const write = async (page, text) => {
  await page.fill('#composer', text)
  await page.press('#composer', 'Enter')
}
const lastAnswer = (page) => page.locator('.column > .timeline > .message.bot').last()

export const checks = [
  [
    'the first page offers three requests, and each works with one click and without a key',
    async ({ open, offline }) => {
      const page = await open(offline)
      for (const [name, expected] of [['How many files', /3 files|files/], ['15% of 240', /36/], ['Tokyo', /Tokyo/]]) {
        const before = await page.locator('.column > .timeline > .message.user').count()
        await page.getByRole('button', { name: new RegExp(name) }).first().click()
        await page.waitForFunction((count) => document.querySelectorAll('.column > .timeline > .message.user').length > count, before)
        await page.waitForSelector('.conversations li:first-child .status-icon.idle', { state: 'attached' })
        await lastAnswer(page).filter({ hasText: expected }).waitFor()
      }
      assert.equal(await page.locator('.example').count(), 0, 'none is left')
    },
  ],
  [
    'the same three work in Chinese',
    async ({ open, society, program }) => {
      const one = await society({ program })
      try {
        const page = await open(one, { language: 'zh' })
        assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN')
        for (const [name, expected] of [['多少个文件', /文件/], ['15%', /36/], ['东京', /东京|Tokyo/]]) {
          const before = await page.locator('.column > .timeline > .message.user').count()
          await page.getByRole('button', { name: new RegExp(name) }).first().click()
          await page.waitForFunction((count) => document.querySelectorAll('.column > .timeline > .message.user').length > count, before)
          await page.waitForSelector('.conversations li:first-child .status-icon.idle', { state: 'attached' })
          await lastAnswer(page).filter({ hasText: expected }).waitFor()
          assert.doesNotMatch(await lastAnswer(page).innerText(), /没有设置语言模型|无法回答/, name)
        }
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a reply streams: reasoning apart, a typing cursor, and nothing of it can act',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 150
      await write(page, 'Tell me the story')
      await page.waitForSelector('.reasoning.live .cursor')
      model.pace = 60
      await page.waitForSelector('.said .prose.growing')
      const early = (await page.locator('.said').last().innerText()).length
      await page.waitForFunction((length) => (document.querySelector('.said')?.textContent?.length ?? 0) > length + 20, early)
      model.pace = 1
      const answer = lastAnswer(page)
      await answer.filter({ hasText: 'Nobody missed the smell' }).waitFor()
      assert.equal(await answer.locator('img, script, iframe').count(), 0)
      assert.equal(await answer.locator('a[href^="javascript"]').count(), 0)
      assert.equal(await answer.locator('table td').count(), 4)
      assert.equal(await answer.locator('table td br').count(), 1)
      assert.equal(await answer.locator('table[tabindex="0"]').count(), 1, 'a table that scrolls is reached with the keyboard')
      assert.equal(await answer.locator('td').first().evaluate((cell) => getComputedStyle(cell).overflowWrap), 'normal', 'numbers stay whole')
      assert.match(await answer.innerText(), /☑ the quay is built\s+☐ the crane is sold/)
      assert.equal(await answer.getByRole('link', { name: 'the archive' }).getAttribute('rel'), 'noopener noreferrer')
      assert.notEqual(await page.title(), 'hacked')
      assert.equal(await page.locator('.prose.growing').count(), 0, 'the cursor is gone')
      await page.locator('.turn-head').last().click()
      await page.locator('.reasoning').last().getByText('Thought').waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'code has colours while it is written, stays where it was scrolled to, and is copied as it is',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
      model.pace = 40
      await write(page, 'Show me the code')
      const rust = page.locator('.prose .code').first()
      await page.locator('.prose.growing .code-word', { hasText: 'fn' }).waitFor()
      await rust.getByText('part_20').waitFor()
      assert.equal(await rust.locator('.code-language').innerText(), 'rust')
      const box = rust.locator('pre')
      await box.evaluate((node) => {
        node.scrollLeft = 150
        globalThis.firstBox = node
        globalThis.firstWord = node.querySelector('.code-word')
        globalThis.languages = new Set()
        new MutationObserver(() => document.querySelectorAll('.code-language').forEach((one) => globalThis.languages.add(one.textContent))).observe(document.body, { subtree: true, childList: true, characterData: true })
      })
      await rust.getByText('println!').waitFor()
      assert.ok(await box.evaluate((node) => node === globalThis.firstBox && node.querySelector('.code-word') === globalThis.firstWord && node.scrollLeft === 150), 'what is drawn is not drawn again')
      model.pace = 2
      const answer = lastAnswer(page)
      await answer.filter({ hasText: 'That is all.' }).waitFor()
      assert.deepEqual((await page.evaluate(() => [...globalThis.languages])).filter(Boolean).sort(), ['klingon', 'python', 'rust'], 'no half of a name is shown')
      assert.deepEqual(await answer.locator('.code-language').allInnerTexts(), ['rust', 'python', 'klingon'])
      assert.equal(await answer.locator('li .code-string').innerText(), '"round"', 'in a list too')
      assert.equal(await answer.locator('.code b').count(), 0, 'markup in code is text')
      assert.match(await answer.innerText(), /Tea & Co &unknown; by the ref, bad and worse\./)
      assert.deepEqual(await answer.locator('a').evaluateAll((all) => all.map((one) => one.getAttribute('href'))), ['https://ref.example/ships'], 'what leads nowhere is no link')
      const whole = answer.locator('.code pre').first()
      await whole.focus()
      await page.keyboard.press('ArrowRight')
      await page.waitForFunction((node) => node.scrollLeft > 0, await whole.elementHandle())
      const copies = answer.getByRole('button', { name: 'Copy the code' })
      await copies.first().focus()
      await page.keyboard.press('Enter')
      await page.locator('[role=status]', { hasText: 'Copied' }).waitFor({ state: 'attached' })
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), RUST)
      // A page over plain HTTP from another machine has no clipboard.
      await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }))
      await copies.nth(1).click()
      await page.evaluate(() => delete navigator.clipboard)
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'def area(radius):\n    return "round"  # about')
      await page.evaluate(() => {
        Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject(new Error('no')) }, configurable: true })
        document.execCommand = () => false
      })
      await copies.nth(2).click()
      await page.locator('[role=alert]', { hasText: 'The clipboard cannot be written' }).waitFor({ state: 'attached' })
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'todos appear while the planner writes, and the work opens in place to any depth',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 60
      await page.getByLabel('Strategy').selectOption('workflow')
      await write(page, 'Compare the files with the notes')
      await page.waitForSelector('.plan-bar .todo.growing', { state: 'attached' })
      const seen = await page.locator('.plan-bar .todo:not(.growing)').count()
      assert.ok(seen >= 1 && seen <= 3, `${seen} todos while it grows`)
      await page.waitForFunction(() => document.querySelectorAll('.plan-bar .todo:not(.growing)').length === 3)
      model.pace = 2
      await lastAnswer(page).filter({ hasText: 'buy milk' }).waitFor()
      await page.getByText('3 of 3').waitFor()
      const line = page.locator('.column > .timeline > .turn').last().locator('.delegation-line').first()
      assert.match(await line.innerText(), /root[\s\S]*workflow[\s\S]*2 tools/)
      await line.click()
      const roles = page.locator('.below .delegation-line')
      assert.deepEqual(await roles.locator('strong').allInnerTexts(), ['planner', 'executor', 'executor', 'executor', 'verifier'])
      await roles.nth(1).click()
      const deep = page.locator('.below .below')
      assert.deepEqual(await deep.locator('.path-crumbs li').allInnerTexts(), ['root', 'workflow', 'executor'])
      assert.match(await deep.locator('.address').innerText(), /^c-\w+\.messages\[\d+\]\.meta\._thread\.messages\[\d+\]\.meta\._thread$/)
      await deep.getByRole('button', { name: /list_files/ }).click()
      await deep.getByText('sales.csv (').waitFor()
      await roles.nth(4).focus()
      await page.keyboard.press('Shift+Enter')
      await page.waitForURL(/thread=/)
      await page.locator('.drawer .path-crumbs').getByText('verifier').waitFor()
      await page.locator('.drawer').getByText('Every task is done and shown.').waitFor()
      await page.reload()
      await page.locator('.drawer .path-crumbs').getByText('verifier').waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'agents that ask agents are one line each, two levels down',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      await write(page, 'Have the team look')
      await lastAnswer(page).filter({ hasText: 'two files' }).waitFor()
      const ada = page.locator('.column > .timeline > .turn').last().locator('.delegation-line').first()
      assert.match(await ada.innerText(), /ada/)
      await ada.click()
      await page.locator('.below .delegation-line', { hasText: 'ben' }).click()
      await page.locator('.below .below').getByText('There are two files').waitFor()
      await page.locator('.pick-agent').click()
      await page.keyboard.type('ben')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/chat\/ben/)
      await write(page, 'hello ben')
      await lastAnswer(page).filter({ hasText: /file/ }).waitFor()
    },
  ],
  [
    'what is said meanwhile joins the request or waits; it can be stopped with Escape',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 400
      await write(page, 'Another story, please')
      await page.waitForSelector('.reasoning.live')
      assert.match(await page.getAttribute('#composer', 'placeholder'), /under way/)
      await page.getByLabel('What becomes of it').selectOption('queue')
      await write(page, 'and then say hello')
      const unread = page.locator('.unread .message', { hasText: 'and then say hello' })
      await unread.getByText('it begins when it is its turn').waitFor()
      await write(page, 'and mention the crane')
      const more = page.locator('.unread .message', { hasText: 'and mention the crane' })
      await more.getByText('it is read when this is answered').waitFor()
      const written = await more.locator('time').getAttribute('datetime')
      await page.getByLabel('What becomes of it').selectOption('queue')
      await write(page, 'a third thing')
      await page.locator('.unread .message', { hasText: 'a third thing' }).getByRole('button', { name: 'Take back' }).click()
      await page.locator('.unread .message', { hasText: 'a third thing' }).waitFor({ state: 'detached' })
      await page.locator('.conversations li', { hasText: 'Another story' }).first().locator('a').click()
      await page.focus('#composer')
      await page.keyboard.press('Escape')
      await page.locator('.ending', { hasText: 'Stopped' }).last().waitFor()
      model.pace = 2
      await page.locator('.message.bot', { hasText: 'You said: and then say hello' }).waitFor()
      await page.locator('.conversations li', { hasText: 'Another story' }).first().locator('.status-icon.idle').waitFor()
      assert.ok(written, 'what waits has the time at which it was written')
    },
  ],
  [
    'what was said until a stop stays, on the screen and in the log',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 40
      await write(page, 'A story that is cut short')
      await page.locator('.said', { hasText: 'old harbour' }).waitFor()
      await page.getByRole('button', { name: 'Stop' }).click()
      await page.locator('.ending', { hasText: 'Stopped' }).waitFor()
      await lastAnswer(page).filter({ hasText: 'old harbour' }).waitFor()
      assert.doesNotMatch(await lastAnswer(page).innerText(), /Nobody missed/)
      await page.reload()
      await lastAnswer(page).filter({ hasText: 'old harbour' }).waitFor()
      const { last } = await scripted.ask('/api/log?after=0&limit=1')
      const { events } = await scripted.ask(`/api/log?after=${Math.max(0, last - 20)}&limit=20`)
      const settled = events.findLast(({ event }) => event.turnSettled)?.event.turnSettled
      assert.ok(settled.message.text.includes('old harbour') && settled.message.meta.stopped && settled.settlement.cancelled)
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'a picture is shown small where it is attached and sent, goes without words, and the model sees it',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      const picture = { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64') }
      await page.locator('.composer input[type=file]').setInputFiles(picture)
      const drawn = (where) => page.waitForFunction((where) => document.querySelector(`${where} img.thumbnail`)?.naturalWidth === 1, where)
      await drawn('.composer')
      await page.getByRole('button', { name: 'Send' }).click()
      await lastAnswer(page).filter({ hasText: 'You said: dot.png' }).waitFor()
      await drawn('.bubble')
      const sent = model.last.messages.findLast((message) => message.role === 'user')
      const shown = model.last.messages.flatMap((message) => (Array.isArray(message.content) ? message.content : [])).find((part) => part.type === 'image_url')
      assert.equal(shown?.image_url.url, `data:image/png;base64,${picture.buffer.toString('base64')}`, JSON.stringify(sent))
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'what is sent three times in one moment, or again because no answer came, happens once',
    async ({ open, scripted }) => {
      const page = await open(scripted, { path: '/chat' })
      const count = async () => (await scripted.ask('/api/conversations?search=only%20once')).conversations.length
      await page.fill('#composer', 'say this only once')
      await page.evaluate(() => {
        const form = document.querySelector('.composer')
        for (let n = 0; n < 3; n += 1) form.requestSubmit()
      })
      await lastAnswer(page).filter({ hasText: 'only once' }).waitFor()
      assert.equal(await count(), 1)
      // The server takes the message, and its answer is lost on the way.
      await page.goto(`${scripted.address}/chat`)
      let lost = 0
      await page.route('**/api/submit', async (route) => {
        await route.fetch()
        lost += 1
        await (lost > 1 ? route.fallback() : route.abort())
      })
      await page.fill('#composer', 'and this only once too')
      await page.press('#composer', 'Enter')
      await page.locator('.composer-trouble').waitFor()
      await page.press('#composer', 'Enter')
      await lastAnswer(page).filter({ hasText: 'only once too' }).waitFor()
      assert.equal(await count(), 2)
    },
  ],
  [
    'a model that does not begin to answer is waited for by the second',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      const go = model.hold()
      await write(page, 'take your time')
      await page.locator('.starting', { hasText: /Waiting for the model, [3-9] s/ }).waitFor()
      assert.ok(!(await page.locator('.column').innerText()).includes('_environment'), 'what the model is told about its environment is no step')
      go()
      await lastAnswer(page).filter({ hasText: 'You said: take your time' }).waitFor()
      assert.equal(await page.locator('.starting').count(), 0)
    },
  ],
  [
    'a model that refuses again and again has one line, with how often',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      const go = model.hold()
      model.refuses = 2
      await write(page, 'try until it works')
      await page.locator('.retry-note', { hasText: 'did not answer 2 times' }).waitFor()
      assert.equal(await page.locator('.retry-note').count(), 1)
      go()
      await lastAnswer(page).filter({ hasText: 'You said: try until it works' }).waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'what joins a workflow is shown where it was heard',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 60
      await page.getByLabel('Strategy').selectOption('workflow')
      await write(page, 'Compare and listen')
      await page.waitForSelector('.delegation.running')
      assert.match(await page.getByLabel('What becomes of it').innerText(), /joins at the next round/)
      await write(page, 'and be brief')
      await page.locator('.unread .message', { hasText: 'and be brief' }).getByText('heard in the next round').waitFor()
      model.pace = 5
      await lastAnswer(page).filter({ hasText: 'buy milk' }).waitFor()
      const log = JSON.stringify(await scripted.ask('/api/log?limit=1000'))
      assert.ok(log.includes('messagesTaken'), 'it was heard')
      await page.locator('.column > .timeline > .turn').last().locator('.delegation-line').first().click()
      for (const role of await page.locator('.below .delegation-line').all()) await role.click()
      await page.locator('.message.heard', { hasText: 'and be brief' }).first().waitFor()
    },
  ],
  [
    'one part of the work can be stopped alone',
    async ({ open, scripted, model }) => {
      const page = await open(scripted)
      model.pace = 200
      await page.getByLabel('Strategy').selectOption('workflow')
      await write(page, 'Compare once more')
      const line = page.locator('.column > .timeline > .turn').last().locator('.delegation.running > .delegation-line')
      await line.click()
      await page.getByRole('button', { name: 'Stop only this' }).first().click()
      await page.locator('.delegation.cancelled').first().waitFor()
      model.pace = 2
      await page.waitForSelector('.conversations li:first-child .status-icon:not(.running)', { state: 'attached' })
    },
  ],
  [
    'a request asked differently goes on in a branch; the first one stays',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      await write(page, 'the first wording')
      await lastAnswer(page).filter({ hasText: 'the first wording' }).waitFor()
      const own = page.locator('.message.user', { hasText: 'the first wording' }).last()
      await own.hover()
      await own.getByRole('button', { name: /Ask differently/ }).click()
      await page.fill('.editing textarea', 'the second wording')
      await page.getByRole('button', { name: 'Send in a branch' }).click()
      await page.waitForURL(/\/s\/[^/]+\/chat/)
      await lastAnswer(page).filter({ hasText: 'the second wording' }).waitFor()
      const branched = page.locator('.message.user', { hasText: 'the second wording' }).last()
      await page.locator('.composer').hover()
      await branched.getByText('2/2').waitFor()
      assert.equal(await branched.locator('.ways').evaluate((node) => getComputedStyle(node.parentElement).opacity), '1', 'it is seen without a mouse over it')
      await branched.getByRole('button', { name: 'Branch before' }).click()
      await page.waitForURL((url) => !url.pathname.startsWith('/s/'))
      await lastAnswer(page).filter({ hasText: 'the first wording' }).waitFor()
      assert.equal(await page.locator('.message', { hasText: 'the second wording' }).count(), 0)
    },
  ],
  [
    'branches are found again in any browser, say what they are of, and keep files and strategy',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const kept = await fetch(`${one.address}/api/artifacts?name=数据.csv`, { method: 'POST', headers: { authorization: `Bearer ${one.token}`, 'content-type': 'text/csv' }, body: 'a,b\n' }).then((response) => response.json())
        const { conversation } = await one.ask('/api/submit', { text: 'Compare the first way', strategy: 'workflow', artifacts: [{ id: kept.id, name: kept.name, mediaType: kept.mediaType }] })
        const page = await open(one, { path: `/chat/${conversation}` })
        assert.equal(await page.locator('.society-bar').count(), 0, 'one society needs no name')
        await lastAnswer(page).filter({ hasText: 'buy milk' }).waitFor()
        const own = page.locator('.message.user', { hasText: 'the first way' })
        await own.hover()
        await own.getByRole('button', { name: /Ask differently/ }).click()
        await page.fill('.editing textarea', 'Compare the second way')
        await page.getByRole('button', { name: 'Send in a branch' }).click()
        await page.waitForURL(/\/s\/main-1\/chat/)
        await lastAnswer(page).filter({ hasText: 'buy milk' }).waitFor()
        await page.locator('.message.user', { hasText: 'the second way' }).getByText('数据.csv').waitFor()
        const sent = (await one.ask('/s/main-1/api/log?limit=1000')).events.findLast(({ event }) => event.messageSent?.envelope.from === 'user').event.messageSent.envelope.payload
        assert.equal(sent.meta.strategy, 'workflow')
        assert.equal(sent.meta.artifacts[0].id, kept.id)
        const again = page.locator('.message.user', { hasText: 'the second way' })
        await again.hover()
        await again.getByRole('button', { name: /Ask differently/ }).click()
        await page.fill('.editing textarea', 'Compare the third way')
        await page.getByRole('button', { name: 'Send in a branch' }).click()
        await page.locator('.message.user', { hasText: 'the third way' }).getByText('3/3').waitFor()

        const other = await open(one, { path: `/chat/${conversation}` })
        await other.locator('.message.user', { hasText: 'the first way' }).getByText('1/3').waitFor()
        const bar = other.locator('.society-bar')
        assert.equal(await bar.locator('select').inputValue(), 'main')
        await bar.getByText('2 branches').waitFor()
        await other.keyboard.press('Control+k')
        await other.keyboard.type('main-1')
        await other.keyboard.press('Enter')
        await other.waitForURL(/\/s\/main-1\/chat/)
        await other.locator('.message.user', { hasText: 'the second way' }).getByText('2/3').waitFor()
        assert.equal(await bar.locator('select').inputValue(), 'main-1')
        await other.goto(`${one.address}/s/main-1/trace`)
        await bar.getByRole('button', { name: 'Back to main' }).click()
        await other.waitForURL((url) => url.pathname === '/chat')
        await other.locator('.conversations .entry-link').click()
        await other.locator('.message.user', { hasText: 'the first way' }).waitFor()
        await bar.locator('select').selectOption('main-1-1')
        await other.locator('.message.user', { hasText: 'the third way' }).waitFor()
        await other.goBack()
        await other.locator('.message.user', { hasText: 'the first way' }).waitFor()
        assert.equal(await bar.locator('select').inputValue(), 'main')
        assert.deepEqual(other.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a file goes along and can be fetched again',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      const path = join(scripted.folder, '..', `note-${process.pid}.txt`)
      writeFileSync(path, 'ships and cranes')
      await page.setInputFiles('.composer input[type=file]', path)
      await page.locator('.attached .file-name').waitFor()
      await write(page, 'look at this file')
      const file = page.locator('.message.user').last().getByRole('button', { name: /Download/ })
      const [download] = await Promise.all([page.waitForEvent('download'), file.click()])
      assert.equal(readFileSync(await download.path(), 'utf8'), 'ships and cranes')
    },
  ],
  [
    'a request can be asked again',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      await write(page, 'say it twice')
      await lastAnswer(page).filter({ hasText: 'say it twice' }).waitFor()
      const count = await page.locator('.message.bot', { hasText: 'say it twice' }).count()
      const own = page.locator('.message.user', { hasText: 'say it twice' }).last()
      await own.hover()
      await own.getByRole('button', { name: 'Ask again' }).click()
      await page.waitForFunction((before) => [...document.querySelectorAll('.message.bot')].filter((one) => one.textContent?.includes('say it twice')).length > before, count)
    },
  ],
  [
    'what an agent offers is a button, and is said to it in its own words',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      await write(page, 'hello before it is compressed')
      await lastAnswer(page).filter({ hasText: 'hello before it is compressed' }).waitFor()
      await page.getByRole('group', { name: 'What root offers' }).getByRole('button', { name: 'Compress the conversation' }).click()
      const told = async () => (await scripted.ask('/api/log?limit=10000')).events.some(({ event }) => event.messageSent?.envelope.from === 'user' && event.messageSent.envelope.payload.meta?._ui_action === 'compress')
      while (!(await told())) await page.waitForTimeout(50)
      await page.locator('.message.user', { hasText: 'Compress the conversation' }).waitFor()
      await page.goto(`${scripted.address}/organisation/root`)
      await page.locator('.agent-page .deeds').getByRole('button', { name: 'Compress the conversation' }).waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
]
