// What the graph shows: the agents, or, where they are many, those of one role below one agent as a group that can be opened.

import type { Node } from './tree'

/** From so many agents on, those of one role are grouped. */
const MANY = 40
/** So few stay single. */
const FEW = 4

export type Shown = { kind: 'agent'; node: Node; children: Shown[] } | Group

export interface Group {
  kind: 'group'
  key: string
  role: string
  members: Node[]
  /** With all below them. */
  size: number
  isOpen: boolean
  /** The members, if it is open. */
  children: Shown[]
}

/** The forest as it is shown, with the groups that are open. */
export function grouped(roots: Node[], opened: ReadonlySet<string>): Shown[] {
  const isGrouped = sizeOf(roots) > MANY
  const show = (nodes: Node[], above: string): Shown[] => {
    const byRole = new Map<string, Node[]>()
    for (const node of nodes) {
      const role = node.agent.id === 'root' ? '' : node.agent.role
      const members = byRole.get(role)
      if (members) members.push(node)
      else byRole.set(role, [node])
    }
    return [...byRole].flatMap(([role, members]): Shown[] => {
      if (!isGrouped || !role || members.length < FEW) return members.map(single)
      const key = keyOf(above, role)
      const isOpen = opened.has(key)
      return [{ kind: 'group', key, role, members, size: sizeOf(members), isOpen, children: isOpen ? members.map(single) : [] }]
    })
  }
  const single = (node: Node): Shown => ({ kind: 'agent', node, children: show(node.children, node.agent.id) })
  return show(roots, '')
}

/** The groups that an agent lies in, outermost first: its own way and the role of each on it. */
export function wayTo(roots: Node[], id: string): string[] {
  const walk = (nodes: Node[], above: string): string[] | undefined => {
    for (const node of nodes) {
      const below = node.agent.id === id ? [] : walk(node.children, node.agent.id)
      if (below) return [keyOf(above, node.agent.role), ...below]
    }
    return undefined
  }
  return walk(roots, '') ?? []
}

const keyOf = (above: string, role: string): string => `${above}/${role}`

export const sizeOf = (nodes: Node[]): number => nodes.reduce((sum, node) => sum + 1 + sizeOf(node.children), 0)

/** The agents of a group, with all below them. */
export function* everyOf(nodes: Node[]): Generator<Node> {
  for (const node of nodes) {
    yield node
    yield* everyOf(node.children)
  }
}
