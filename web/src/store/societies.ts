// The societies of the server, with where each parts from another.

import { useSyncExternalStore } from 'react'
import { get } from '../api'
import { society } from '../router'
import type { Societies } from '../types'
import type { Society } from './ways'

const MOST_PAGES = 20
const listeners = new Set<() => void>()
let all: Society[] = []

/** Asks the server for them again. */
export async function refreshSocieties(): Promise<void> {
  const found: Society[] = []
  try {
    for (let page = 0, after = ''; page < MOST_PAGES; page += 1) {
      const { societies, next } = await get<Societies>(`/api/societies${after && `?after=${encodeURIComponent(after)}`}`, '')
      found.push(...societies)
      if (!next) break
      after = next
    }
  } catch {
    return
  }
  all = found
  for (const listener of listeners) listener()
}

export const knownSocieties = (): Society[] => all

export function useSocieties(): Society[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => all,
  )
}

/** The name of the society that the address means. */
export function here(societies: Society[] = all): string | undefined {
  return society() ?? societies.find((one) => one.first)?.name
}

/** The one whose past a society has, where there is one. */
export function parentOf(societies: Society[], name: string | undefined): Society | undefined {
  const from = societies.find((one) => one.name === name)?.forkedFrom
  return societies.find((one) => one.name === from)
}
