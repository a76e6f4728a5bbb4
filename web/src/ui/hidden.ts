// Characters that a person cannot see, or that turn the order of others around.

export const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/u

/** The parts of a text: what can be read, and between those the names of characters that cannot. */
export function parts(text: string): { text: string; isHidden: boolean }[] {
  const found: { text: string; isHidden: boolean }[] = []
  let rest = text
  for (let at = rest.search(HIDDEN); at >= 0; at = rest.search(HIDDEN)) {
    const envelope = String.fromCodePoint(rest.codePointAt(at) as number)
    if (at > 0) found.push({ text: rest.slice(0, at), isHidden: false })
    found.push({ text: `U+${(envelope.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`, isHidden: true })
    rest = rest.slice(at + envelope.length)
  }
  if (rest) found.push({ text: rest, isHidden: false })
  return found
}
