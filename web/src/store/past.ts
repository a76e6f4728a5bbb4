// The organisation as it was after an earlier event. The server folds it; the slider asks for the place where it rests.

import { useEffect, useState } from 'react'
import { get } from '../api'
import type { View } from '../types'
import { type State } from './state'
import { stateOf } from './view'

/** How long the slider must rest before the server is asked. */
const REST_MS = 80

export interface Past {
  state: State
  /** The event that the society is shown after. */
  event: View['event']
}

export function usePast(at: number | undefined): Past | undefined {
  const [past, setPast] = useState<Past>()
  useEffect(() => {
    if (at === undefined) return setPast(undefined)
    let isHere = true
    const later = setTimeout(() => {
      get<View>(`/api/views/organisation?at=${at}&limit=2000`)
        .then((view) => isHere && setPast({ state: stateOf(view), event: view.event }))
        .catch(() => undefined)
    }, REST_MS)
    return () => {
      isHere = false
      clearTimeout(later)
    }
  }, [at])
  return at === undefined ? undefined : past
}
