// What differs between two texts, line by line.

export type Line = { kind: 'same' | 'gone' | 'new'; text: string }

const MOST = 400

export function diff(before: string, after: string): Line[] {
  const a = before.split('\n').slice(0, MOST)
  const b = after.split('\n').slice(0, MOST)
  const width = b.length + 1
  const longest = new Uint16Array((a.length + 1) * width)
  const at = (i: number, j: number) => longest[i * width + j] as number
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: Line[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] as string })
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) lines.push({ kind: 'gone', text: a[i++] as string })
    else lines.push({ kind: 'new', text: b[j++] as string })
  }
  return lines
}

/** A value as lines of JSON; a text of several lines has several. */
export function lines(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/^( *)(.*)$/gm, (_, indent: string, line: string) => indent + line.replace(/\\(n|.)/g, (mark, what: string) => (what === 'n' ? `${mark}\n${indent}  ` : mark)))
}

/** What changed, with two lines on either side; a dash of dots stands for the rest. */
export function around(all: Line[]): Line[] {
  const near = all.map((_, place) => all.slice(Math.max(0, place - 2), place + 3).some((line) => line.kind !== 'same'))
  return all.flatMap((line, place) => (near[place] ? [line] : near[place - 1] || place === 0 ? [{ kind: 'same' as const, text: '⋯' }] : []))
}
