// Conversations: several at a time, and what a person does with the list of them.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

const ASK = '[[policy]]\ntool = "write_file"\nthen = "ask"\n'

const write = async (page, text) => {
  await page.fill('#composer', text)
  await page.press('#composer', 'Enter')
}
const entry = (page, title) => page.locator('.conversations .entry', { hasText: title })
const titles = (page) => page.locator('.conversations .entry-title').allInnerTexts()
/** Picks from the menu of a conversation. */
const pick = async (page, title, name) => {
  await entry(page, title).hover()
  await entry(page, title).locator('.more').click()
  await page.getByRole('menuitem', { name, exact: true }).click()
}
const ended = async (one, task) => {
  while ((await one.ask(`/api/tasks/${task}`)).status === 'running') await new Promise((resolve) => setTimeout(resolve, 40))
}

/** A society of its own, so that the list has only what the check puts there. */
const alone = (check, settings = ASK) => async (tools) => {
  const one = await tools.society({ program: tools.program, model: tools.model, settings })
  try {
    await check(tools, one)
  } finally {
    await one.end()
  }
}

/** The same society for a further person, with a token of their own. */
const forPerson = async (one, program, name) => {
  const args = ['token', 'new', '--name', name, '--scope', 'read,send,approve', '--data', join(one.folder, '.polis')]
  const token = execFileSync(program, args, { cwd: one.folder, stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim()
  const isKnown = async () => (await fetch(`${one.address}/api/version`, { headers: { authorization: `Bearer ${token}` } })).ok
  // A running server looks at the file of tokens twice a second.
  while (!(await isKnown())) await new Promise((resolve) => setTimeout(resolve, 50))
  return { ...one, token }
}

export const checks = [
  [
    'two people use the page side by side and see only what is theirs',
    alone(async ({ open, program }, one) => {
      const owner = await open(one, { path: '/chat' })
      const bob = await open(await forPerson(one, program, 'bob'), { path: '/chat' })
      await write(owner, 'The words of the owner')
      await owner.locator('.message.bot', { hasText: 'You said: The words of the owner' }).waitFor()
      await write(bob, 'The words of Bob')
      await bob.locator('.message.bot', { hasText: 'You said: The words of Bob' }).waitFor()
      assert.deepEqual(await titles(bob), ['The words of Bob'])
      assert.deepEqual((await titles(owner)).toSorted(), ['The words of Bob', 'The words of the owner'], 'the owner sees everything')
      await write(bob, 'write the report')
      await bob.getByRole('button', { name: /^Approve/ }).waitFor()
      for (const path of ['/inbox', '/organisation', '/trace', '/chat']) {
        await bob.goto(`${one.address}${path}`)
        await bob.waitForSelector('.light.live', { state: 'attached' })
        await bob.waitForSelector('main h1, main h2', { state: 'attached' })
        assert.ok(!(await bob.locator('body').innerText()).includes('of the owner'), path)
      }
      assert.deepEqual([owner.trouble, bob.trouble], [[], []])
    }),
  ],
  [
    'a named approver decides in the inbox, and the person who asked reads who decides',
    alone(async ({ open, program }, one) => {
      const bob = await open(await forPerson(one, program, 'bob'), { path: '/chat' })
      const carl = await open(await forPerson(one, program, 'carl'), { path: '/inbox' })
      await write(bob, 'write the report')
      await bob.locator('.approval', { hasText: 'carl decides this' }).waitFor()
      assert.ok(await bob.getByRole('button', { name: /^Approve/ }).isDisabled())
      const card = carl.locator('.approval', { hasText: 'for bob' })
      await card.waitFor()
      assert.equal(await carl.locator('.rail .count').innerText(), '1')
      await card.getByRole('button', { name: /^Approve/ }).click()
      await card.waitFor({ state: 'detached' })
      await bob.locator('.approval').waitFor({ state: 'detached' })
      const owner = await open(one, { path: '/chat' })
      await owner.locator('.conversations .entry', { hasText: 'bob' }).waitFor()
      assert.equal(await bob.locator('.conversations .entry', { hasText: 'bob' }).count(), 0, 'one does not read one’s own name')
      assert.deepEqual([bob.trouble, carl.trouble, owner.trouble], [[], [], []])
    }, `${ASK}\n[server]\napprovers = ["carl"]\n`),
  ],
  [
    'a conversation starts at /chat with its model and strategy, and both can be changed later',
    alone(async ({ open }, one) => {
      const page = await open(one, { path: '/chat' })
      await page.getByRole('heading', { name: 'New conversation' }).waitFor()
      await page.getByLabel('Model').focus()
      await page.locator('datalist option[value="openai-compatible/scripted"]').waitFor({ state: 'attached' })
      await page.getByLabel('Model').fill('openai-compatible/another')
      await page.getByLabel('Strategy').selectOption('workflow')
      await write(page, 'Compare the files with the notes')
      await page.waitForURL(/\/chat\/c-\w+\/[^/]+$/)
      await page.locator('.message.bot', { hasText: 'buy milk' }).waitFor()
      const id = page.url().split('/').at(-2)
      const [first] = (await one.ask('/api/conversations')).conversations
      assert.deepEqual([first.id, first.title, first.model, first.strategy], [id, 'Compare the files with the notes', 'openai-compatible/another', 'workflow'])
      await page.getByRole('button', { name: 'Model and strategy' }).click()
      const box = page.getByRole('dialog', { name: 'Model and strategy' })
      await box.getByLabel('Strategy').selectOption('simple')
      await page.locator('.picked-text', { hasText: 'directly' }).waitFor()
      await box.getByLabel('Model').fill('')
      await page.keyboard.press('Enter')
      await page.locator('.picked-text', { hasText: 'another' }).waitFor({ state: 'detached' })
      const now = await one.ask(`/api/conversations/${id}`)
      assert.deepEqual([now.model, now.strategy], [undefined, 'simple'])
      await page.getByRole('button', { name: 'Model and strategy' }).click()
      await box.getByLabel('Effort').selectOption('high')
      await page.locator('.picked-text', { hasText: 'high' }).waitFor()
      const isChange = (response) => response.url().endsWith(`/api/conversations/${id}`) && response.request().method() === 'POST'
      await box.getByLabel('Temperature').fill('0.2')
      await Promise.all([page.waitForResponse(isChange), page.keyboard.press('Tab')])
      assert.deepEqual((await one.ask(`/api/conversations/${id}`)).settings, { effort: 'high', temperature: 0.2 })
      await Promise.all([page.waitForResponse(isChange), box.getByLabel('Effort').selectOption('')])
      assert.deepEqual((await one.ask(`/api/conversations/${id}`)).settings, { temperature: 0.2 })
      await page.keyboard.press('Escape')
      await write(page, 'and once more')
      await page.locator('.message.bot', { hasText: 'You said: and once more' }).waitFor()
      assert.equal((await one.ask('/api/conversations')).conversations.length, 1, 'it is the same conversation')
      await page.evaluate(() => document.activeElement?.blur())
      await page.keyboard.press('n')
      await page.waitForURL(/\/chat$/)
      await page.locator('.first').waitFor()
      assert.deepEqual(page.trouble, [])
    }),
  ],
  [
    'every setting of models is set with the keyboard, refused at its field, kept by the conversation and sent to the model',
    alone(async ({ open, model }, one) => {
      const { id } = await one.ask('/api/conversations', { title: 'Settings' })
      const page = await open(one, { path: `/chat/${id}` })
      const settings = async () => (await one.ask(`/api/conversations/${id}`)).settings
      const button = page.getByRole('button', { name: 'Model and strategy' })
      await button.press('Enter')
      const box = page.getByRole('dialog', { name: 'Model and strategy' })
      assert.ok(!(await box.getByLabel('Seed').isVisible()), 'the unusual ones are folded away')
      await box.getByText('More', { exact: true }).press('Enter')
      await box.getByLabel('Effort').selectOption('high')
      const written = [['Temperature', '0.25'], ['Thinking budget', '0'], ['Top-p', '0.9'], ['Longest reply', '500'], ['Seed', '-7'], ['Stop text 1', 'END'], ['Stop text 2', 'a\\nb\\\\n'], ['Tool choice', 'auto'], ['Service tier', 'flex']]
      for (const [label, text] of written) await box.getByLabel(label).fill(text)
      await box.getByLabel('Parallel calls').selectOption('false')
      await box.getByLabel('Cache').selectOption('off')
      await box.getByLabel('Service tier').press('Enter')
      await box.waitFor({ state: 'detached' })
      assert.ok(await button.evaluate((node) => node === document.activeElement))
      const all = { effort: 'high', temperature: 0.25, thinkingBudget: 0, topP: 0.9, maxTokens: 500, seed: -7, stop: ['END', 'a\nb\\n'], toolChoice: 'auto', serviceTier: 'flex', parallelCalls: false, cache: 'off' }
      assert.deepEqual(await settings(), all)
      await write(page, 'with settings')
      await page.locator('.message.bot', { hasText: 'You said: with settings' }).waitFor()
      const { temperature, top_p, seed, stop } = model.last
      assert.deepEqual({ temperature, top_p, seed, stop }, { temperature: 0.25, top_p: 0.9, seed: -7, stop: ['END', 'a\nb\\n'] })

      await button.click()
      await box.getByText('More, 9 set').click()
      const labels = [...written.map(([label]) => label), 'Effort', 'Parallel calls', 'Cache']
      const values = await Promise.all(labels.map((label) => box.getByLabel(label).inputValue()))
      assert.deepEqual(values, [...written.map(([, text]) => text), 'high', 'false', 'off'])
      // What the page refuses itself, and what the server does.
      for (const [label, text, why] of [['Longest reply', '0', 'It must be from 1 to 4294967295.'], ['Seed', '1.5', 'This is not a whole number.'], ['Top-p', '0', '`top_p` is a number above 0 and up to 1'], ['Service tier', 'two words', '`service_tier` is one word']]) {
        const before = await box.getByLabel(label).inputValue()
        await box.getByLabel(label).fill(text)
        await page.keyboard.press('Enter')
        assert.equal(await box.getByRole('alert').innerText(), why)
        await page.waitForFunction(() => document.activeElement?.matches('[aria-invalid]'))
        assert.equal(await page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-describedby').split(' ').at(-1)).textContent), why)
        await box.getByLabel(label).fill(before)
        await page.keyboard.press('Tab')
        await box.getByRole('alert').waitFor({ state: 'detached' })
      }
      assert.deepEqual(await settings(), all, 'nothing of what was refused counts')
      for (const [label] of written) await box.getByLabel(label).fill('')
      for (const label of ['Effort', 'Parallel calls', 'Cache']) await box.getByLabel(label).selectOption('')
      await box.getByLabel('Stop text 1').press('Enter')
      await box.waitFor({ state: 'detached' })
      assert.equal(await settings(), undefined, 'an empty field is not set')
      assert.deepEqual(page.trouble, [])
    }),
  ],
  [
    'two conversations go on side by side, and a decision that waits in one does not stop the other',
    alone(async ({ open, model }, one) => {
      const page = await open(one, { path: '/chat' })
      await write(page, 'Please write a report')
      await page.locator('.approval-bar .approval').waitFor()
      await entry(page, 'Please write a report').locator('.badge.needs_you').waitFor()
      await page.getByRole('button', { name: 'New conversation' }).click()
      await page.getByRole('heading', { name: 'New conversation' }).waitFor()
      assert.equal(await page.locator('.approval-bar').count(), 0)
      model.pace = 60
      await write(page, 'A long reading')
      await page.locator('.said', { hasText: 'word5' }).waitFor()
      assert.equal(await page.locator('.approval-bar').count(), 0, 'the decision belongs to the other one')
      assert.deepEqual(await titles(page), ['A long reading', 'Please write a report'])
      await entry(page, 'A long reading').locator('.badge.running').waitFor()
      await entry(page, 'Please write a report').locator('a').click()
      await page.locator('.approval-bar').getByRole('button', { name: /^Approve/ }).click()
      await page.locator('.message.bot', { hasText: 'It is written.' }).waitFor()
      await entry(page, 'Please write a report').locator('.status-icon.idle').waitFor()
      assert.deepEqual(await titles(page), ['Please write a report', 'A long reading'], 'the one with the newest message is first')
      await entry(page, 'A long reading').locator('.badge.running').waitFor()
      model.pace = 1
      await entry(page, 'A long reading').locator('.status-icon.idle').waitFor()
      await page.fill('#composer', 'a draft of the report')
      await entry(page, 'A long reading').locator('a').click()
      await page.locator('.column > .timeline > .message.bot', { hasText: 'word599' }).waitFor()
      assert.equal(await page.inputValue('#composer'), '', 'a draft stays in its conversation')
      await entry(page, 'Please write a report').locator('a').click()
      await page.waitForFunction(() => document.querySelector('#composer')?.value === 'a draft of the report')
      assert.deepEqual(page.trouble, [])
    }),
  ],
  [
    'conversations are renamed, pinned, archived and deleted, here and in another window at the same time',
    alone(async ({ open }, one) => {
      const ids = []
      for (const text of ['the first', 'the second', 'the third']) {
        const { conversation, taskId } = await one.ask('/api/submit', { text })
        ids.push(conversation)
        await ended(one, taskId)
      }
      const page = await open(one, { path: `/chat/${ids[0]}` })
      const other = await open(one, { path: `/chat/${ids[0]}` })
      await entry(page, 'the first').waitFor()
      assert.deepEqual(await titles(page), ['the third', 'the second', 'the first'])
      await pick(page, 'the first', 'Rename')
      await page.keyboard.type('A new title')
      await page.keyboard.press('Enter')
      for (const window of [page, other]) {
        await entry(window, 'A new title').waitFor()
        await window.getByRole('heading', { level: 1, name: 'A new title' }).waitFor()
      }
      await page.locator('.conversation-head h1').dblclick()
      await page.keyboard.type('never mind')
      await page.keyboard.press('Escape')
      await page.getByRole('heading', { level: 1, name: 'A new title' }).waitFor()
      await pick(page, 'A new title', 'Pin')
      for (const window of [page, other]) await window.getByRole('region', { name: 'Pinned' }).getByText('A new title').waitFor()
      assert.deepEqual(await titles(other), ['A new title', 'the third', 'the second'])

      await pick(page, 'the third', 'Archive')
      for (const window of [page, other]) await entry(window, 'the third').waitFor({ state: 'detached' })
      const late = await open(one, { path: '/chat' })
      assert.deepEqual(await titles(late), ['A new title', 'the second'])
      await entry(late, 'the second').locator('a').click()
      await late.locator('.message.bot', { hasText: 'You said: the second' }).waitFor()
      assert.equal(await late.locator('.first').count(), 0, 'what was read is shown without waiting for an event')
      await late.getByRole('button', { name: 'Archived' }).click()
      await entry(late, 'the third').waitFor()
      await pick(late, 'the third', 'Unarchive')
      await late.getByText('Nothing is archived.').waitFor()
      await entry(page, 'the third').waitFor()
      await late.getByRole('button', { name: 'Back to the conversations' }).click()
      await entry(late, 'the third').waitFor()

      await entry(page, 'the second').locator('a').click()
      await page.getByRole('heading', { level: 1, name: 'the second' }).waitFor()
      // By keyboard alone; the first answer to the question is no.
      await entry(page, 'the second').locator('.more').focus()
      await page.keyboard.press('Enter')
      await page.getByRole('menuitem', { name: 'Rename' }).waitFor()
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('Enter')
      await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('alertdialog').waitFor({ state: 'detached' })
      await page.waitForFunction(() => document.activeElement?.classList.contains('more'))
      assert.equal(await entry(page, 'the second').count(), 1)
      await pick(page, 'the second', 'Delete')
      await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
      for (const window of [page, other, late]) await entry(window, 'the second').waitFor({ state: 'detached' })
      await page.waitForURL(/\/chat$/)
      await page.goto(`${one.address}/chat/${ids[1]}`)
      await page.locator('.message.user', { hasText: 'the second' }).or(page.locator('.nowhere, h1')).first().waitFor()
      for (const window of [page, other, late]) assert.deepEqual(window.trouble, [])
    }),
  ],
  [
    'a conversation is erased for good after a question that names what is lost, in every window and in the log',
    alone(async ({ open }, one) => {
      const { conversation, taskId } = await one.ask('/api/submit', { text: 'a secret about the harbour' })
      await ended(one, taskId)
      const { conversation: stays, taskId: next } = await one.ask('/api/submit', { text: 'the weather' })
      await ended(one, next)
      const page = await open(one, { path: `/chat/${conversation}` })
      const other = await open(one, { path: `/chat/${conversation}`, language: 'zh' })
      for (const window of [page, other]) await window.locator('.message.bot', { hasText: 'a secret about' }).waitFor()
      // By keyboard alone; the first answer to the question is no.
      await entry(page, 'a secret').locator('.more').focus()
      await page.keyboard.press('Enter')
      await page.getByRole('menuitem', { name: 'Erase for good' }).waitFor()
      await page.keyboard.press('End')
      await page.keyboard.press('Enter')
      const question = page.getByRole('alertdialog', { name: 'Erase “a secret about the harbour” for good?' })
      await question.getByText('This cannot be undone.').waitFor()
      assert.equal(await question.locator('.losses li').count(), 4)
      assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel')
      await page.keyboard.press('Enter')
      await question.waitFor({ state: 'detached' })
      assert.ok(JSON.stringify(await one.ask('/api/log?limit=10000')).includes('a secret about'), 'nothing was done')
      await pick(page, 'a secret', 'Erase for good …')
      await question.getByRole('button', { name: 'Erase for good' }).click()
      await page.waitForURL(/\/chat$/)
      for (const window of [page, other]) {
        await entry(window, 'a secret').waitFor({ state: 'detached' })
        await entry(window, 'the weather').waitFor()
        await window.waitForFunction(() => !document.querySelector('#page').textContent.includes('a secret about'))
      }
      while (JSON.stringify(await one.ask('/api/log?limit=10000')).includes('a secret about')) await new Promise((resolve) => setTimeout(resolve, 50))
      await page.goto(`${one.address}/chat/${stays}`)
      await page.locator('.message.bot', { hasText: 'the weather' }).waitFor()
      for (const window of [page, other]) assert.deepEqual(window.trouble, [])
    }),
  ],
  [
    'a search finds conversations that the list does not have yet, and more of them follow at its end',
    alone(async ({ open }, one) => {
      const { id: needle } = await one.ask('/api/conversations', { title: 'The needle of Cleopatra' })
      const { id: asleep } = await one.ask('/api/conversations', { title: 'Long asleep' })
      for (let n = 0; n < 55; n += 1) await one.ask('/api/conversations', { title: `Hay ${n}` })
      const page = await open(one, { path: '/chat' })
      await entry(page, 'Hay 54').waitFor()
      assert.equal(await entry(page, 'needle').count(), 0)
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('cleopatra NEEDLE')
      await entry(page, 'The needle of Cleopatra').waitFor()
      assert.equal((await titles(page)).length, 1)
      await entry(page, 'The needle').locator('a').click()
      await page.waitForURL(`**/chat/${needle}`)
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('nothing like this')
      await page.getByText('No conversation matches.').waitFor()
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('')
      await entry(page, 'Hay 54').waitFor()
      // A message in one that was not read brings it to the top.
      await one.ask('/api/submit', { text: 'wake up', conversation: asleep })
      await page.locator('.conversations li:first-child', { hasText: 'Long asleep' }).waitFor()
      await page.getByRole('button', { name: 'More conversations' }).click()
      await entry(page, 'Hay 0').first().waitFor()
      assert.equal((await titles(page)).length, 57)
      assert.equal(await page.getByRole('button', { name: 'More conversations' }).count(), 0)
      assert.deepEqual(page.trouble, [])
    }),
  ],
  [
    'a search finds words of messages and of answers, shows where, and goes there; so does the palette',
    alone(async ({ open }, one) => {
      const { conversation, taskId } = await one.ask('/api/submit', { text: 'How many files are there?' })
      await ended(one, taskId)
      const { taskId: later } = await one.ask('/api/submit', { text: 'And the story of Odessa', conversation })
      await ended(one, later)
      for (let n = 0; n < 55; n += 1) await one.ask('/api/conversations', { title: `Hay ${n}` })
      const page = await open(one, { path: '/chat' })
      await entry(page, 'Hay 54').waitFor()
      const search = page.getByRole('searchbox', { name: 'Search conversations' })
      await search.fill('SMELL odessa')
      const found = entry(page, 'How many files')
      await found.locator('.entry-excerpt', { hasText: 'Nobody missed the smell' }).waitFor()
      assert.equal((await titles(page)).length, 1)
      await found.locator('a').click()
      await page.waitForURL(`**/chat/${conversation}/${later}`)
      await search.fill('nobody said this')
      await page.getByText('No conversation matches.').waitFor()
      await page.goto(`${one.address}/chat`)
      await entry(page, 'Hay 54').waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('SMELL odessa')
      await page.getByRole('option', { name: 'Nobody missed the smell' }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(`**/chat/${conversation}/${later}`)
      assert.deepEqual(page.trouble, [])
    }),
  ],
  [
    'the list fits a phone, in Chinese too, and a conversation is one tap away',
    alone(async ({ open }, one) => {
      const { conversation, taskId } = await one.ask('/api/submit', { text: 'a title that is much too long for a phone, and goes on after its end for a while' })
      await ended(one, taskId)
      const page = await open(one, { path: `/chat/${conversation}`, language: 'zh', width: 390, height: 844 })
      await page.locator('.message.bot').waitFor()
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390)
      assert.ok(await page.locator('.composer .send').evaluate((node) => node.getBoundingClientRect().right <= innerWidth))
      await page.getByRole('button', { name: '会话', exact: true }).click()
      await page.locator('.entry .more').click()
      await page.getByRole('menuitem', { name: '置顶' }).click()
      await page.getByRole('region', { name: '已置顶' }).waitFor()
      await page.locator('.entry-link').click()
      await page.locator('.message.bot').waitFor()
      assert.ok(await page.locator('.message.bot').isVisible())
      assert.deepEqual(page.trouble, [])
    }),
  ],
]
