// Takes the records of a view into the state. A view is folded by the server up to a place of the log; the events since then
// are applied to it first, so that all records of the state are of the same place.

import type { Artifact, Conversation, Json, JsonObject, Recorded, View } from '../types'
import { fold } from './fold'
import { type Agent, type EffectState, type Item, type Request, type State, type Thread, type Turn, type Waiting, empty } from './state'

/** What a view is a part of, which says how its records join the others. */
export type Part = 'frame' | 'list' | 'conversation' | 'earlier' | 'turn' | 'tree' | 'requests' | 'trace' | 'organisation'

/** A state that has the records of a view and nothing else. */
export function stateOf(view: View): State {
  const state = empty()
  state.seq = view.seq
  state.agentCount = view.agentCount
  state.unlistedWaiting = view.waitingCount - view.waiting.length
  state.spent = view.spent
  state.allowed = view.allowed
  state.costs = view.costs ?? []
  for (const role of view.roles) state.roles.set(role.id, role)
  for (const agent of view.agents) state.agents.set(agent.id, { ...(agent as unknown as Agent), rev: 0 })
  for (const { holds, meta, ...thread } of view.threads) {
    const held = new Map(Object.entries(holds).map(([index, child]) => [Number(index), child]))
    state.threads.set(thread.id, { ...(thread as unknown as Thread), holds: held, meta: (meta ?? {}) as JsonObject, rev: 0 })
  }
  for (const turn of view.turns) state.turns.set(turn.id, { ...(turn as unknown as Turn), rev: 0 })
  for (const effect of view.effects) state.effects.set(effect.id, { ...(effect as unknown as EffectState), rev: 0 })
  for (const { open, meta, ...request } of view.requests) {
    state.requests.set(request.id, { ...(request as unknown as Request), open: new Set(open), meta: (meta ?? {}) as JsonObject, rev: 0 })
  }
  for (const chat of view.conversations ?? []) state.conversations.set(chat.id, chat)
  for (const waiting of view.waiting) state.waiting.set(waiting.id, waiting as unknown as Waiting)
  for (const { seq: _, ...artifact } of view.artifacts) state.artifacts.set(artifact.id, artifact as Artifact & { at: number })
  return state
}

/** Whether the events since a view are here. */
export function reaches(state: State, seq: number): boolean {
  return seq === state.seq || (seq < state.seq && (state.recent[0]?.seq ?? Number.POSITIVE_INFINITY) <= seq + 1)
}

/** Takes a view into a state that is not behind it and has the events since. A page of a conversation is of the thread `about`. */
export function adopt(state: State, view: View, part: Part, about?: string): void {
  const more = stateOf(view)
  if (part === 'turn') keepItems(more)
  for (const event of state.recent as Recorded[]) if (event.seq > view.seq) fold(more, event)
  join(state, more, part, about)
  if (part === 'conversation' || part === 'list' || part === 'requests' || part === 'trace') set(state, 'nextRequests', view.next)
  if ((part === 'conversation' || part === 'list') && state.nextConversations === undefined) state.nextConversations = view.nextConversations ?? null
  state.isOffline = view.offline
  if (part === 'conversation' && about) state.operations.set(about, view.operations ?? [])
  if (part === 'organisation') set(state, 'nextAgents', view.next)
  if (part === 'trace') state.costs = [...more.costs, ...state.costs.filter((one) => !more.requests.has(one.task))]
  state.rev += 1
  state.reads += 1
}

/** Takes in conversations that were asked for when the state was at the event `since`. What is here already is live. */
export function adoptConversations(state: State, found: Conversation[], since: number): void {
  const more = empty()
  more.seq = since
  for (const chat of found) if (!state.conversations.has(chat.id)) more.conversations.set(chat.id, chat)
  // Events that the answer knows already change nothing.
  for (const event of state.recent as Recorded[]) if (event.seq > since) fold(more, event)
  for (const { id } of found) {
    const chat = more.conversations.get(id)
    if (chat) state.conversations.set(id, chat)
  }
  state.rev += 1
  state.reads += 1
}

function set(state: State, key: 'nextRequests' | 'nextAgents', next: string | null | undefined): void {
  if (next) state[key] = next
  else delete state[key]
}

/** Gives the turns that were read by themselves the part of their threads that belongs to them. */
function keepItems(more: State): void {
  for (const turn of more.turns.values()) {
    const items = more.threads.get(turn.thread)?.items
    if (!turn.brief && items && items.length > 0) turn.items = items
  }
}

