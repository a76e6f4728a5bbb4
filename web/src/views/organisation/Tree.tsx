// The agents as a tree that can be walked with the keyboard. Only the rows in sight are drawn.

import { type KeyboardEvent, useMemo, useState } from 'react'
import { count, t } from '../../i18n'
import { agentStatus } from '../../store/derive'
import type { State } from '../../store/state'
import { Badge } from '../../ui/Badge'
import { money, number } from '../../ui/format'
import { Icon } from '../../ui/Icon'
import { Rows } from '../../ui/Rows'
import { Now } from './Now'
import { type Node, flat } from './tree'

const HEIGHT = 44

export function Tree(props: { state: State; roots: Node[]; chosen: string | undefined; choose: (agent?: string) => void }) {
  const { state, roots, chosen, choose } = props
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const nodes = useMemo(() => flat(roots, closed), [roots, closed])
  const [focused, setFocused] = useState<string | undefined>(chosen)
  const here = Math.max(0, nodes.findIndex((node) => node.agent.id === (focused ?? chosen)))
  const turn = (id: string, isClosed: boolean) =>
    setClosed((before) => {
      const next = new Set(before)
      if (isClosed) next.add(id)
      else next.delete(id)
      return next
    })
  const at = (place: number) => setFocused(nodes[Math.max(0, Math.min(nodes.length - 1, place))]?.agent.id)
  const key = (event: KeyboardEvent) => {
    const node = nodes[here]
    if (!node) return
    const { agent, children, depth } = node
    const isOpen = children.length > 0 && !closed.has(agent.id)
    const moves: Record<string, () => void> = {
      ArrowDown: () => at(here + 1),
      ArrowUp: () => at(here - 1),
      Home: () => at(0),
      End: () => at(nodes.length - 1),
      ArrowRight: () => (isOpen ? at(here + 1) : turn(agent.id, false)),
      ArrowLeft: () => (isOpen ? turn(agent.id, true) : at(nodes.findLastIndex((one, place) => place < here && one.depth < depth))),
      Enter: () => choose(agent.id),
      ' ': () => choose(agent.id),
    }
    const move = moves[event.key]
    if (!move) return
    event.preventDefault()
    move()
  }
  const active = nodes[here]?.agent.id
  return (
    <Rows
      className="tree"
      role="tree"
      aria-label={t('org.tree.label')}
      aria-activedescendant={active ? `agent-${active}` : undefined}
      tabIndex={0}
      onKeyDown={key}
      total={nodes.length}
      height={HEIGHT}
      shown={here}
      row={(place) => {
        const node = nodes[place]
        if (!node) return null
        const { agent, children, depth } = node
        const isClosed = closed.has(agent.id)
        const status = agentStatus(state, agent.id)
        return (
          <div
            key={agent.id}
            id={`agent-${agent.id}`}
            role="treeitem"
            aria-level={depth + 1}
            aria-posinset={node.place}
            aria-setsize={node.of}
            aria-selected={agent.id === chosen}
            aria-expanded={children.length > 0 ? !isClosed : undefined}
            className={`tree-row${agent.id === active ? ' active' : ''}${status === 'gone' ? ' gone' : ''}`}
            style={{ '--depth': depth } as React.CSSProperties}
            onClick={() => {
              setFocused(agent.id)
              choose(agent.id)
            }}
          >
            {children.length > 0 ? (
              <span
                className={`twist${isClosed ? '' : ' open'}`}
                onClick={(event) => {
                  event.stopPropagation()
                  turn(agent.id, !isClosed)
                }}
              >
                <Icon name="right" size={14} />
              </span>
            ) : (
              <span className="twist" />
            )}
            <span className="who">
              <strong>{agent.id}</strong>
              <span className="faint">{state.roles.get(agent.role)?.name ?? agent.role}</span>
            </span>
            <Badge status={status} />
            <Now state={state} agent={agent} />
            {agent.inbox.length + agent.unlisted > 0 && <span className="queue">{count('org.queue', agent.inbox.length + agent.unlisted)}</span>}
            <span className="spent numbers faint">
              {t('unit.tokens', { n: number(agent.spent.tokens) })} · {money(agent.spent.costNanos)}
            </span>
          </div>
        )
      }}
    />
  )
}
