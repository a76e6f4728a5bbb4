// What holds in every view: accessibility, both languages, all widths, keys, size, and no other host.

import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const VIEWS = ['chat', 'inbox', 'organisation', 'trace', 'gallery', 'settings/models', 'settings/tools', 'settings/memory', 'settings/policies', 'settings/budgets', 'settings/connect', 'settings/page', 'settings/nosuch', 'organisation/root', 'organisation?as=graph', 'organisation?at=5', 'chat/nosuch', 'nosuch']
const MOST_KB = 150
/** What must be there before a view is judged. */
const READY = { 'settings/models': '.vendors li', 'settings/tools': 'tbody tr', 'settings/memory': '.memories .notice', 'settings/budgets': 'tbody tr', 'settings/page': 'fieldset >> nth=2' }

/** Goes to a place without loading the page anew. */
async function visit(page, path) {
  await page.evaluate((to) => {
    history.pushState(null, '', to)
    dispatchEvent(new PopStateEvent('popstate'))
  }, path)
}

export async function violations(page) {
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).slice(0, 3).join(', ')}`)
}

/** Whatever can be pressed or written in and sticks out of the window, where nothing scrolls it; and a page that could be scrolled
 * as a whole, which then may happen by itself. */
async function cut(page) {
  return page.evaluate(() => {
    const isScrolled = (node) => node !== null && (/auto|scroll/.test(getComputedStyle(node).overflowX) || isScrolled(node.parentElement))
    if (document.scrollingElement.scrollHeight > innerHeight) return [`the whole page is ${document.scrollingElement.scrollHeight - innerHeight} pixels too tall`]
    const all = [...document.querySelectorAll('button, a, select, input, textarea')].filter((node) => node.checkVisibility() && !node.closest('.skip, .unseen, [hidden]'))
    return all.filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !isScrolled(node.parentElement)).map((node) => `${node.textContent || node.ariaLabel || node.tagName} is cut`)
  })
}

export const checks = [
  ...[
    ['light and English', { theme: 'light', language: 'en' }],
    ['dark and Chinese', { theme: 'dark', language: 'zh' }],
    ['a tablet, light and Chinese', { theme: 'light', language: 'zh', width: 820, height: 1180 }],
    ['a phone, dark', { theme: 'dark', language: 'en', width: 390, height: 844 }],
  ].map(([name, options]) => [
    `no view has a fault that axe finds: ${name}`,
    async ({ open, scripted }) => {
      const { conversation } = await scripted.ask('/api/submit', { text: 'ask me for axe' })
      const here = `chat/${conversation}`
      const change = `chat/${(await scripted.ask('/api/submit', { text: 'write it for axe' })).conversation}`
      const code = `chat/${(await scripted.ask('/api/submit', { text: 'the code for axe' })).conversation}`
      const page = await open(scripted, options)
      await page.evaluate(AXE)
      const wrong = []
      for (const view of [here, code, change, ...VIEWS]) {
        await visit(page, `/${view}`)
        await page.waitForSelector(READY[view] ?? 'h1:visible')
        if (view === here) await page.locator('.approval-bar .approval').waitFor()
        if (view === change) await page.locator('.approval-bar .file-change').waitFor()
        if (view === code) {
          await page.getByText('That is all.').waitFor()
          await page.locator('.code-word').first().waitFor()
          const scrolled = await page.locator('.prose :is(pre, table)').evaluateAll((all) => all.filter((node) => node.scrollWidth > node.clientWidth).length)
          assert.ok(scrolled >= 2, 'long code and a wide table scroll')
        }
        wrong.push(...(await violations(page)).map((one) => `${view}: ${one}`))
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        if (wide > 0) wrong.push(`${view}: ${wide} pixels too wide`)
        wrong.push(...(await cut(page)).map((one) => `${view}: ${one}`))
        if (options.language === 'zh') {
          const text = await page.innerText('#content')
          if (!/\p{Script=Han}/u.test(text)) wrong.push(`${view}: nothing in Chinese`)
        }
      }
      await visit(page, `/${here}`)
      await page.locator('.turn-head').last().waitFor()
      await page.locator('.picked').click()
      const box = page.locator('.settings-box')
      await box.locator('summary').click()
      await box.locator('input[type=number]').first().fill('9')
      await page.keyboard.press('Enter')
      await box.getByRole('alert').waitFor()
      wrong.push(...[...(await violations(page)), ...(await cut(page))].map((one) => `settings: ${one}`))
      await page.keyboard.press('Escape')
      await page.locator('.conversation-head .more').click()
      await page.getByRole('menuitem').last().click()
      await page.getByRole('alertdialog').waitFor()
      wrong.push(...[...(await violations(page)), ...(await cut(page))].map((one) => `erase: ${one}`))
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.locator('.palette input').waitFor()
      wrong.push(...(await violations(page)).map((one) => `palette: ${one}`))
      await page.keyboard.press('Escape')
      for (const waiting of (await scripted.ask('/api/approvals')).approvals) await scripted.ask(`/api/approvals/${waiting.id}`, { approved: false })
      assert.deepEqual(wrong, [])
      assert.deepEqual(page.trouble, [])
    },
  ]),
  [
    'an address that leads nowhere says so and shows a way home',
    async ({ open, scripted }) => {
      const page = await open(scripted, { path: '/s/nosuch/chat' })
      await page.getByRole('heading', { name: 'There is no society called nosuch' }).waitFor()
      assert.equal(await page.locator('#composer').count(), 0)
      await page.getByRole('link', { name: 'main', exact: true }).click()
      await page.waitForSelector('.light.live', { state: 'attached' })
      await page.waitForURL((url) => url.pathname === '/chat')
      await page.goto(`${scripted.address}/chat/zzz`)
      await page.getByRole('heading', { name: 'There is no agent called zzz' }).waitFor()
      await page.getByRole('link', { name: 'To the chat' }).click()
      await page.locator('#composer').waitFor()
      const answer = await page.goto(`${scripted.address}/nosuch/place`)
      assert.equal(answer.status(), 404)
      await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
      await page.goto(`${scripted.address}/chat/root/no-such-request`)
      await page.getByText('There is no such request here: no-such-request').waitFor()
      await page.goto(`${scripted.address}/trace/no-such-request`)
      await page.getByText('There is no request called no-such-request.').waitFor()
    },
  ],
  [
    'memories are added, found, changed and erased, with the keyboard alone',
    async ({ open, society, program, model }) => {
      const one = await society({ program, model })
      try {
        const page = await open(one, { path: '/settings/memory' })
        await page.getByText('Nothing is remembered yet.').waitFor()
        await page.getByLabel('Text of the new memory').fill('Ann drinks green tea')
        await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
        await page.locator('.memory-list li', { hasText: 'green tea' }).waitFor()
        await one.ask('/api/memories', { text: '安住在上海' })
        await page.getByLabel('Search memories').fill('上海')
        await page.keyboard.press('Enter')
        await page.locator('.memory-list li', { hasText: '上海' }).waitFor()
        await page.locator('.memory-list li', { hasText: 'green tea' }).waitFor({ state: 'detached' })
        await page.locator('.memory-list li').getByRole('button', { name: 'Edit' }).focus()
        await page.keyboard.press('Enter')
        await page.keyboard.press('Control+A')
        await page.keyboard.type('安住在上海和北京')
        await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
        await page.locator('.memory-text', { hasText: '北京' }).waitFor()
        await page.locator('.memory-list li').getByRole('button', { name: 'Erase' }).focus()
        await page.keyboard.press('Enter')
        await page.getByText('Erase it for good?').waitFor()
        await page.keyboard.press('Enter')
        await page.getByText('Nothing fits these words.').waitFor()
        assert.deepEqual((await one.ask('/api/memories')).memories.map((memory) => memory.text), ['Ann drinks green tea'])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'the settings show what is really set, and what they give to copy is taken',
    async ({ open, society, program, model }) => {
      const settings = '[[policy]]\ntool = "run_command"\nagent = "ada"\nthen = "deny"\nwhy = "not her"\n\n[budget]\nusd = 7.5\n\n[budget.task]\ntokens = 123456\nminutes = 2\n\n[budget.roles.writer]\nrequests = 9\n'
      const one = await society({ program, model, settings })
      const copied = []
      try {
        await one.ask('/api/submit', { text: 'hello' })
        const page = await open(one, { path: '/settings/policies' })
        await page.locator('.rules li', { hasText: 'run_command · agent ada' }).getByText('deny').waitFor()
        copied.push(await page.locator('.snippet pre').innerText())
        await page.goto(`${one.address}/settings/budgets`)
        await page.locator('tr', { hasText: 'society' }).getByText('$7.50').waitFor()
        copied.push(await page.locator('.snippet pre').innerText())
        for (const line of ['usd = 7.5', 'tokens = 123456', 'minutes = 2', 'requests = 9']) assert.ok(copied[1].includes(line), line)
        await page.goto(`${one.address}/settings/models`)
        await page.locator('.vendors .ready', { hasText: 'openai-compatible' }).getByText('answers at http://127.0.0.1').waitFor()
        await page.locator('.vendors li:not(.ready)', { hasText: 'vllm' }).getByText('nobody answers at').waitFor()
      } finally {
        await one.end()
      }
      const plain = await society({ program })
      try {
        const page = await open(plain, { path: '/settings/budgets' })
        copied.push(await page.locator('.snippet pre').innerText())
        await page.goto(`${plain.address}/settings/policies`)
        copied.push(await page.locator('.snippet pre').innerText())
      } finally {
        await plain.end()
      }
      for (const text of copied) await (await society({ program, settings: text })).end()
    },
  ],
  [
    'everything is reached by keyboard: palette, sheet, views, decisions',
    async ({ open, scripted }) => {
      const page = await open(scripted)
      await page.locator('.scroller').focus()
      await page.keyboard.press('g')
      await page.keyboard.press('i')
      await page.waitForURL(/\/inbox/)
      await page.keyboard.press('Control+k')
      await page.keyboard.type('settings')
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/settings/)
      await page.keyboard.press('?')
      await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
      await page.keyboard.press('Escape')
      await page.locator('dialog').waitFor({ state: 'detached' })
      await page.keyboard.press('n')
      await page.waitForURL(/\/chat$/)
      await page.waitForFunction(() => document.activeElement?.id === 'composer')
      await page.keyboard.type('typed without a mouse')
      await page.keyboard.press('Enter')
      await page.locator('.message.bot', { hasText: 'typed without a mouse' }).waitFor()
      await page.locator('[role=status]', { hasText: 'The answer is there.' }).waitFor({ state: 'attached' })
      await page.keyboard.press('Escape')
      await page.evaluate(() => document.activeElement?.blur())
      await page.keyboard.press('j')
      await page.waitForURL(/\/chat\/[^/]+$/)
    },
  ],
  [
    'language and theme are switched at once and kept',
    async ({ open, scripted }) => {
      const page = await open(scripted, { path: '/settings/page' })
      await page.getByLabel('中文').check()
      await page.getByRole('heading', { name: '设置' }).waitFor()
      await page.getByLabel('深色').check()
      await page.reload()
      await page.getByRole('heading', { name: '设置' }).waitFor()
      assert.equal(await page.getAttribute('html', 'data-theme'), 'dark')
      const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
      assert.match(paper, /rgb\(19, 22, 24\)/)
    },
  ],
  [
    'of a thread with ten thousand messages only the newest are drawn, and the others follow',
    async ({ own, scripted, browser }) => {
      const context = own(await browser.newContext({ viewport: { width: 1280, height: 860 } }))
      const page = await context.newPage()
      // The server's view, as if the conversation had five thousand turns; turn n is at the place 2 n + 3.
      const nothing = { tokens: 0, costNanos: 0, requests: 0, timeMs: 0 }
      const asked = []
      await context.route('**/api/views/conversation/root*', (route) => {
        const before = Number(new URL(route.request().url()).searchParams.get('before') ?? 10_003)
        asked.push(before)
        const end = (before - 3) / 2
        const numbers = Array.from({ length: Math.min(20, end) }, (_, place) => end - Math.min(20, end) + place)
        const place = (n) => 2 * n + 3
        const task = (n) => ({ id: `t${n}`, name: 'message', type: 'message', message: `question ${n}` })
        const thread = {
          id: 'root',
          agent: 'root',
          holds: {},
          messages: Object.fromEntries(numbers.flatMap((n) => [[2 * n, { id: `m${n}`, sender: 'user', text: `question ${n}`, timestamp: n }], [2 * n + 1, { id: `b${n}`, sender: 'bot', text: `answer ${n}`, timestamp: n }]])),
          items: numbers.flatMap((n) => [{ kind: 'message', index: 2 * n, turn: place(n), seq: place(n), at: n }, { kind: 'turn', turn: place(n) }, { kind: 'message', index: 2 * n + 1, turn: place(n), seq: place(n) + 1, at: n }]),
          ...(numbers[0] > 0 && { earlier: place(numbers[0]) }),
        }
        const turns = numbers.map((n) => ({ id: place(n), thread: 'root', agent: 'root', behaviour: 'converse', task: task(n), origin: 'inbox', replyTo: 'user', startedAt: n, settledAt: n, settlement: 'done', effects: [], omitted: 0, brief: true, steps: 0, spent: nothing, tools: 0 }))
        const agents = [{ id: 'root', role: 'root', createdAt: 1, inbox: [], unlisted: 0, spent: nothing }]
        route.fulfill({ json: { seq: 10_002, place: '10002', spent: nothing, allowed: [], agentCount: 1, waitingCount: 0, roles: [], agents, threads: [thread], turns, effects: [], requests: [], waiting: [], artifacts: [] } })
      })
      await context.route('**/api/log?*', (route) => route.fulfill({ json: { events: [], last: 10_002 } }))
      await context.route('**/api/events?*', (route) => route.fulfill({ contentType: 'text/event-stream', body: ': nothing\n\n' }))
      await page.goto(`${scripted.address}/chat/root#token=${scripted.token}`)
      await page.locator('.message.bot', { hasText: 'answer 4999' }).waitFor()
      const drawn = () => page.locator('.message').count()
      assert.ok((await drawn()) < 120, `${await drawn()} messages are drawn`)
      const oldest = () => page.locator('.message.user .plain').first().innerText().then((text) => Number(text.match(/\d+/)[0]))
      for (let n = 0, before = await oldest(); n < 3; n += 1) {
        await page.locator('.scroller').evaluate((box) => {
          box.scrollTop = 0
        })
        await page.waitForFunction((limit) => Number(document.querySelector('.message.user .plain')?.textContent?.match(/\d+/)?.[0]) < limit, before)
        before = await oldest()
      }
      assert.ok((await drawn()) < 400)
      assert.ok(asked.length > 2 && asked.length < 30, `${asked.length} pages were read`)
      assert.ok((await drawn()) > 100)
      await page.getByRole('button', { name: 'Latest' }).click()
      await page.waitForFunction(() => document.querySelectorAll('.message').length < 60)
      assert.ok(await page.locator('.message.bot', { hasText: 'answer 4999' }).isVisible(), 'the end stays in sight')
    },
  ],
  [
    'the first view weighs at most 150 kB on the wire, packed once and as small as gzip makes it',
    async ({ own, browser, scripted }) => {
      const { taskId, conversation } = await scripted.ask('/api/submit', { text: 'A story to weigh' })
      while ((await scripted.ask(`/api/tasks/${taskId}`)).status === 'running') await new Promise((resolve) => setTimeout(resolve, 40))
      const page = await own(await browser.newContext({ locale: 'en-US' })).newPage()
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      const names = new Map()
      const weights = []
      session.on('Network.responseReceived', ({ requestId, response, type }) => names.set(requestId, [type, new URL(response.url).pathname, response.headers]))
      session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => weights.push([encodedDataLength, ...(names.get(requestId) ?? [])]))
      await page.goto(`${scripted.address}/chat/${conversation}#token=${scripted.token}`)
      await page.locator('.message.bot', { hasText: 'Nobody missed the smell' }).waitFor()
      await page.waitForSelector('.light.live', { state: 'attached' })
      await page.waitForLoadState('load')
      const files = weights.filter(([, type]) => /Document|Script|Stylesheet/.test(type))
      assert.ok(files.length >= 3, 'the files of the page are counted')
      const sum = weights.reduce((sum, [size]) => sum + size, 0)
      if (process.env.SHOTS) console.log(`${sum} bytes in ${weights.length} answers, ${files.reduce((sum, [size]) => sum + size, 0)} of them files`)
      assert.ok(sum <= MOST_KB * 1000, weights.sort(([a], [b]) => b - a).map(([size, , path]) => `${size} ${path}`).join('\n'))
      for (const [size, type, path, headers] of files) {
        if (type === 'Document') continue
        assert.equal(headers['content-encoding'], 'gzip', path)
        const small = gzipSync(readFileSync(join(new URL('../../dist', import.meta.url).pathname, path)), { level: 9 }).length
        assert.ok(size < small * 1.03 + 600, `${path}: ${size} bytes, and ${small} are enough`)
      }
      assert.deepEqual(page.trouble ?? [], [])
    },
  ],
  [
    'the page is small, and makes nothing from text',
    async () => {
      const folder = new URL('../../dist', import.meta.url).pathname
      const index = readFileSync(join(folder, 'index.html'), 'utf8')
      const [, entry] = index.match(/src="\/(assets\/[^"]+\.js)"/)
      const first = new Set([entry])
      for (const name of first) for (const [, other] of readFileSync(join(folder, name), 'utf8').matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) first.add(`assets/${other}`)
      const size = [...first].reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name)), { level: 9 }).length, 0)
      assert.ok(size <= MOST_KB * 1000, `${size} bytes of JavaScript at first`)
      const all = readdirSync(join(folder, 'assets')).map((name) => readFileSync(join(folder, 'assets', name), 'utf8')).join('')
      assert.ok(!/\beval\(|new Function\(/.test(all), 'nothing is made from text')
    },
  ],
]