function join(state: State, more: State, part: Part, about: string | undefined): void {
  const rev = (state.rev += 1)
  const { seq, agentCount, spent, allowed, unlistedWaiting } = more
  Object.assign(state, { seq, agentCount, spent, allowed, unlistedWaiting })
  if (unlistedWaiting === 0) state.waiting = new Map()
  for (const [id, waiting] of more.waiting) state.waiting.set(id, waiting)
  for (const [id, role] of more.roles) state.roles.set(id, role)
  for (const [id, agent] of more.agents) state.agents.set(id, { ...agent, rev })
  for (const [id, chat] of more.conversations) state.conversations.set(id, chat)
  for (const id of more.strangers) if (!state.conversations.has(id)) state.strangers.add(id)
  for (const [id, file] of more.artifacts) state.artifacts.set(id, file)
  for (const [id, request] of more.requests) {
    const before = state.requests.get(id)
    if (before && before.spent.tokens > request.spent.tokens) request.spent = before.spent
    state.requests.set(id, { ...request, rev })
  }
  for (const [id, turn] of more.turns) joinTurn(state, more, state.turns.get(id), { ...turn, rev })
  for (const [id, thread] of more.threads) {
    const page = id === about && (part === 'conversation' || part === 'earlier') ? part : undefined
    state.threads.set(id, { ...joinThread(state.threads.get(id), thread, page), rev })
  }
}

/** Of two records of a turn, the one with more of its steps counts; the steps of both are kept. */
function joinTurn(state: State, more: State, before: Turn | undefined, turn: Turn): void {
  const isBetter = !before || before.brief || !turn.brief
  const known = isBetter ? turn : { ...before, rev: turn.rev }
  const all = before ? [...new Set([...before.effects, ...turn.effects])].sort((a, b) => numberOf(a) - numberOf(b)) : turn.effects
  known.omitted = Math.max(0, turn.effects.length + turn.omitted - all.length)
  known.effects = all
  if (before?.items && !known.items) known.items = before.items
  state.turns.set(turn.id, known)
  for (const id of turn.effects) {
    const effect = more.effects.get(id)
    const old = state.effects.get(id)
    if (!effect || (old && !isBetter)) continue
    const children = [...new Set([...(old?.children ?? []), ...effect.children])]
    state.effects.set(id, { ...effect, children, rev: turn.rev, ...(old?.live && effect.stage === 'open' && { live: old.live }) })
  }
}

function numberOf(effect: string): number {
  return Number(effect.slice(effect.indexOf('.') + 1))
}

function joinThread(before: Thread | undefined, thread: Thread, page: 'conversation' | 'earlier' | undefined): Thread {
  // A part of a conversation that is read by itself does not follow on what is here of it.
  const isMain = thread.id === thread.agent
  if (!before) return isMain && !page ? { ...thread, items: [] } : thread
  const joined: Thread = { ...before, messages: { ...before.messages, ...thread.messages }, holds: new Map([...before.holds, ...thread.holds]) }
  if (page) {
    joined.items = page === 'earlier' ? merged(thread.items, before.items) : thread.items
    replace(joined, 'earlier', thread.earlier)
    if (page === 'conversation') replace(joined, 'later', thread.later)
  } else if (!isMain) joined.items = merged(before.items, thread.items)
  if (thread.plan) Object.assign(joined, { plan: thread.plan, planTurn: thread.planTurn })
  if (isWhole(thread.meta) || !isWhole(before.meta)) joined.meta = Object.keys(thread.meta).length > 0 ? thread.meta : before.meta
  if (thread.parent) joined.parent = thread.parent
  if (thread.turn === undefined) delete joined.turn
  else joined.turn = thread.turn
  return joined
}

function replace(thread: Thread, key: 'earlier' | 'later', value: number | undefined): void {
  if (value === undefined) delete thread[key]
  else thread[key] = value
}

/** Whether the order of a unit is here with its prompt. */
function isWhole(meta: JsonObject): boolean {
  return Boolean((meta.workflow as { prompt?: Json } | undefined)?.prompt)
}

/** Items of both lists in their order, each once. */
function merged(one: Item[], other: Item[]): Item[] {
  const all = new Map<string, Item>()
  for (const item of [...one, ...other]) all.set(keyOf(item), item)
  return [...all.values()].sort((a, b) => placeOf(a) - placeOf(b) || Number(a.kind === 'turn') - Number(b.kind === 'turn'))
}

export function keyOf(item: Item): string {
  return item.kind === 'turn' ? `t${item.turn}` : item.kind === 'heard' ? `h${item.message.id}` : `m${item.index}`
}

export function placeOf(item: Item): number {
  return item.kind === 'turn' ? item.turn : item.seq
}
