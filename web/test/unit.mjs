// Builds the tests in `test/unit` for Node and runs them.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'vite'

const folder = new URL('unit', import.meta.url).pathname
const out = mkdtempSync(join(tmpdir(), 'polis-page-'))
const input = Object.fromEntries(readdirSync(folder).filter((name) => name.endsWith('.test.ts')).map((name) => [name.slice(0, -3), join(folder, name)]))
let status = 1
try {
  await build({ configFile: false, logLevel: 'error', ssr: { noExternal: true }, build: { ssr: true, outDir: out, emptyOutDir: true, rollupOptions: { input, output: { entryFileNames: '[name].mjs' } } } })
  const tests = Object.keys(input).map((name) => join(out, `${name}.mjs`))
  status = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...tests], { stdio: 'inherit' }).status ?? 1
} finally {
  rmSync(out, { recursive: true, force: true })
}
process.exit(status)
