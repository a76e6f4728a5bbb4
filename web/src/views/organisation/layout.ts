// Where the agents stand in the graph: each above the middle of those that it made, the leaves side by side.

import type { Node } from './tree'

export const BOX = { width: 176, height: 84, gapX: 20, gapY: 56 }

export interface Placed {
  node: Node
  x: number
  y: number
  parent?: Placed
}

export interface Layout {
  placed: Placed[]
  byId: Map<string, Placed>
  width: number
  height: number
}

export function layout(roots: Node[]): Layout {
  const placed: Placed[] = []
  const byId = new Map<string, Placed>()
  let next = 0
  let deepest = 0
  const put = (node: Node, parent?: Placed): Placed => {
    const here: Placed = { node, x: 0, y: node.depth * (BOX.height + BOX.gapY), ...(parent && { parent }) }
    placed.push(here)
    byId.set(node.agent.id, here)
    deepest = Math.max(deepest, node.depth)
    const below = node.children.map((child) => put(child, here))
    const first = below[0]
    const last = below.at(-1)
    if (first && last) here.x = (first.x + last.x) / 2
    else {
      here.x = next
      next += BOX.width + BOX.gapX
    }
    return here
  }
  for (const root of roots) put(root)
  return {
    placed,
    byId,
    width: Math.max(BOX.width, next - BOX.gapX),
    height: (deepest + 1) * BOX.height + deepest * BOX.gapY,
  }
}
