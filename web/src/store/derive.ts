// What follows from the state: where a request stands, where a thread lies, who does what just now.

import { parsePartialJson } from '../json/partial'
import type { Json, JsonObject, Step } from '../types'
import type { Status } from '../ui/Badge'
import type { Chat, EffectState, Request, State, Thread, Turn, Waiting } from './state'

/** The turn whose plan is shown: that of the request that was chosen, else the one under way, else the newest. */
export function turnShown(state: State, agent: string, task: string | undefined): Turn | undefined {
  const thread = state.threads.get(agent)
  const turns = (thread?.items ?? []).filter((item) => item.kind === 'turn').map((item) => state.turns.get(item.turn))
  const chosen = task === undefined ? undefined : turns.findLast((turn) => turn?.task.id === task)
  // The request that was chosen, also while another one runs.
  if (chosen) return chosen
  return thread?.turn === undefined ? turns.findLast((turn) => turn && task === undefined) : state.turns.get(thread.turn)
}

/** Where a request of the person stands. */
export function requestStatus(state: State, request: Request): Status {
  for (const waiting of state.waiting.values()) if (waiting.task === request.id) return 'needs_you'
  if (request.open.size > 0) return 'running'
  if (request.failure) return request.failure.code === 'cancelled' ? 'cancelled' : 'failed'
  if (request.endedAt) return request.failedPart ? 'partial' : 'done'
  for (const agent of state.agents.values()) if (agent.inbox.some((entry) => entry.task === request.id)) return 'queued'
  return 'done'
}

/** How an agent stands. */
export function agentStatus(state: State, id: string): Status {
  const agent = state.agents.get(id)
  // Root comes with the first request.
  if (!agent && id === 'root') return 'idle'
  if (!agent || agent.terminatedAt) return 'gone'
  for (const waiting of state.waiting.values()) if (waiting.agent === id) return 'needs_you'
  if (agent.turn === undefined) return 'idle'
  const turn = state.turns.get(agent.turn)
  return turn ? turnStatus(state, turn) : 'idle'
}

/** Whether an agent exists for a conversation with a person. */
export function isConversation(state: State, id: string): boolean {
  const agent = state.agents.get(id)
  return state.conversations.has(id) || id === 'root' || (agent !== undefined && !agent.parent)
}

/** Whether a decision belongs to what is done for an agent: it asks itself, an agent below it does, or it has the request. */
export function isFor(state: State, waiting: Waiting, id: string): boolean {
  if (state.requests.get(waiting.task)?.to === id) return true
  for (let one: string | undefined = waiting.agent; one; one = state.agents.get(one)?.parent) if (one === id) return true
  return false
}

/** How the agent of a conversation stands; a decision for anybody below it is one for the person who reads it. */
export function conversationStatus(state: State, chat: Chat): Status {
  for (const waiting of state.waiting.values()) if (isFor(state, waiting, chat.id)) return 'needs_you'
  const agent = state.agents.get(chat.id)
  if (agent?.turn !== undefined && state.turns.has(agent.turn)) return agentStatus(state, chat.id)
  return chat.status
}

/** Conversations in the order of the list: pinned ones first, then those with the newest messages. */
export function sortedConversations(state: State): Chat[] {
  // Root is a conversation from the start, and is listed when something was said in it.
  const all = [...state.conversations.values()].filter((chat) => chat.id !== 'root' || chat.messages > 0)
  return all.sort((a, b) => Number(b.pinned ?? false) - Number(a.pinned ?? false) || b.activeAt - a.activeAt || (b.active ?? 0) - (a.active ?? 0))
}

