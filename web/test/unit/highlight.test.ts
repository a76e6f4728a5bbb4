// Code in colours: every character stays, and what is written stays as it was coloured.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Kind, highlight } from '../../src/ui/highlight'

const SAMPLES: { [language: string]: string } = {
  typescript: '// note\nconst text: string = `a ${1} b` + "c\\"d"\nexport async function run(n = 0x1f) { return new Map() }',
  python: '@cache\ndef area(r: float) -> float:\n    """Two\n    lines."""\n    return 3.14 * r ** 2  # about\n',
  rust: "#[derive(Debug)]\npub struct Ship<'a> { name: &'a str }\nfn main() { println!(\"{}\", 'x'); let r = r#\"a \"quoted\" b\"#; }",
  go: 'package main\nfunc main() { fmt.Println(`raw\nlines`, 42) }',
  java: 'public class A { /* long\n comment */ int x = 1; }',
  bash: 'for f in *.md; do\n  echo "$f" --long # each\ndone',
  sql: "SELECT count(*) FROM ships WHERE name = 'O''Hara' -- all\n",
  json: '{"ships": [412, 38.5], "open": true, "note": "a: b"}',
  html: '<!-- x -->\n<a href="https://a.example" class=\'b\'>text &amp; more</a>',
  css: '@media (min-width: 40rem) { .a:hover { color: #0e6a70; --x: 2px } }',
  yaml: '# note\nports:\n  - name: "http"\n    port: 80\n',
  toml: '[models]\nlocal = true # yes\n',
  diff: '@@ -1 +1 @@\n-old\n+new\n same',
  ruby: 'def a(b) = puts "x" if :y',
  php: '<?php function a($b) { return "c"; } // d',
  lua: 'local x = 1 --[[ a\nb ]] return x',
  dockerfile: 'FROM debian\nRUN --mount=type=cache echo "x"',
}

const kindOf = (language: string, text: string, piece: string): Kind | undefined => highlight(text, language).flat().find(([, one]) => one.includes(piece))?.[0]

test('no character is lost in any language, at any length', () => {
  for (const [language, text] of Object.entries(SAMPLES)) {
    for (let end = 0; end <= text.length; end += 1) {
      const part = text.slice(0, end)
      assert.equal(highlight(part, language).map((line) => line.map(([, piece]) => piece).join('')).join('\n'), part, language)
    }
    assert.ok(new Set(highlight(text, language).flat().map(([kind]) => kind)).size >= 3, `${language} has colours`)
  }
})

test('words, texts, numbers and comments are told apart', () => {
  assert.equal(kindOf('ts', SAMPLES.typescript as string, 'note'), 'comment')
  assert.equal(kindOf('TypeScript', SAMPLES.typescript as string, 'const'), 'word')
  assert.equal(kindOf('ts', SAMPLES.typescript as string, '0x1f'), 'number')
  assert.equal(kindOf('ts', SAMPLES.typescript as string, 'Map'), 'name')
  assert.equal(kindOf('python', SAMPLES.python as string, 'lines.'), 'string', 'a text over several lines')
  assert.equal(kindOf('rust', SAMPLES.rust as string, 'quoted'), 'string')
  assert.equal(kindOf('rust', SAMPLES.rust as string, "'a"), 'name', 'a lifetime is no text')
  assert.equal(kindOf('sql', 'select 1 from ships', 'from'), 'word')
  assert.equal(kindOf('json', SAMPLES.json as string, '"note"'), 'name')
  assert.equal(kindOf('diff', SAMPLES.diff as string, '-old'), 'gone')
  assert.equal(kindOf('html', SAMPLES.html as string, 'https://a.example'), 'string', 'an address is no comment')
})

test('a language that is not known, and a very long text, have no colours', () => {
  assert.deepEqual(highlight('if x\ny', 'klingon'), [[[undefined, 'if x']], [[undefined, 'y']]])
  assert.ok(highlight('let x = 1\n'.repeat(10_000), 'js').every((line) => line.every(([kind]) => kind === undefined)))
})

test('text that nothing closes costs no more than its length', () => {
  // Of the processor, which a busy machine does not change. What grows with the square takes seconds.
  const spent = () => process.cpuUsage().user / 1000
  for (const language of Object.keys(SAMPLES)) {
    for (const piece of ['"', "'", '`', '/*', '<!--', '{', '$', '#', '-', '[', 'a', 'a.', '- ', 'a-', 'r#"', '&', ' ', '@', '@a.', '<a b="', "b'", 'a(', '= ', '\n ', '"\n', '--', '1.']) {
      const from = spent()
      highlight(piece.repeat(60_000 / piece.length), language)
      assert.ok(spent() - from < 1_000, `${language}: ${JSON.stringify(piece)} took ${Math.round(spent() - from)} ms`)
    }
  }
})
