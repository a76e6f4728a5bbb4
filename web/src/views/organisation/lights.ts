// Messages light the way that they went for a while: a length of time, however many events come after.

import { useEffect, useReducer, useRef } from 'react'
import { named } from '../../store/fold'
import type { State } from '../../store/state'
import type { Events, Recorded } from '../../types'

/** How long a message lights its way. */
export const LIT_MS = 2500
/** The most that are lit at a time. */
const MOST = 200

export interface Light {
  key: string
  from: string
  to: string
  until: number
}

/** Who a message went from and to, in an event that sends one. */
export function wayOf(recorded: Recorded): { from: string; to: string } | undefined {
  const [name, body] = named(recorded)
  const sent = name === 'messageSent' ? (body as Events['messageSent']).envelope : undefined
  const effect = name === 'effectStarted' ? (body as Events['effectStarted']).effect : undefined
  const envelope = sent ?? (effect && 'ask' in effect ? effect.ask.envelope : undefined)
  return envelope && { from: envelope.from, to: envelope.to }
}

/** Those that go on at a moment, and those of the events that have come since. */
export function lightsAt(before: Light[], events: Recorded[], after: number, now: number): Light[] {
  const fresh = events.flatMap((recorded) => {
    const way = recorded.seq > after ? wayOf(recorded) : undefined
    return way ? [{ key: String(recorded.seq), ...way, until: now + LIT_MS }] : []
  })
  return [...before.filter(({ until }) => until > now), ...fresh].slice(-MOST)
}

/** What is lit just now; it is shown again when a light goes out. */
export function useLights(state: State): Light[] {
  const [, again] = useReducer((n: number) => n + 1, 0)
  const seen = useRef(state.seq)
  const lit = useRef<Light[]>([])
  lit.current = lightsAt(lit.current, state.recent, seen.current, Date.now())
  seen.current = Math.max(seen.current, state.seq)
  const first = lit.current[0]?.until
  useEffect(() => {
    if (first === undefined) return
    const out = setTimeout(again, Math.max(0, first - Date.now()) + 1)
    return () => clearTimeout(out)
  }, [first])
  return lit.current
}