/** What an agent is called: that of a conversation by its role, since its id says nothing. */
export function agentName(state: State, id: string): string {
  const agent = state.agents.get(id)
  return agent && !agent.parent ? agent.role : (state.conversations.get(id)?.roleId ?? id)
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

/** A name for whoever runs a behaviour: an agent, or the part of one that a unit is (`…/planner/initial_phase`). */
export function nameOf(state: State, turn: Turn): string {
  return turn.origin === 'inbox' ? agentName(state, turn.agent) : unitName(turn.behaviour)
}

export function unitName(behaviour: string): string {
  return behaviour.split('/').at(-2) ?? behaviour
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

/** Whether a turn is part of a workflow. */
export function isOfWorkflow(turn: Turn): boolean {
  return turn.behaviour.split('/').includes('workflow')
}

/** The todos that a planner has written so far. */
function growing(state: State, turn: Turn): Json[] {
  const thread = state.threads.get(turn.thread)
  if (!thread || turn.settledAt !== undefined) return []
  const { step } = thread
  if (step?.component === 'planner-response') return Array.isArray(step.props.todos) ? step.props.todos.filter(Boolean) : []
  if (unitName(turn.behaviour) !== 'planner') return []
  // Whoever came late has not seen the chunks, but is told the text from its beginning.
  const text = openEffects(state, turn).findLast((effect) => effect.live?.text)?.live?.text
  const todos = text && parsePartialJson<JsonObject>(text).data?.todos
  return Array.isArray(todos) ? todos.filter((todo) => todo !== null && typeof todo === 'object') : []
}

/** The todos that a person is asked about. */
function askedAbout(state: State, turn: Turn): Json[] | undefined {
  for (const effect of openEffects(state, turn)) {
    const what = state.waiting.get(effect.id)?.what
    const details = what?.kind === 'approval' && !what.call ? (what.details as { todos?: Json[] } | undefined) : undefined
    if (Array.isArray(details?.todos)) return details.todos
  }
  return undefined
}

/** The todos of a turn, wherever they stand: in what a planner is just writing, in the question about it, in a list of its
 * workflow, or in its own plan. */
export function planOf(state: State, turn: Turn): { steps: Step[]; isGrowing: boolean } | undefined {
  const all = [turn, ...below(state, turn)]
  for (const one of all) {
    const todos = growing(state, one)
    if (todos.length > 0) return { steps: todos.map(stepOf), isGrowing: true }
  }
  for (const one of all) {
    const todos = askedAbout(state, one)
    if (todos) return { steps: todos.map(stepOf), isGrowing: false }
  }
  let found: Step[] | undefined
  let own: Step[] | undefined
  // The list in the log changes when a todo is done; who is at one just now is known from the orders.
  const atWork = new Set<string>()
  for (const one of all) {
    const thread = state.threads.get(one.thread)
    if (!thread) continue
    const order = thread.meta.workflow as { todo?: string } | undefined
    if (order?.todo && one.settledAt === undefined) atWork.add(order.todo)
    for (const item of thread.items) {
      if (item.kind !== 'message' || item.turn !== one.id) continue
      const component = thread.messages[item.index]?.meta?.component as { component?: string; props?: { todos?: Json[] } } | undefined
      if (component?.component === 'todo-list') found = (component.props?.todos ?? []).map(stepOf)
    }
    if (!own && thread.plan && thread.planTurn === one.id && thread.plan.steps.length > 0) own = thread.plan.steps
  }
  // What an agent noted for itself is not the plan of the workflow that it has begun.
  if (!found && !all.some((one) => one.settledAt === undefined && isOfWorkflow(one))) found = own
  return found && { steps: found.map((step) => (atWork.has(step.id ?? '') && step.status === 'pending' ? { ...step, status: 'executing' } : step)), isGrowing: false }
}

function stepOf(todo: Json): Step {
  const { id, title, description, status, result } = todo as { id?: string; title?: string; description?: string; status?: Step['status']; result?: string }
  return { text: title || description || id || '', status: status ?? 'pending', ...(id && { id }), ...(result && { result }) }
}

/** What a model said last in a turn. */
export function lastWords(state: State, turn: Turn): string {
  for (const id of turn.effects.toReversed()) {
    const outcome = state.effects.get(id)?.outcome
    if (typeof outcome === 'object' && 'reply' in outcome) return outcome.reply.text
  }
  return ''
}
