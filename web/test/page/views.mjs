// Views: a first view is small, and what the server folds is what the page would fold from the whole log.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'vite'

const MOST_REQUESTS = 4
const MOST_KB = 300

const ended = async (one, task) => {
  for (;;) {
    const { status } = await one.ask(`/api/tasks/${task}`)
    if (['done', 'failed', 'cancelled', 'needs_person'].includes(status)) return status
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The page's own fold, for Node. */
async function fold() {
  const out = mkdtempSync(join(tmpdir(), 'polis-fold-'))
  const source = new URL('../../src/store/', import.meta.url).pathname
  try {
    await build({ configFile: false, logLevel: 'error', build: { ssr: true, outDir: out, rollupOptions: { input: { fold: join(source, 'fold.ts'), state: join(source, 'state.ts'), derive: join(source, 'derive.ts') }, output: { entryFileNames: '[name].mjs' } } } })
    const [{ fold }, { empty }, { sortedConversations }] = await Promise.all(['fold', 'state', 'derive'].map((name) => import(join(out, `${name}.mjs`))))
    const folded = (events) => {
      const state = empty()
      for (const event of events) fold(state, event)
      return state
    }
    return { folded, sorted: sortedConversations }
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

export const checks = [
  [
    'a first view takes four requests at most, and few bytes',
    async ({ scripted, browser, own }) => {
      const { taskId, conversation } = await scripted.ask('/api/submit', { text: 'Compare before the first view', strategy: 'workflow' })
      await ended(scripted, taskId)
      for (const path of ['/chat', `/chat/${conversation}/${taskId}`, '/inbox', '/organisation', '/trace', `/trace/${taskId}`, '/gallery', '/settings/models']) {
        const context = own(await browser.newContext())
        const page = await context.newPage()
        const client = await context.newCDPSession(page)
        await client.send('Network.enable')
        const asked = []
        let bytes = 0
        client.on('Network.requestWillBeSent', ({ request }) => request.url.includes('/api/') && asked.push(request.url.slice(scripted.address.length)))
        client.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength))
        await page.goto(`${scripted.address}${path}#token=${scripted.token}`)
        await page.waitForSelector('.light.live', { state: 'attached' })
        await page.waitForLoadState('load')
        await page.waitForTimeout(700)
        assert.ok(asked.length <= MOST_REQUESTS, `${path}: ${asked.join(' ')}`)
        assert.ok(bytes > 50_000 && bytes <= MOST_KB * 1000, `${path}: ${bytes} bytes with the page itself`)
        await context.close()
      }
    },
  ],
  [
    'what the server folds is what the page would fold from the whole log',
    async ({ program, model, society }) => {
      const one = await society({ program, model, settings: '[[policy]]\ntool = "write_file"\nthen = "ask"\nwhy = "files are changed only with your word"\n' })
      try {
        const tasks = []
        const { conversation } = await one.ask('/api/submit', { text: 'Tell a story', context: [{ sender: 'user', text: 'Hello' }, { sender: 'bot', text: 'Good day' }], model: 'openai-compatible/other' })
        const { conversation: pinned } = await one.ask('/api/submit', { text: 'another one' })
        const { conversation: archived } = await one.ask('/api/submit', { text: 'an old one' })
        const { id: deleted } = await one.ask('/api/conversations', { title: 'a mistake' })
        await one.ask(`/api/conversations/${pinned}`, { pinned: true, title: 'The pinned one' })
        await one.ask(`/api/conversations/${archived}`, { archived: true, strategy: 'simple' })
        await one.ask(`/api/conversations/${deleted}/delete`, {})
        await one.ask('/api/send', { agentId: 'root', text: 'hello root' })
        for (const body of [{ text: 'Compare the files', strategy: 'workflow' }, { text: 'found a team for the files' }, { text: 'Tell a story' }, { text: 'write a report' }]) {
          const { taskId } = await one.ask('/api/submit', { ...body, conversation })
          tasks.push(taskId)
          await ended(one, taskId)
        }
        const { events, last } = await one.ask('/api/log?limit=1000')
        assert.equal(events.at(-1).seq, last, 'the whole log was read')
        const { folded, sorted } = await fold()
        const state = folded(events)
        const view = await one.ask(`/api/views/conversation/${conversation}`)
        assert.equal(view.seq, last)
        assert.deepEqual(view.spent, state.spent)
        assert.deepEqual(view.waiting.map(({ id, what }) => [id, what.kind]), [...state.waiting.values()].map(({ id, what }) => [id, what.kind]))
        assert.equal(view.waiting.length, 1, 'the report waits for a word')
        const same = (turn) => {
          const { id, thread, agent, behaviour, startedAt, settledAt, settlement, parent, spent, tools, answer } = turn
          return { id, thread, agent, behaviour, startedAt, settledAt, settlement, parent, spent, tools, answer }
        }
        for (const turn of view.turns) assert.deepEqual(same(turn), same(state.turns.get(turn.id)), `turn ${turn.id}`)
        const main = view.threads.find(({ id }) => id === conversation)
        assert.deepEqual(main.items, state.threads.get(conversation).items)
        const said = ({ id, sender, text, timestamp }) => ({ id, sender, text, timestamp })
        for (const [index, message] of Object.entries(main.messages)) assert.deepEqual(said(message), said(state.threads.get(conversation).messages[index]))
        for (const request of view.requests) {
          const { id, to, at, seq, message, endedAt } = state.requests.get(request.id)
          assert.deepEqual({ id: request.id, to: request.to, at: request.at, seq: request.seq, message: request.message, endedAt: request.endedAt }, { id, to, at, seq, message, endedAt })
          assert.deepEqual(request.open, [...state.requests.get(request.id).open])
          // Of other conversations the view has no turns, so it does not know what they have spent.
          if (request.to === conversation) assert.deepEqual(request.spent, state.requests.get(request.id).spent)
        }
        const agents = ({ id, role, parent, turn, spent }) => ({ id, role, parent, turn, spent })
        const parents = new Set([...state.agents.values()].map(({ parent }) => parent))
        const listed = ({ id, parent, turn, terminatedAt }) => !terminatedAt && (parent || turn !== undefined || id === 'root' || id === conversation || parents.has(id))
        assert.deepEqual(view.agents.map(agents), [...state.agents.values()].filter(listed).map(agents))
        const listing = ({ id, title, person, roleId, model, strategy, pinned = false, archived = false, createdAt, activeAt, messages }) => ({ id, title, person, roleId, model, strategy, pinned, archived, createdAt, activeAt, messages })
        const ours = sorted(state)
        assert.deepEqual(view.conversations.map(listing), ours.filter((chat) => !chat.archived).map(listing))
        assert.deepEqual((await one.ask('/api/conversations?archived=true')).conversations.map(listing), ours.filter((chat) => chat.archived).map(listing))
        assert.deepEqual(view.conversations.map(({ id, taskId }) => [id, taskId]), ours.filter((chat) => !chat.archived).map(({ id, taskId }) => [id, taskId]), 'who is at what')
        assert.equal(view.conversations[0].id, pinned)
        for (const task of tasks) {
          const tree = await one.ask(`/api/views/task/${task}`)
          const mine = [...state.turns.values()].filter((turn) => turn.task.id === task).map((turn) => turn.id)
          assert.deepEqual(tree.turns.filter((turn) => turn.task.id === task).map(({ id }) => id), mine, `the turns of ${task}`)
        }
        for (const { id } of view.turns) {
          const whole = await one.ask(`/api/views/turn/${id}`)
          const turn = whole.turns.find((turn) => turn.id === id)
          assert.deepEqual(turn.effects, state.turns.get(id).effects, `the effects of turn ${id}`)
          for (const effect of whole.effects.filter((effect) => effect.turn === id)) {
            const known = state.effects.get(effect.id)
            assert.deepEqual([effect.effect, effect.outcome, effect.stage, effect.children, effect.endedAt], [known.effect, known.outcome, known.stage, known.children, known.endedAt], effect.id)
          }
        }
      } finally {
        await one.end()
      }
    },
  ],
]
