// What the server says about the page: which scripts the operator adds, whether documents of models may be live, and who looks
// at it with which rights.

import { useSyncExternalStore } from 'react'
import { get } from '../api'
import type { PageAdditions } from '../wire'

const listeners = new Set<() => void>()
let page: PageAdditions | undefined

/** Asks the server; gives the scripts. */
export async function loadPage(): Promise<string[]> {
  page = await get<PageAdditions>('/api/page').catch(() => undefined)
  for (const listener of listeners) listener()
  return page?.components ?? []
}

/** What the server said; nothing before it has answered. */
export function usePage(): PageAdditions | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => page,
  )
}

export function useLiveHtml(): boolean {
  return usePage()?.liveHtml ?? false
}
