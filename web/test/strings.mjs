// Fails on a text outside the catalogue, on a key that is used and not there, on one that is there and not used, and on a
// pair whose two sides do not match. It reads the sources as a person would: markup, labels, and calls of `t`.

import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

const here = new URL('../src', import.meta.url).pathname
const wrong = []

function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? files(path) : /\.tsx?$/.test(name) ? [path] : []
  })
}

/** Texts in markup, and in the attributes that people read. */
export function stray(source) {
  const found = []
  const plain = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
  for (const [, text] of plain.matchAll(/(?<![=\s])>([^<>{}=;()]*\p{L}{2,}[^<>{}=;()]*)<\//gu)) found.push(text.trim())
  for (const [, text] of plain.matchAll(/\b(?:aria-label|title|placeholder|alt|label)="([^"]*\p{L}{2,}[^"]*)"/gu)) found.push(text)
  for (const [, text] of plain.matchAll(/(['"`])([^'"`\n]*\p{Script=Han}[^'"`\n]*)\1/gu)) found.push(text)
  return found
}

/** The keys with their two sides, read from the files of the catalogue. */
function catalogue() {
  const pairs = new Map()
  for (const path of files(join(here, 'i18n'))) {
    const source = readFileSync(path, 'utf8')
    for (const match of source.matchAll(/^ {2}'?([\w.]+)'?: \[\s*((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)),\s*((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)),?\s*\],?$/gm)) {
      const [, key, en, zh] = match
      if (pairs.has(key)) wrong.push(`${key}: stands in the catalogue twice`)
      pairs.set(key, [en.slice(1, -1), zh.slice(1, -1)])
    }
  }
  return pairs
}

/** Sides that are the same in both languages by intent: names and signs. */
const SAME = /^[\p{Lu}\d\s{}·:./%$,+#@()_-]*$|^(?:Polis|\{.*\}|[^\p{L}]*)$/u

const pairs = catalogue()
const places = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort().join()
for (const [key, [en, zh]] of pairs) {
  if (!en.trim() || !zh.trim()) wrong.push(`${key}: one side is empty`)
  if (places(en) !== places(zh)) wrong.push(`${key}: the two sides have other places to fill: ${places(en)} and ${places(zh)}`)
  if (!key.startsWith('language.') && !/\p{Script=Han}/u.test(zh) && en === zh && !SAME.test(en)) wrong.push(`${key}: is not translated`)
  if (!key.startsWith('language.') && /\p{Script=Han}/u.test(en)) wrong.push(`${key}: the English side is Chinese`)
}

const used = new Set()
let everything = ''
for (const path of files(here)) {
  const name = relative(here, path)
  const source = readFileSync(path, 'utf8')
  if (name.startsWith('i18n/')) continue
  everything += source
  for (const text of stray(source)) wrong.push(`${name}: a text outside the catalogue: ${JSON.stringify(text)}`)
  for (const [, key] of source.matchAll(/\b(?:t|count)\(\s*'([\w.]+)'/g)) {
    used.add(key)
    if (!pairs.has(key)) wrong.push(`${name}: no text for ${key}`)
  }
}
const families = [...everything.matchAll(/`([\w.]+)\.\$\{/g)].map((match) => `${match[1]}.`)
for (const key of pairs.keys()) {
  const base = key.replace(/_one$/, '')
  const isUsed = everything.includes(`'${base}'`) || families.some((family) => base.startsWith(family))
  if (!isUsed) wrong.push(`${key}: is used nowhere`)
}

// The check itself must see what it is for.
const probes = ['<p>Hello there</p>', '<input placeholder="Your name" />', "const a = '你好'"]
for (const probe of probes) if (stray(probe).length === 0) wrong.push(`this check is blind to ${probe}`)

for (const line of wrong) console.error(line)
console.log(`${pairs.size} texts in two languages`)
process.exit(wrong.length ? 1 : 0)
