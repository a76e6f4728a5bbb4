// One polite voice for screen readers, and one that interrupts. The transcript itself is silent.

import { useSyncExternalStore } from 'react'

const listeners = new Set<() => void>()
let polite = ''
let urgent = ''

function tell(): void {
  for (const listener of listeners) listener()
}

/** Says something that can wait. */
export function announce(text: string): void {
  // The same text twice is read twice only if it differs.
  polite = polite === text ? `${text}\u00a0` : text
  tell()
}

/** Says something that went wrong. */
export function alarm(text: string): void {
  urgent = urgent === text ? `${text}\u00a0` : text
  tell()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Voices() {
  const said = useSyncExternalStore(subscribe, () => polite)
  const shouted = useSyncExternalStore(subscribe, () => urgent)
  return (
    <>
      <div className="unseen" role="status" aria-live="polite">{said}</div>
      <div className="unseen" role="alert">{shouted}</div>
    </>
  )
}
