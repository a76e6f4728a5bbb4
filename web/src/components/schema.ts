// A small part of JSON Schema: enough to say what a component takes. A component gets what its schema names and nothing else,
// so no text of a model becomes a prop that nobody meant.

import type { Json, JsonObject } from '../types'

export interface Schema {
  type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean'
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: Json[]
  maxLength?: number
  maxItems?: number
  description?: string
}

export interface Checked {
  value: JsonObject
  /** What does not fit, each with its place. */
  wrong: string[]
}

const LONGEST_TEXT = 200_000
const LONGEST_LIST = 10_000

/** The props as far as they fit. While they are still being written, what is missing is not wrong. */
export function check(schema: Schema, given: unknown, isGrowing = false): Checked {
  const wrong: string[] = []
  const value = fit(schema, given, 'props', isGrowing, wrong)
  return { value: isObject(value) ? value : {}, wrong }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fit(schema: Schema, given: unknown, place: string, isGrowing: boolean, wrong: string[]): Json | undefined {
  const no = (what: string): undefined => {
    wrong.push(`${place}: ${what}`)
    return undefined
  }
  if (schema.enum && !schema.enum.includes(given as Json)) {
    return isGrowing && typeof given === 'string' ? undefined : no(`is none of ${schema.enum.join(', ')}`)
  }
  switch (schema.type) {
    case 'object': {
      if (!isObject(given)) return no('is no object')
      const kept: JsonObject = {}
      for (const [name, part] of Object.entries(schema.properties ?? {})) {
        if (given[name] === undefined || given[name] === null) continue
        const value = fit(part, given[name], `${place}.${name}`, isGrowing, wrong)
        if (value !== undefined) kept[name] = value
      }
      if (!schema.properties) return plain(given) as Json
      for (const name of schema.required ?? []) if (!(name in kept) && !isGrowing) no(`${name} is missing`)
      return kept
    }
    case 'array': {
      if (!Array.isArray(given)) return no('is no list')
      const most = Math.min(schema.maxItems ?? LONGEST_LIST, LONGEST_LIST)
      if (given.length > most) no(`has more than ${most} items`)
      const part = schema.items ?? {}
      return given
        .slice(0, most)
        .map((item, n) => fit(part, item, `${place}[${n}]`, isGrowing, wrong))
        .filter((item) => item !== undefined)
    }
    case 'string': {
      if (typeof given === 'number' || typeof given === 'boolean') return String(given)
      if (typeof given !== 'string') return no('is no text')
      const most = Math.min(schema.maxLength ?? LONGEST_TEXT, LONGEST_TEXT)
      return given.length > most ? `${given.slice(0, most)}…` : given
    }
    case 'number':
    case 'integer':
      return typeof given === 'number' && Number.isFinite(given) ? given : no('is no number')
    case 'boolean':
      return typeof given === 'boolean' ? given : no('is neither true nor false')
    default:
      return plain(given) as Json
  }
}

/** Only what JSON can say: no functions, nothing inherited. */
function plain(given: unknown): unknown {
  return given === undefined ? undefined : JSON.parse(JSON.stringify(given) ?? 'null')
}
