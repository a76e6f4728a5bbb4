// Light, dark, or as the system has it. The colours themselves are in `styles/tokens.css`.

import { useSyncExternalStore } from 'react'

export type Theme = 'auto' | 'light' | 'dark'
const STORED = 'polis.theme'
const ORDER: Theme[] = ['auto', 'light', 'dark']
const listeners = new Set<() => void>()
let theme: Theme = ORDER.find((one) => one === localStorage.getItem(STORED)) ?? 'auto'
apply()

function apply(): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function setTheme(next: Theme): void {
  theme = next
  localStorage.setItem(STORED, next)
  apply()
  for (const listener of listeners) listener()
}

export function nextTheme(): void {
  setTheme(ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] as Theme)
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => theme,
  )
}
