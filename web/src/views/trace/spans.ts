// The work for a request as spans: turns, and in them calls of models and tools, units, questions and waits.

import { nameOf, turnStatus } from '../../store/derive'
import type { EffectState, Request, State, Turn } from '../../store/state'
import type { CallCost, Spent, Usage } from '../../types'
import type { Status } from '../../ui/Badge'
import { plainText } from '../../ui/plain'

export type SpanKind = 'turn' | 'model' | 'tool' | 'ask' | 'unit' | 'approval' | 'sleep' | 'other'

export interface Span {
  id: string
  kind: SpanKind
  name: string
  /** What its task is, where others of the same name have another. */
  note?: string
  agent: string
  depth: number
  start: number
  /** None while it lasts. */
  end?: number
  status: Status
  spent?: Spent
  usage?: Usage
  retries: number
  turn: number
  effect?: string
  hasChildren: boolean
}

/** A behaviour is a path: of its parts only the last that says something. */
export function shortName(state: State, turn: Turn): string {
  const parts = nameOf(state, turn).split('/').filter((part) => part && part !== 'initial_phase')
  return parts.at(-1) ?? nameOf(state, turn)
}

/** The turns that nobody waits for, of one request or of all. */
export function topTurns(state: State, task?: string): Turn[] {
  return [...state.turns.values()].filter((turn) => (!task || turn.task.id === task) && !state.turns.has(parentTurn(turn)))
}

function parentTurn(turn: Turn): number {
  return turn.parent ? Number(turn.parent.slice(0, turn.parent.indexOf('.'))) : -1
}

/** The spans from top to bottom, without what is below closed ones. */
export function spans(state: State, task: string | undefined, closed: ReadonlySet<string>): Span[] {
  const all: Span[] = []
  const walkTurn = (turn: Turn, depth: number) => {
    const id = String(turn.id)
    const effects = turn.effects.map((name) => state.effects.get(name)).filter((found) => found !== undefined)
    all.push({
      id,
      kind: turn.origin === 'inbox' ? 'turn' : 'unit',
      name: shortName(state, turn),
      ...(turn.origin !== 'inbox' && turn.task.message !== state.requests.get(turn.task.id)?.text && { note: plainText(turn.task.message).slice(0, 120) }),
      agent: turn.agent,
      depth,
      start: turn.startedAt,
      ...(turn.settledAt !== undefined && { end: turn.settledAt }),
      status: turnStatus(state, turn),
      spent: turn.spent,
      retries: 0,
      turn: turn.id,
      hasChildren: effects.length > 0,
    })
    if (closed.has(id)) return
    for (const effect of effects) walkEffect(effect, turn, depth + 1)
  }
  const walkEffect = (effect: EffectState, turn: Turn, depth: number) => {
    const [kind, name] = told(effect)
    // A unit is the turn that does it; one row is enough for both.
    if (kind === 'unit' && effect.children.length > 0) {
      for (const child of effect.children) {
        const found = state.turns.get(child)
        if (found) walkTurn(found, depth)
      }
      return
    }
    const reply = typeof effect.outcome === 'object' && 'reply' in effect.outcome ? effect.outcome.reply : undefined
    all.push({
      id: effect.id,
      kind,
      name,
      agent: turn.agent,
      depth,
      start: effect.startedAt,
      ...(effect.endedAt !== undefined && { end: effect.endedAt }),
      status: statusOf(effect),
      ...(effect.spent && { spent: effect.spent }),
      ...(reply?.usage && { usage: reply.usage }),
      retries: effect.retries.length,
      turn: turn.id,
      effect: effect.id,
      hasChildren: effect.children.length > 0,
    })
    if (closed.has(effect.id)) return
    for (const child of effect.children) {
      const found = state.turns.get(child)
      if (found) walkTurn(found, depth + 1)
    }
  }
  for (const turn of topTurns(state, task)) walkTurn(turn, 0)
  return all
}

