// Every view is an address: `/VIEW/…`, or `/s/SOCIETY/VIEW/…` for another society of the same server.

import { useSyncExternalStore } from 'react'

export const VIEWS = ['chat', 'inbox', 'organisation', 'trace', 'gallery', 'settings'] as const
export type View = (typeof VIEWS)[number]

export interface Place {
  view: View
  /** The parts of the address after the view. */
  rest: string[]
  /** Whether there is no such view. */
  isUnknown: boolean
  query: URLSearchParams
}

const listeners = new Set<() => void>()
let current = read()
let at = prefix()

function parts(): string[] {
  return location.pathname.split('/').filter(Boolean).map(plain)
}

function plain(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** What begins every address of a society; the server's first one needs no name. */
export const prefixOf = (name: string): string => (name ? `/s/${encodeURIComponent(name)}` : '')

/** What begins every address of this society. */
export function prefix(): string {
  const [s, name] = parts()
  return s === 's' && name ? `/s/${encodeURIComponent(name)}` : ''
}

/** The society that the address names; none for the server's first one. */
export function society(): string | undefined {
  const [s, name] = parts()
  return s === 's' ? name : undefined
}

function read(): Place {
  const all = parts()
  const [view, ...rest] = all[0] === 's' ? all.slice(2) : all
  const known = VIEWS.find((one) => one === view)
  return { view: known ?? 'chat', rest: known ? rest : [], isUnknown: Boolean(view) && !known, query: new URLSearchParams(location.search) }
}

/** Where the chat was left, by society. */
const chats = new Map<string, string>()

/** The address of a view; that of the chat is where it was left. */
export function homeOf(view: View): string {
  return (view === 'chat' && current.view !== 'chat' && chats.get(prefix())) || href(view)
}

function changed(): void {
  if (current.view === 'chat') chats.set(at, href('chat', current.rest, {}, at))
  at = prefix()
  current = read()
  for (const listener of listeners) listener()
}

addEventListener('popstate', changed)

/** The address of a place. */
export function href(view: View, rest: (string | undefined)[] = [], query: Record<string, string | undefined> = {}, at = prefix()): string {
  const path = [view, ...rest.filter((part): part is string => Boolean(part))].map(encodeURIComponent).join('/')
  const wanted = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const search = new URLSearchParams(wanted).toString()
  return `${at}/${path}${search ? `?${search}` : ''}`
}

export function go(to: string, options: { replace?: boolean } = {}): void {
  if (to === location.pathname + location.search) return
  history[options.replace ? 'replaceState' : 'pushState'](null, '', to)
  changed()
}

export const place = (): Place => current

export function usePlace(): Place {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => current,
  )
}

/** Lets a link be followed without loading the page anew; with a modifier key the browser does what it always does. */
export function follow(event: React.MouseEvent<HTMLAnchorElement>): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  go(event.currentTarget.getAttribute('href') ?? '/')
}
