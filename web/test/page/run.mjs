// The page in a real browser, against the real program: `node run.mjs PROGRAM [WORD]`. With a word, only the checks that have it
// in their names. Ends with status 1 when one of them is red, and after fifteen minutes in any case.

import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import * as chat from './chat.mjs'
import * as components from './components.mjs'
import * as conversations from './conversations.mjs'
import * as decisions from './decisions.mjs'
import * as everywhere from './everywhere.mjs'
import * as lines from './lines.mjs'
import * as looks from './looks.mjs'
import { scriptedModel } from './model.mjs'
import * as organisation from './organisation.mjs'
import { society } from './society.mjs'
import * as views from './views.mjs'

const LIMIT_MS = 900_000
const [program, word = ''] = process.argv.slice(2)
const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path))
const began = Date.now()
const timer = setTimeout(() => {
  console.error('red: the checks took more than fifteen minutes')
  process.exit(1)
}, LIMIT_MS)
timer.unref()

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
const foreign = new Set()

/** Opens the page in a window of its own. */
async function open(contexts, one, { path = '/', width = 1280, height = 860, theme = 'light', language = 'en', context, isAttacked = false } = {}) {
  const within = context ?? (await browser.newContext({ viewport: { width, height }, colorScheme: theme, locale: language === 'zh' ? 'zh-CN' : 'en-US', reducedMotion: 'reduce' }))
  if (!contexts.includes(within)) contexts.push(within)
  within.on('request', (request) => {
    const url = new URL(request.url())
    // What a document tries is seen here too; whether it gets out is asked of a listener.
    if (!isAttacked && !/^(?:data|blob):$/.test(url.protocol) && url.origin !== one.address) foreign.add(request.url())
  })
  const page = await within.newPage()
  page.setDefaultTimeout(15_000)
  page.trouble = []
  page.on('pageerror', (error) => page.trouble.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text())) page.trouble.push(message.text())
  })
  await page.goto(`${one.address}${path}#token=${one.token}`)
  await page.waitForSelector('.light.live, .light.lost, .light.nowhere, .door', { state: 'attached' })
  return page
}

let red = 0
let green = 0

/** Goes through some parts, one check after the other, with societies of their own. */
async function lane(...parts) {
  const model = await scriptedModel()
  const scripted = await society({ program, model, settings: '[[policy]]\ntool = "write_file"\nthen = "ask"\nwhy = "files are changed only with your word"\n' })
  const offline = await society({ program })
  try {
    for (const [name, check] of parts.flatMap((part) => part.checks)) {
      if (word && !name.includes(word)) continue
      const from = Date.now()
      const contexts = []
      const own = (context) => {
        contexts.push(context)
        return context
      }
      const tools = { open: (one, options) => open(contexts, one, options), own, scripted, offline, model, browser, society, program }
      model.pace = 2
      try {
        await check(tools)
        green += 1
        console.log(`ok: ${name} (${Date.now() - from} ms)`)
      } catch (error) {
        red += 1
        console.error(`red: ${name} (${Date.now() - from} ms)\n${error.stack}`)
        const page = contexts.at(-1)?.pages().at(-1)
        if (process.env.SHOTS && page) await page.screenshot({ path: `${process.env.SHOTS}/red-${red}.png` }).catch(() => undefined)
      }
      for (const context of contexts) await context.close()
    }
  } finally {
    await scripted.end()
    await offline.end()
    model.close()
  }
}

try {
  await Promise.all([lane(chat, decisions), lane(everywhere, components, views), lane(organisation, lines, looks, conversations)])
} finally {
  await browser.close()
}
if (foreign.size > 0) {
  red += 1
  console.error(`red: the page asked other hosts: ${[...foreign].join(', ')}`)
}
console.log(`${green} checks of the page passed, ${red} failed, in ${Math.round((Date.now() - began) / 1000)} s`)
process.exit(red || !green ? 1 : 0)
