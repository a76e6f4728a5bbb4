// Components: by name, from others, while they grow, and what a model's HTML can do (nothing).

import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const SHIPPED = ['resource-info', 'task-info', 'resource-list', 'planner-response', 'executor-response', 'verifier-response', 'todo-list', 'summary-response', 'html-page']

/** Puts a script beside a society. */
function script(one, name, text) {
  mkdirSync(join(one.folder, 'components'), { recursive: true })
  writeFileSync(join(one.folder, 'components', name), text)
}

/** Listens for whatever a document gets out. */
async function listener() {
  const heard = []
  const server = createServer((request, response) => {
    heard.push(`http ${request.url}`)
    response.end()
  })
  server.on('upgrade', (request, socket) => {
    heard.push(`upgrade ${request.url}`)
    socket.destroy()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const udp = createSocket('udp4')
  udp.on('message', () => heard.push('udp'))
  await new Promise((resolve) => udp.bind(0, '127.0.0.1', resolve))
  const close = () => {
    server.close()
    udp.close()
  }
  return { heard, at: `127.0.0.1:${server.address().port}`, udp: udp.address().port, close }
}

/** A document that tries everything to be heard, to see, or to act. */
const attacks = ({ at, udp }) => `
<link rel="prefetch" href="http://${at}/prefetch"><link rel="stylesheet" href="http://${at}/style.css">
<style>@import url(http://${at}/import.css); body { background: url(http://${at}/css.png) }</style>
<img src="http://${at}/img.png" onerror="try{parent.document.title='stolen'}catch{}">
<meta http-equiv="refresh" content="1;url=http://${at}/refresh">
<svg onload="fetch('http://${at}/svg')"></svg>
<iframe src="http://${at}/frame"></iframe><iframe srcdoc="<script>fetch('http://${at}/srcdoc')</script>"></iframe>
<object data="http://${at}/object"></object><embed src="http://${at}/embed">
<video src="http://${at}/video"></video>
<form id="f" action="http://${at}/form" method="post"><input name="a" value="b"></form>
<a id="a" href="http://${at}/link" ping="http://${at}/ping" target="_top">link</a>
<script>
const tries = [
  () => fetch('http://${at}/fetch'), () => navigator.sendBeacon('http://${at}/beacon'), () => new WebSocket('ws://${at}/socket'),
  () => new EventSource('http://${at}/events'), () => { new Image().src = 'http://${at}/image' }, () => open('http://${at}/popup'),
  () => { top.location = 'http://${at}/top' }, () => { location = 'http://${at}/self' }, () => document.getElementById('f').submit(),
  () => document.getElementById('a').click(), () => new Worker('data:text/javascript,fetch("http://${at}/worker")'),
  () => { top.document.title = 'stolen' }, () => localStorage.setItem('a', 'b'), () => document.cookie,
  () => { const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${udp}' }] }); peer.createDataChannel('x'); peer.createOffer().then((o) => peer.setLocalDescription(o)) },
  () => import('http://${at}/module.js'), () => eval('fetch("http://${at}/eval")'),
]
let ran = 0
for (const one of tries) { try { one(); ran += 1 } catch {} }
document.body.append('ran ' + ran)
</script>
<p>the document is shown</p>`

export const checks = [
  [
    'the gallery has every component, and shows each while it is still being written',
    async ({ open, offline }) => {
      const page = await open(offline, { path: '/gallery' })
      await page.locator('.exhibit').first().waitFor()
      for (const name of SHIPPED) {
        const exhibit = page.locator('.exhibit', { has: page.getByRole('heading', { name, exact: true }) })
        const slider = exhibit.locator('input[type=range]')
        for (const share of ['0', '35', '70', '100']) await slider.fill(share)
        assert.equal(await exhibit.locator('.component-notice').count(), 0, name)
      }
      await page.locator('.component-notice', { hasText: 'never-registered' }).waitFor()
      assert.deepEqual(page.trouble, [])
    },
  ],
  [
    'one script adds a component, another replaces one, and only registered actions do anything',
    async ({ open, society, program }) => {
      const one = await society({ program })
      try {
        script(one, 'chart.js', `
          class SalesChart extends HTMLElement { set props({ months = [] }) { this.replaceChildren(...months.map(({ name }) => Object.assign(document.createElement('button'), { textContent: name, onclick: () => this.dispatchEvent(new CustomEvent('component-action', { detail: { action: name === 'May' ? 'pick' : 'never', data: { name } } })) }))) } }
          customElements.define('sales-chart', SalesChart)
          polis.components.register('sales-chart', 'sales-chart', { schema: { type: 'object', properties: { months: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } } } }, sample: { months: [{ name: 'May', evil: 1 }, { name: 'June' }] } })
          polis.actions.register('pick', async (data) => { await polis.actions.tellSociety('sales-chart', 'pick', data); document.title = 'picked ' + JSON.stringify(data) })`)
        script(one, 'task.js', `polis.components.register('task-info', ({ props }) => polis.React.createElement('p', { className: 'mine' }, 'mine: ' + props.name), { sample: { name: 'Report' } })`)
        const page = await open(one, { path: '/gallery' })
        await page.locator('.mine', { hasText: 'mine: Report' }).waitFor()
        await page.getByRole('button', { name: 'June' }).click()
        await page.locator('[role=alert]', { hasText: 'never' }).waitFor({ state: 'attached' })
        await page.getByRole('button', { name: 'May' }).click()
        await page.waitForFunction(() => document.title === 'picked {"name":"May"}')
        const { events } = await one.ask('/api/log?limit=1000')
        assert.ok(events.some(({ event }) => /sales-chart/.test(event.messageSent?.envelope.payload.text ?? JSON.stringify(event.messageSent ?? ''))), 'the society was told')
        assert.deepEqual(page.trouble, [])
      } finally {
        await one.end()
      }
    },
  ],
  [
    'a document of a model is shown and reaches nothing',
    async ({ open, society, program }) => {
      const one = await society({ program })
      const ear = await listener()
      try {
        // The first says that it goes elsewhere as everybody does, which is left out; the second so that only the frame stops it.
        const sly = attacks(ear).replace('<meta ', '<meta data-a=">" ')
        script(one, 'attack.js', `for (const [name, html] of Object.entries(${JSON.stringify({ attack: attacks(ear), 'sly-attack': sly })})) polis.components.register(name, polis.components.get('html-page'), { sample: { html } })`)
        const page = await open(one, { path: '/gallery/attack', isAttacked: true })
        const frame = page.frameLocator('iframe')
        await frame.getByText('the document is shown').waitFor()
        assert.equal(await frame.getByText(/^ran/).count(), 0, 'its scripts do not run')
        await page.waitForTimeout(2500)
        assert.deepEqual(ear.heard, [])
        assert.ok(await frame.getByText('the document is shown').isVisible(), 'it is still there')
        assert.doesNotMatch(await page.title(), /stolen/)
        assert.match(page.url(), /\/gallery\/attack$/)
        await page.goto(`${one.address}/gallery/sly-attack`)
        await page.locator('iframe').first().waitFor()
        await page.waitForTimeout(2500)
        assert.deepEqual(ear.heard, [])
        assert.match(page.url(), /\/gallery\/sly-attack$/)
        assert.equal((await page.context().pages()).length, 1, 'no other window')
        assert.equal((await fetch(`${one.address}/sandbox/live`)).status, 403, 'live documents are off')
      } finally {
        ear.close()
        await one.end()
      }
    },
  ],
  [
    'a live document, where the operator allowed it, runs and still reaches nothing',
    async ({ open, society, program }) => {
      const one = await society({ program, settings: '[page]\nlive_html = true\n' })
      const ear = await listener()
      try {
        const quiet = attacks(ear).replace(/<meta[^>]*>/, '').replace(/\(\) => \{ location = [^}]*\},/, '')
        script(one, 'attack.js', `polis.components.register('attack', polis.components.get('html-page'), { sample: { html: ${JSON.stringify(quiet)} } })`)
        const page = await open(one, { path: '/gallery/attack', isAttacked: true })
        await page.frameLocator('.html-frame.live iframe').getByText(/ran \d+/).waitFor()
        await page.waitForTimeout(2500)
        assert.deepEqual(ear.heard, [])
        assert.doesNotMatch(await page.title(), /stolen/)
        assert.match(page.url(), /\/gallery\/attack$/)
      } finally {
        ear.close()
        await one.end()
      }
    },
  ],
]