/** What kind of span an effect is, and its name. */
export function told({ effect, outcome, retries }: EffectState): [SpanKind, string] {
  // Which model answered stands in the reply; where none was named, only there.
  const reply = typeof outcome === 'object' && 'reply' in outcome ? outcome.reply.model : undefined
  if ('model' in effect) return ['model', reply || effect.model.model || retries.at(-1)?.model || '']
  if ('tool' in effect) return ['tool', effect.tool.tool]
  if ('ask' in effect) return ['ask', effect.ask.envelope.to]
  if ('unit' in effect) return ['unit', effect.unit.behaviour.split('/').at(-1) ?? '']
  if ('approval' in effect) return ['approval', effect.approval.call?.tool ?? effect.approval.question]
  if ('grant' in effect) return ['approval', 'budget']
  if ('sleep' in effect) return ['sleep', '']
  return ['other', Object.keys(effect)[0] ?? '']
}

function statusOf({ stage, outcome, refused }: EffectState): Status {
  if (stage === 'doubted') return 'in_doubt'
  if (stage === 'void') return 'cancelled'
  if (stage !== 'ended') return 'running'
  if (refused) return 'failed'
  if (typeof outcome !== 'object') return 'done'
  if ('failed' in outcome || ('result' in outcome && outcome.result.isError)) return 'failed'
  return 'done'
}

/** The first and the last moment of the spans; what lasts goes on until now. */
export function extent(list: Span[], now: number): [number, number] {
  let first = Infinity
  let last = 0
  for (const { start, end } of list) {
    first = Math.min(first, start)
    last = Math.max(last, end ?? now)
  }
  return first === Infinity ? [0, 1] : [first, Math.max(last, first + 1)]
}

export interface Sum extends Spent {
  name: string
}

/** What calls cost for one request, by agent and the part of it that made them, or for all that the trace has. */
export function costs(state: State, task: string | undefined): CallCost[] {
  if (!task) return state.costs
  return [...state.effects.values()].flatMap((effect) => {
    const turn = state.turns.get(effect.turn)
    if (!turn || !effect.spent || turn.task.id !== task) return []
    const name = 'model' in effect.effect ? effect.effect.model.model : 'tool' in effect.effect ? effect.effect.tool.tool : ''
    return [{ task, agent: turn.origin === 'inbox' ? turn.agent : `${turn.agent} › ${shortName(state, turn)}`, name, at: effect.endedAt ?? effect.startedAt, spent: effect.spent }]
  })
}

/** Costs summed up by a name, the largest first. */
export function sums(all: CallCost[], by: (cost: CallCost) => string): Sum[] {
  const found = new Map<string, Sum>()
  for (const cost of all) {
    const name = by(cost)
    let sum = found.get(name)
    if (!sum) found.set(name, (sum = { name, tokens: 0, costNanos: 0, requests: 0, timeMs: 0 }))
    sum.tokens += cost.spent.tokens ?? 0
    sum.costNanos += cost.spent.costNanos ?? 0
    sum.requests += cost.spent.requests ?? 0
    sum.timeMs += cost.spent.timeMs ?? 0
  }
  return [...found.values()].sort((a, b) => b.tokens - a.tokens)
}

/** Tokens over time in as many equal parts. */
export function usageOverTime(all: CallCost[], parts: number): { at: number; tokens: number }[] {
  const points = all.filter(({ spent }) => spent.tokens).map(({ at, spent }): [number, number] => [at, spent.tokens ?? 0])
  if (points.length === 0) return []
  points.sort(([a], [b]) => a - b)
  const first = (points[0] as [number, number])[0]
  const span = Math.max(1, (points.at(-1) as [number, number])[0] - first)
  const bars = Array.from({ length: parts }, (_, place) => ({ at: first + (span * place) / parts, tokens: 0 }))
  for (const [at, tokens] of points) {
    const bar = bars[Math.min(parts - 1, Math.floor(((at - first) / span) * parts))]
    if (bar) bar.tokens += tokens
  }
  return bars
}

/** The newest requests first. */
export function newest(state: State): Request[] {
  return [...state.requests.values()].sort((a, b) => b.seq - a.seq)
}
