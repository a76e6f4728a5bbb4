// What a tool or an agent gave, as pieces to show. Whatever cannot be read is shown as text: nothing is lost.

import { parsePartialJson } from '../json/partial'
import type { Json, JsonObject } from '../types'
import type { ToolResultContentItem } from './contract'

const KINDS = new Set(['text', 'json', 'webcomponent', 'component'])

/** Reads a result. `isGrowing` says that it is still being written. */
export function parseToolResultContent(content: string, isGrowing = false): ToolResultContentItem[] {
  const text = content.trim()
  if (!text) return []
  if (!text.startsWith('{') && !text.startsWith('[')) return [{ type: 'text', value: content }]
  const value = read(text, isGrowing)
  if (value === undefined) return [{ type: 'text', value: content }]
  const list = isObject(value) && Array.isArray(value.content) ? value.content : Array.isArray(value) && value.every(isItem) ? value : undefined
  if (list) return list.flatMap(items)
  return isItem(value) ? items(value) : [{ type: 'json', value: JSON.stringify(value, null, 2) }]
}

function read(text: string, isGrowing: boolean): Json | undefined {
  if (isGrowing) return parsePartialJson(text).data
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isItem(value: Json): value is JsonObject {
  return isObject(value) && typeof value.type === 'string' && KINDS.has(value.type)
}

function items(value: Json): ToolResultContentItem[] {
  if (!isItem(value)) {
    // As MCP has it: `{ type: "text", text }`.
    if (isObject(value) && typeof value.text === 'string') return [{ type: 'text', value: value.text }]
    return [{ type: 'json', value: JSON.stringify(value, null, 2) }]
  }
  const { type, value: inner, text, component, props, ...rest } = value
  if (type !== 'component') {
    const whole = typeof inner === 'string' ? inner : typeof text === 'string' ? text : JSON.stringify(inner ?? rest, null, 2)
    return [{ type: type as ToolResultContentItem['type'], value: whole }]
  }
  // The props stand in a field of their own, or beside the name.
  return [{ type, component: String(component ?? ''), props: isObject(props) ? props : rest }]
}
