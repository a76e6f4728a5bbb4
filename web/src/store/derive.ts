// What follows from the state: where a request stands, where a thread lies, who does what just now.

import type { Status } from '../ui/Badge'
import type { EffectState, Request, State, Thread, Turn } from './state'

/** Where a request of the person stands. */
export function requestStatus(state: State, request: Request): Status {
  for (const waiting of state.waiting.values()) if (waiting.task === request.id) return 'needs_you'
  if (request.open.size > 0) return 'running'
  if (request.failure) return request.failure.code === 'cancelled' ? 'cancelled' : 'failed'
  if (request.endedAt) return 'done'
  for (const agent of state.agents.values()) if (agent.inbox.some((entry) => entry.task === request.id)) return 'queued'
  return 'done'
}

/** How an agent stands. */
export function agentStatus(state: State, id: string): Status {
  const agent = state.agents.get(id)
  if (!agent || agent.terminatedAt) return 'gone'
  for (const waiting of state.waiting.values()) if (waiting.agent === id) return 'needs_you'
  if (agent.turn === undefined) return 'idle'
  const turn = state.turns.get(agent.turn)
  return turn ? turnStatus(state, turn) : 'idle'
}

/** Where a turn stands. */
export function turnStatus(state: State, turn: Turn): Status {
  if (turn.settlement === 'done') return 'done'
  if (turn.settlement) return 'failed' in turn.settlement ? 'failed' : 'cancelled'
  if (turn.parked) return 'parked'
  const open = openEffects(state, turn)
  if (open.some((effect) => state.waiting.has(effect.id) || effect.inquiries.some((one) => state.waiting.has(one.id)))) return 'needs_you'
  if (open.length > 0 && open.every((effect) => 'ask' in effect.effect || 'sleep' in effect.effect)) return 'waiting'
  return 'running'
}

export function openEffects(state: State, turn: Turn): EffectState[] {
  return turn.effects
    .map((id) => state.effects.get(id))
    .filter((effect): effect is EffectState => effect !== undefined && effect.stage !== 'ended' && effect.stage !== 'void')
}

/** The address of a thread: the agent's name, then the way from its main thread. */
export function addressOf(state: State, thread: Thread): string {
  const way: string[] = []
  let here: Thread | undefined = thread
  while (here?.parent) {
    way.unshift(`messages[${here.parent.index}].meta.${here.parent.slot.replace(/^meta\./, '')}`)
    here = state.threads.get(here.parent.thread)
  }
  return [here?.id ?? thread.id, ...way].join('.')
}

/** The threads from the main one down to this one. */
export function lineage(state: State, thread: Thread): Thread[] {
  const line = [thread]
  for (let here = thread; here.parent; ) {
    const above = state.threads.get(here.parent.thread)
    if (!above || line.includes(above)) break
    line.unshift(above)
    here = above
  }
  return line
}

/** A name for whoever works in a turn. */
export function nameOf(turn: Turn): string {
  if (turn.origin === 'inbox') return turn.agent
  const kind = turn.task.meta?.agentType
  return typeof kind === 'string' ? kind : turn.behaviour
}

/** Turns that were done for a turn, at any depth. */
export function* below(state: State, turn: Turn): Generator<Turn> {
  for (const id of turn.effects) {
    for (const child of state.effects.get(id)?.children ?? []) {
      const found = state.turns.get(child)
      if (!found) continue
      yield found
      yield* below(state, found)
    }
  }
}
