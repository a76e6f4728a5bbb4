// Where a text stops being JSON. Browsers tell it in words of their own, or not at all.

const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y
const SPACE = /[ \t\n\r]*/y

/** The first place from which a text cannot be read on; none when it is JSON. */
export function faultOf(text: string): number | undefined {
  let at = 0
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found) at = pattern.lastIndex
    return found !== null
  }
  const space = () => take(SPACE)
  const is = (sign: string): boolean => {
    space()
    if (text[at] !== sign) return false
    at += 1
    return true
  }
  const several = (end: string, one: () => boolean): boolean => {
    if (is(end)) return true
    do if (!one()) return false
    while (is(','))
    return is(end)
  }
  const member = (): boolean => (space(), take(STRING)) && is(':') && value()
  const value = (): boolean => {
    if (is('{')) return several('}', member)
    if (is('[')) return several(']', value)
    return take(STRING) || take(NUMBER) || take(WORD)
  }
  if (!value()) return at
  space()
  return at === text.length ? undefined : at
}
