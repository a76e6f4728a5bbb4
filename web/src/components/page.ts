// What the operator says about components: which scripts there are, and whether documents of models may be live.

import { useSyncExternalStore } from 'react'
import { get } from '../api'

const listeners = new Set<() => void>()
let isLive = false

/** Asks the server; gives the scripts. */
export async function loadPage(): Promise<string[]> {
  const page = await get<{ components: string[]; liveHtml: boolean }>('/api/page').catch(() => undefined)
  isLive = page?.liveHtml ?? false
  for (const listener of listeners) listener()
  return page?.components ?? []
}

export function useLiveHtml(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => isLive,
  )
}
