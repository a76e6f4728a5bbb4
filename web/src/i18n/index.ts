// Every text that the page shows, in English and in Chinese. Each area has a file of its own with both languages side by
// side; no text stands anywhere else (`npm run check` looks).

import { useSyncExternalStore } from 'react'
import { approvals } from './approvals'
import { chat } from './chat'
import { common } from './common'
import { first } from './first'
import { gallery } from './gallery'
import type { organisation } from './organisation'
import type { settings } from './settings'
import type { tools } from './tools'
import type { trace } from './trace'

export type Language = 'en' | 'zh'

const FIRST = { ...common, ...chat, ...approvals, ...first, ...gallery }
type Later = typeof organisation & typeof settings & typeof tools & typeof trace
/** The texts so far; those of some views come with the view. */
const CATALOGUE = FIRST as typeof FIRST & Later

/** Adds the texts of a view that is loaded when it is first shown. */
export const addTexts = (texts: Partial<Later>): void => void Object.assign(CATALOGUE, texts)

export type Key = keyof typeof CATALOGUE
/** Keys that also have a form for exactly one, `KEY_one`. */
export type CountKey = { [K in Key]: K extends `${infer Base}_one` ? (Base extends Key ? Base : never) : never }[Key]
type Values = Record<string, string | number>

const STORED = 'polis.language'
const listeners = new Set<() => void>()
let language: Language = stored() ?? (navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en')
apply()

function stored(): Language | undefined {
  const value = localStorage.getItem(STORED)
  return value === 'en' || value === 'zh' ? value : undefined
}

function apply(): void {
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
}

/** A text in the language of the page, with `{name}` filled in. */
export function t(key: Key, values?: Values): string {
  const text = CATALOGUE[key][language === 'zh' ? 1 : 0]
  return values ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole)) : text
}

/** The side of a pair that is in the language of the page; for texts that come with the view that shows them. */
export const sideOf = (pair: readonly [en: string, zh: string]): string => pair[language === 'zh' ? 1 : 0]

/** Whether there is a text of this name. */
export const isKey = (name: string): name is Key => name in CATALOGUE

/** A text about a number of things. */
export function count(key: CountKey, n: number, values?: Values): string {
  const one = `${key}_one` as Key
  return t(n === 1 ? one : key, { n, ...values })
}

export function setLanguage(next: Language): void {
  language = next
  localStorage.setItem(STORED, next)
  apply()
  for (const listener of listeners) listener()
}

export function useLanguage(): Language {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => language,
  )
}

export const locale = (): string => (language === 'zh' ? 'zh-CN' : 'en')
