// What the server knows of an agent beyond the log: how full its conversation is, and what it offers.

import { useEffect, useState } from 'react'
import { get } from '../api'
import type { AgentDetail } from '../wire'

/** Asks again when the agent has changed, at most a few times a second. */
export function useAgent(id: string, rev: number, isWanted = true): AgentDetail | undefined {
  const [detail, setDetail] = useState<AgentDetail>()
  useEffect(() => {
    if (!isWanted) return
    let isHere = true
    const later = setTimeout(() => {
      get<AgentDetail>(`/api/agents/${encodeURIComponent(id)}`)
        .then((found) => isHere && setDetail(found))
        .catch(() => undefined)
    }, 200)
    return () => {
      isHere = false
      clearTimeout(later)
    }
  }, [id, rev, isWanted])
  return isWanted && detail?.id === id ? detail : undefined
}
