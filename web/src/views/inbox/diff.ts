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
