// What differs between two texts, line by line.

/** A line, with its number in the text before and in the one after. */
export type Line = { kind: 'same' | 'gone' | 'new'; text: string; before?: number; after?: number }

/** Lines of which more are compared than this are all gone and all new; it bounds the table of the comparison. */
const MOST_PAIRS = 1_000_000

export function diff(before: string, after: string): Line[] {
  return diffLines(before.split('\n'), after.split('\n'))
}

/** The same for lines, of which the first has this number. */
export function diffLines(before: readonly string[], after: readonly string[], first = 1): Line[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1
  let end = 0
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const same = (from: number, to: number, shift: number): Line[] => before.slice(from, to).map((text, place) => ({ kind: 'same', text, before: first + from + place, after: first + from + place + shift }))
  return [
    ...same(0, start, 0),
    ...changed(before.slice(start, before.length - end), after.slice(start, after.length - end), first + start),
    ...same(before.length - end, before.length, after.length - before.length),
  ]
}

/** The lines of a file that a call changes, from two texts of which the first line has a number. */
export function fileLines({ before, after, line, isCut }: { before: string; after: string; line: number; isCut: boolean }): Line[] {
  const isEnded = (text: string) => text === '' || text.endsWith('\n')
  // An end of the text that is no end of a line is a change too; where the text is cut, it says nothing about the file.
  const isWhole = !isCut && !(isEnded(before) && isEnded(after))
  const linesOf = (text: string) => (text === '' ? [] : (isWhole ? text : text.replace(/\n$/, '')).split('\n'))
  const all = diffLines(linesOf(before), linesOf(after), line)
  return isCut ? withoutEnd(all) : all
}

/** The lines without those at the end that are only on one side: both texts are cut, and not at the same place of the file. */
function withoutEnd(all: Line[]): Line[] {
  const end = all.findLastIndex(({ kind }) => kind === 'same') + 1
  return all.slice(0, end).some(({ kind }) => kind !== 'same') ? all.slice(0, end) : all
}

function changed(a: readonly string[], b: readonly string[], first: number): Line[] {
  const lines: Line[] = []
  let i = 0
  let j = 0
  const gone = () => lines.push({ kind: 'gone', text: a[i] as string, before: first + i++ })
  const added = () => lines.push({ kind: 'new', text: b[j] as string, after: first + j++ })
  if (a.length * b.length > MOST_PAIRS) {
    while (i < a.length) gone()
    while (j < b.length) added()
    return lines
  }
  const width = b.length + 1
  const longest = new Uint32Array((a.length + 1) * width)
  const at = (i: number, j: number) => longest[i * width + j] as number
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push({ kind: 'same', text: a[i] as string, before: first + i++, after: first + j++ })
    else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) gone()
    else added()
  }
  return lines
}

/** A value as lines of JSON; a text of several lines has several. */
export function lines(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/^( *)(.*)$/gm, (_, indent: string, line: string) => indent + line.replace(/\\(n|.)/g, (mark, what: string) => (what === 'n' ? `${mark}\n${indent}  ` : mark)))
}

/** What changed, with some lines on either side; a dash of dots stands for the rest. */
export function around(all: Line[], sides = 2): Line[] {
  const near = all.map((_, place) => all.slice(Math.max(0, place - sides), place + sides + 1).some((line) => line.kind !== 'same'))
  return all.flatMap((line, place) => (near[place] ? [line] : near[place - 1] || place === 0 ? [{ kind: 'same' as const, text: '⋯' }] : []))
}
