// Numbers, times and money as people read them, in the language of the page.

import { locale, t } from '../i18n'

export { plainText } from './plain'

/** Formatters are slow to make: one of each kind and language is kept. */
const made = new Map<string, unknown>()

function kept<T>(name: string, make: (locale: string) => T): T {
  const key = `${name} ${locale()}`
  const known = made.get(key) ?? make(locale())
  made.set(key, known)
  return known as T
}

export function number(value: number): string {
  const notation = value >= 10_000 ? 'compact' : 'standard'
  return kept(notation, (locale) => new Intl.NumberFormat(locale, { notation, maximumFractionDigits: 1 })).format(value)
}

/** Money in billionths of a US dollar. */
export function money(nanos: number): string {
  const dollars = nanos / 1e9
  const digits = dollars === 0 ? 0 : dollars < 0.01 ? 4 : 2
  return `$${dollars.toFixed(digits)}`
}

export function duration(ms: number): string {
  if (ms < 1000) return t('time.ms', { n: Math.max(0, Math.round(ms)) })
  const seconds = ms / 1000
  if (seconds < 9.95) return t('time.s', { n: seconds.toFixed(1) })
  const whole = Math.round(seconds)
  if (whole < 60) return t('time.s', { n: whole })
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return t('time.min', { m: minutes, s: String(whole % 60).padStart(2, '0') })
  return t('time.h', { h: Math.floor(minutes / 60), m: String(minutes % 60).padStart(2, '0') })
}

export function clock(at: number): string {
  return kept('clock', (locale) => new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', hour12: false })).format(at)
}

export function moment(at: number): string {
  return kept('moment', (locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium', hour12: false })).format(at)
}

export function day(at: number): string {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000)
  if (days < 2) return kept('days', (locale) => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })).format(-days, 'day')
  return kept('day', (locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium' })).format(at)
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`
  const kib = size / 1024
  return kib < 1024 ? `${kib.toFixed(kib < 10 ? 1 : 0)} kB` : `${(kib / 1024).toFixed(1)} MB`
}
