// Search for conversations by what was said in them. The server looks through a part of them at a time; it is asked again
// until enough is found.

import { useEffect, useState } from 'react'
import type { Excerpt } from '../types'
import { store, useLine } from './store'

/** How long typing must pause before the server is searched, in ms. */
const REST_MS = 250
/** A search stops at this many results until more are asked for. */
const ENOUGH = 30
/** The server is asked at most so often by itself. */
const MOST_ASKED = 20

export interface Found {
  ids: ReadonlySet<string>
  /** Where the words stand, by conversation; none where they are in its title. */
  excerpts: ReadonlyMap<string, Excerpt>
  /** Where the search can go on. */
  next?: string | undefined
  isSearching: boolean
}

const NOTHING: Found = { ids: new Set(), excerpts: new Map(), isSearching: false }

export interface Search extends Found {
  more: () => Promise<void>
}

/** Conversations with all of these words, and with no words the archived ones. */
export function useSearch(text: string, archived: boolean): Search {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).join(' ')
  const line = useLine()
  const [found, setFound] = useState(NOTHING)
  const isWanted = Boolean(words) || archived
  const query = `?${new URLSearchParams({ ...(words && { search: words }), ...(archived && { archived: 'true' }) })}`
  useEffect(() => setFound(NOTHING), [query])
  useEffect(() => {
    if (!isWanted || line !== 'live') return
    const left = new AbortController()
    const later = setTimeout(() => void look(query, NOTHING, setFound, left.signal), words ? REST_MS : 0)
    return () => {
      left.abort()
      clearTimeout(later)
    }
  }, [query, isWanted, line])
  return { ...found, more: () => look(query, found, setFound) }
}

async function look(query: string, before: Found, show: (found: Found) => void, left?: AbortSignal): Promise<void> {
  const ids = new Set(before.ids)
  const excerpts = new Map(before.excerpts)
  const wanted = ids.size + ENOUGH
  let { next } = before
  for (let asked = 0; asked === 0 || (next && asked < MOST_ASKED && ids.size < wanted); asked += 1) {
    if (asked === 0) show({ ...before, isSearching: true })
    const page = await store.find(next ? `${query}&after=${encodeURIComponent(next)}` : query).catch(() => undefined)
    if (left?.aborted) return
    for (const id of page?.ids ?? []) ids.add(id)
    for (const excerpt of page?.excerpts ?? []) excerpts.set(excerpt.conversation, excerpt)
    next = page?.next
    show({ ids: new Set(ids), excerpts: new Map(excerpts), next, isSearching: next !== undefined && ids.size < wanted })
  }
  show({ ids, excerpts, next, isSearching: false })
}
