// The real program with a data directory of its own, for the tests of the page. It can be killed and started again.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Starts the program; without a model it is the offline one. */
export async function society({ program, model, settings = '', files = {}, port = 0 }) {
  const folder = mkdtempSync(join(tmpdir(), 'polis-page-'))
  writeFileSync(join(folder, 'sales.csv'), 'city,product,amount,quantity\nParis,tea,12.5,3\nBerlin,coffee,20,5\nParis,coffee,33,9\nTokyo,tea,8,2\nBerlin,tea,14,4\n')
  writeFileSync(join(folder, 'notes.md'), '# Notes\n\nBuy milk. Milk is good.\n')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const choice = model ? `model = "openai-compatible/scripted"\n` : ''
  writeFileSync(join(folder, 'polis.toml'), `${choice}${settings}`)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^POLIS_|_API_KEY$|_BASE_URL$|^OLLAMA/.test(name)))
  // The folder is ours, and the configuration of whoever runs the tests must not count.
  Object.assign(env, { XDG_CONFIG_HOME: `${folder}-user`, POLIS_TRUST: 'all' })
  if (model) env.OPENAI_COMPATIBLE_BASE_URL = model.url
  else env.POLIS_MODEL = 'offline'
  const one = { folder, port }
  process.setMaxListeners(0)
  one.start = async () => {
    const child = spawn(program, ['serve', '--listen', `127.0.0.1:${one.port}`, '--data', join(folder, '.polis')], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    one.child = child
    process.once('exit', () => child.kill('SIGKILL'))
    let said = ''
    child.stderr.on('data', (chunk) => (said += chunk))
    const address = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the program did not start: ${said}`)), 30_000)
      child.stdout.on('data', (chunk) => {
        said += chunk
        const found = said.match(/listening on (http:\/\/\S+)/)
        if (!found) return
        clearTimeout(timer)
        resolve(found[1])
      })
      child.once('exit', (code) => reject(new Error(`the program ended with ${code}: ${said}`)))
    })
    one.address = address
    one.port = Number(new URL(address).port)
    one.token = readFileSync(join(folder, '.polis/token'), 'utf8').trim()
    return one
  }
  one.ask = async (path, body) => {
    const headers = { authorization: `Bearer ${one.token}`, 'content-type': 'application/json' }
    const response = await fetch(one.address + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) })
    return response.json()
  }
  one.kill = (signal = 'SIGKILL') =>
    new Promise((resolve) => {
      if (one.child.exitCode !== null || one.child.signalCode) return resolve()
      one.child.once('exit', resolve)
      one.child.kill(signal)
    })
  one.end = async () => {
    await one.kill()
    rmSync(folder, { recursive: true, force: true })
  }
  return one.start()
}
