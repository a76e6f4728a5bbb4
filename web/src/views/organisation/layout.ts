// Where the agents stand in the graph: each above the middle of those that it made, the leaves side by side. The members of an
// open group that have nobody below them stand in rows.

import { type Shown, everyOf } from './groups'

export const BOX = { width: 176, height: 84, gapX: 20, gapY: 56 }
/** Around the rows of an open group. */
const PAD = 14

export interface Placed {
  key: string
  shown: Shown
  x: number
  y: number
  /** The one that an edge leads to it from. */
  parent?: Placed
}

/** The frame around the members of an open group. */
export interface Frame {
  key: string
  x: number
  y: number
  width: number
  height: number
}

export interface Layout {
  placed: Placed[]
  frames: Frame[]
  /** By the agents: who is in a closed group is where the group is. */
  byId: Map<string, Placed>
  width: number
  height: number
}

const isLeaf = (shown: Shown): boolean => shown.children.length === 0 && shown.kind === 'agent'

export function layout(roots: Shown[]): Layout {
  const all: Layout = { placed: [], frames: [], byId: new Map(), width: BOX.width, height: BOX.height }
  let next = 0
  const add = (shown: Shown, x: number, y: number, parent?: Placed): Placed => {
    const key = shown.kind === 'agent' ? shown.node.agent.id : shown.key
    const here: Placed = { key, shown, x, y, ...(parent && { parent }) }
    all.placed.push(here)
    const agents = shown.kind === 'agent' ? [shown.node] : shown.isOpen ? [] : everyOf(shown.members)
    for (const node of agents) all.byId.set(node.agent.id, here)
    all.height = Math.max(all.height, y + BOX.height)
    return here
  }
  /** The members of a group in rows, about twice as wide as boxes are. */
  const rows = (group: Placed, members: Shown[]): number => {
    const columns = Math.ceil(Math.sqrt(members.length * 0.75))
    const [stepX, stepY] = [BOX.width + PAD, BOX.height + PAD]
    const top = group.y + BOX.height + BOX.gapY / 2
    for (const [n, member] of members.entries()) {
      const box = add(member, next + PAD + (n % columns) * stepX, top + PAD + Math.floor(n / columns) * stepY, group)
      delete box.parent
    }
    const width = columns * stepX + PAD
    const height = Math.ceil(members.length / columns) * stepY + PAD
    all.frames.push({ key: group.key, x: next, y: top, width, height })
    all.height = Math.max(all.height, top + height)
    const middle = next + width / 2
    next += width + BOX.gapX
    return middle - BOX.width / 2
  }
  const put = (shown: Shown, y: number, parent?: Placed): Placed => {
    const here = add(shown, 0, y, parent)
    if (shown.kind === 'group' && shown.isOpen && shown.children.every(isLeaf)) {
      here.x = rows(here, shown.children)
      return here
    }
    const below = shown.children.map((child) => put(child, y + BOX.height + BOX.gapY, here))
    const first = below[0]
    const last = below.at(-1)
    if (first && last) here.x = (first.x + last.x) / 2
    else {
      here.x = next
      next += BOX.width + BOX.gapX
    }
    return here
  }
  for (const root of roots) put(root, 0)
  all.width = Math.max(BOX.width, next - BOX.gapX)
  return all
}
