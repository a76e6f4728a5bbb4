// Reads JSON that is still being written. Each character is looked at once; the value grows in place. What is not whole yet
// is shown as far as it goes: half a text is a text, half a number or word is nothing.

import type { Json, JsonObject } from '../types'

type Frame = { kind: 'object'; value: JsonObject; key?: string; expects: 'key' | 'colon' | 'value' | 'comma' } | { kind: 'array'; value: Json[]; expects: 'value' | 'comma' }

const WORDS: Record<string, Json> = { true: true, false: false, null: null }
const ESCAPES: Record<string, string> = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }
const MAX_DEPTH = 128

export class PartialJson {
  /** What there is so far. */
  value: Json | undefined
  /** Whether it is whole. */
  isDone = false
  /** Whether it is no JSON. */
  isBroken = false
  private stack: Frame[] = []
  private text: string | undefined
  private isKey = false
  private escape: string | undefined
  private token = ''

  push(chunk: string): this {
    for (const char of chunk) {
      if (this.isBroken) break
      if (this.text !== undefined) this.inText(char)
      else this.outside(char)
    }
    if (this.text !== undefined && !this.isKey) this.put(this.text)
    return this
  }

  /** The end of the input: a number at the top has no other end. */
  end(): this {
    this.endToken()
    if (!this.isDone) this.isBroken = true
    return this
  }

  private inText(char: string): void {
    if (this.escape !== undefined) {
      this.escape += char
      if (this.escape[0] === 'u') {
        if (this.escape.length < 5) return
        const code = Number.parseInt(this.escape.slice(1), 16)
        if (Number.isNaN(code)) this.isBroken = true
        else this.text += String.fromCharCode(code)
      } else {
        const plain = ESCAPES[char]
        if (plain === undefined) this.isBroken = true
        else this.text += plain
      }
      this.escape = undefined
    } else if (char === '\\') this.escape = ''
    else if (char === '"') {
      const whole = this.text as string
      this.text = undefined
      const top = this.stack.at(-1)
      if (this.isKey && top?.kind === 'object') {
        this.isKey = false
        top.key = whole
        top.expects = 'colon'
      } else {
        this.put(whole)
        this.valued()
      }
    } else this.text += char
  }

  private outside(char: string): void {
    if (/[-+.\w]/.test(char)) {
      this.token += char
      return
    }
    this.endToken()
    if (this.isBroken || /\s/.test(char)) return
    const top = this.stack.at(-1)
    if (char === '"') {
      this.isKey = top?.kind === 'object' && top.expects === 'key'
      if (!this.isKey && !this.wantsValue()) this.isBroken = true
      else this.text = ''
    } else if (char === '{' || char === '[') this.open(char === '{')
    else if (char === ':' && top?.kind === 'object' && top.expects === 'colon') top.expects = 'value'
    else if (char === ',' && top && top.expects === 'comma') top.expects = top.kind === 'object' ? 'key' : 'value'
    else if (char === '}' && top?.kind === 'object' && this.mayClose(top)) this.close()
    else if (char === ']' && top?.kind === 'array' && this.mayClose(top)) this.close()
    else this.isBroken = true
  }

  private mayClose(top: Frame): boolean {
    const isEmpty = top.kind === 'object' ? Object.keys(top.value).length === 0 : top.value.length === 0
    return top.expects === 'comma' || (isEmpty && top.expects === (top.kind === 'object' ? 'key' : 'value'))
  }

  private wantsValue(): boolean {
    const top = this.stack.at(-1)
    return top ? top.expects === 'value' : !this.isDone && this.value === undefined
  }

  private open(isObject: boolean): void {
    if (!this.wantsValue() || this.stack.length >= MAX_DEPTH) {
      this.isBroken = true
      return
    }
    const frame: Frame = isObject ? { kind: 'object', value: {}, expects: 'key' } : { kind: 'array', value: [], expects: 'value' }
    this.put(frame.value)
    this.stack.push(frame)
  }

  private close(): void {
    this.stack.pop()
    this.valued()
  }

  private endToken(): void {
    if (!this.token) return
    const token = this.token
    this.token = ''
    const value = token in WORDS ? WORDS[token] : /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(token) ? Number(token) : undefined
    if (value === undefined || !this.wantsValue()) this.isBroken = true
    else {
      this.put(value)
      this.valued()
    }
  }

  /** Puts a value where one is expected; a growing text again and again. */
  private put(value: Json): void {
    const top = this.stack.at(-1)
    if (!top) this.value = value
    else if (top.kind === 'object') Object.defineProperty(top.value, top.key ?? '', { value, writable: true, enumerable: true, configurable: true })
    else if (this.text !== undefined || this.isTextPut) {
      top.value[this.isTextPut ? top.value.length - 1 : top.value.length] = value
      this.isTextPut = this.text !== undefined
    } else top.value.push(value)
  }
  private isTextPut = false

  private valued(): void {
    this.isTextPut = false
    const top = this.stack.at(-1)
    if (top) top.expects = 'comma'
    else this.isDone = true
  }
}

/** What can be read of a text that is perhaps not whole: words around the object and a fence are left out. */
export function parsePartialJson<T = Json>(text: string): { data: T | undefined; isWhole: boolean } {
  const start = text.search(/[[{]/)
  if (start < 0) return { data: undefined, isWhole: false }
  const parser = new PartialJson()
  for (const char of text.slice(start)) {
    parser.push(char)
    if (parser.isDone || parser.isBroken) break
  }
  return { data: parser.value as T | undefined, isWhole: parser.isDone }
}
