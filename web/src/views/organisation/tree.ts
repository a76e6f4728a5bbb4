// The agents as a tree: who made whom.

import { agentStatus, openEffects } from '../../store/derive'
import type { Agent, State, Turn } from '../../store/state'
import type { Status } from '../../ui/Badge'

export interface Node {
  agent: Agent
  depth: number
  children: Node[]
  /** Its place among its brothers, from 1, and how many they are. */
  place: number
  of: number
}

/** The trees of all agents that are there; with those that are gone, if wanted. */
export function forest(state: State, withGone: boolean): Node[] {
  const children = new Map<string | undefined, Agent[]>()
  const parents = parentsIn(state)
  const isShown = (agent: Agent) => (agent.terminatedAt ? withGone : isListed(agent, parents))
  for (const agent of state.agents.values()) {
    if (!isShown(agent) || agent.id === 'user') continue
    const parent = agent.parent ? state.agents.get(agent.parent) : undefined
    const above = parent && isShown(parent) ? parent.id : undefined
    const list = children.get(above)
    if (list) list.push(agent)
    else children.set(above, [agent])
  }
  const grow = (above: string | undefined, depth: number): Node[] => {
    const list = children.get(above) ?? []
    return list.map((agent, place) => ({ agent, depth, children: grow(agent.id, depth + 1), place: place + 1, of: list.length }))
  }
  return grow(undefined, 0)
}

/** Those that have agents below them. */
const parentsIn = (state: State): Set<string | undefined> => new Set([...state.agents.values()].filter((agent) => !agent.terminatedAt).map((agent) => agent.parent))

/** The agents of conversations are listed while they work or have others below them; the list of conversations has the rest. */
const isListed = (agent: Agent, parents: Set<string | undefined>): boolean => agent.parent !== undefined || agent.turn !== undefined || agent.id === 'root' || parents.has(agent.id)

/** The nodes from top to bottom, without what is below closed ones. */
export function flat(nodes: Node[], closed: ReadonlySet<string>): Node[] {
  const all: Node[] = []
  const walk = (list: Node[]) => {
    for (const node of list) {
      all.push(node)
      if (!closed.has(node.agent.id)) walk(node.children)
    }
  }
  walk(nodes)
  return all
}

/** What an agent does just now; nothing when it is idle. */
export interface Doing {
  kind: 'model' | 'tool' | 'ask' | 'unit' | 'sleep' | 'you' | 'turn'
  what: string
}

export function doing(state: State, agent: Agent): Doing | undefined {
  const turn = agent.turn === undefined ? undefined : state.turns.get(agent.turn)
  return turn && doingIn(state, turn)
}

function doingIn(state: State, turn: Turn): Doing {
  const effect = openEffects(state, turn).at(-1)
  if (!effect) return { kind: 'turn', what: turn.task.message }
  if (state.waiting.has(effect.id)) return { kind: 'you', what: '' }
  const asked = effect.effect
  if ('model' in asked) return { kind: 'model', what: asked.model.model }
  if ('tool' in asked) return { kind: 'tool', what: asked.tool.tool }
  if ('ask' in asked) return { kind: 'ask', what: asked.ask.envelope.to }
  if ('sleep' in asked) return { kind: 'sleep', what: '' }
  if ('unit' in asked) {
    const child = effect.children.map((id) => state.turns.get(id)).find((found) => found && !found.settlement)
    return child ? doingIn(state, child) : { kind: 'unit', what: asked.unit.behaviour }
  }
  return { kind: 'turn', what: turn.task.message }
}

/** How many of them stand how. */
export function census(state: State): Map<Status, number> {
  const all = new Map<Status, number>()
  const parents = parentsIn(state)
  const waiting = new Set([...state.waiting.values()].map((one) => one.agent))
  for (const agent of state.agents.values()) {
    if (agent.id === 'user' || agent.terminatedAt || !isListed(agent, parents)) continue
    const status: Status = waiting.has(agent.id) ? 'needs_you' : agent.turn === undefined ? 'idle' : agentStatus(state, agent.id)
    all.set(status, (all.get(status) ?? 0) + 1)
  }
  return all
}
