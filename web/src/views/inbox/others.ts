// The approvals of other persons that this person decides. Their conversations and events are not shown here, so that these are
// asked for again and again.

import { useEffect, useSyncExternalStore } from 'react'
import { get } from '../../api'
import { usePage } from '../../components/page'
import type { Waiting } from '../../store/state'
import { store } from '../../store/store'
import type { Approval, Approvals } from '../../wire'

const EVERY_MS = 3000

const listeners = new Set<() => void>()
let found: readonly Waiting[] = []
let users = 0
let timer: ReturnType<typeof setTimeout> | undefined

const waitingOf = ({ id, agentId, taskId, thread, path, person, approvers, ...what }: Approval): Waiting =>
  ({ id, at: 0, agent: agentId, task: taskId, thread, person, what }) as Waiting

/** Asks once. */
export async function look(): Promise<void> {
  const answer = await get<Approvals>('/api/approvals').catch(() => undefined)
  if (!answer) return
  const next = answer.approvals.filter(({ id }) => !store.state.waiting.has(id)).map(waitingOf)
  if (next.map(({ id }) => id).join() === found.map(({ id }) => id).join()) return
  found = next
  for (const listener of listeners) listener()
}

async function watch(): Promise<void> {
  if (!document.hidden) await look()
  if (users > 0) timer = setTimeout(() => void watch(), EVERY_MS)
}

/** What waits for this person in the conversations of others. */
export function useOthers(): readonly Waiting[] {
  const page = usePage()
  const isApprover = page !== undefined && page.isApprover && !page.scopes.includes('everyone')
  useEffect(() => {
    if (!isApprover) return
    if (users++ === 0) void watch()
    return () => {
      if (--users === 0) clearTimeout(timer)
    }
  }, [isApprover])
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => found,
  )
}
