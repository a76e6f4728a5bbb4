// The agents as a graph. A message lights the way that it went; only what is in sight is drawn.

import { useEffect, useMemo, useRef, useState } from 'react'
import { count, t } from '../../i18n'
import { agentStatus } from '../../store/derive'
import { named } from '../../store/fold'
import type { State } from '../../store/state'
import type { Events } from '../../types'
import { Badge } from '../../ui/Badge'
import { money, number } from '../../ui/format'
import { BOX, type Layout, type Placed, layout } from './layout'
import { Now } from './Now'
import type { Node } from './tree'

/** Messages among the last events light their way. */
const RECENT = 24
const MARGIN = 40
/** The smallest scale at which it can still be read. */
const SMALLEST = 0.7

export function Graph(props: { state: State; roots: Node[]; chosen: string | undefined; choose: (agent?: string) => void }) {
  const { state, roots, chosen, choose } = props
  const plan = useMemo(() => layout(roots), [roots])
  const box = useRef<HTMLDivElement>(null)
  const sight = useSight(box)
  // What is a little too wide is drawn smaller; what is much too wide is scrolled through.
  const share = sight.width / (plan.width + 2 * MARGIN)
  const scale = share >= SMALLEST && share < 1 ? share : 1
  const isSeen = ({ x, y }: Placed) =>
    (x + MARGIN + BOX.width) * scale > sight.left && (x + MARGIN) * scale < sight.right && (y + MARGIN + BOX.height) * scale > sight.top && (y + MARGIN) * scale < sight.bottom
  const seen = plan.placed.filter(isSeen)
  const lit = envelopes(state, plan)
  const edges = plan.placed.filter((one) => one.parent && (isSeen(one) || isSeen(one.parent)))
  return (
    <div ref={box} className="graph" role="group" aria-label={t('org.graph.label')}>
      <div className="graph-sheet" style={{ width: plan.width + 2 * MARGIN, height: plan.height + 2 * MARGIN, zoom: scale }}>
        <svg width={plan.width + 2 * MARGIN} height={plan.height + 2 * MARGIN} aria-hidden="true">
          <g transform={`translate(${MARGIN} ${MARGIN})`}>
            {edges.map((one) => (
              <path key={one.node.agent.id} className="edge" d={edge(one.parent as Placed, one)} />
            ))}
            {lit.map(({ key, from, to }) => (
              <path key={key} className="envelope" d={edge(from, to)} />
            ))}
          </g>
        </svg>
        {seen.map(({ node: { agent }, x, y }) => {
          const status = agentStatus(state, agent.id)
          return (
            <button
              key={agent.id}
              type="button"
              className={`graph-agent ${status}`}
              aria-pressed={agent.id === chosen}
              style={{ left: x + MARGIN, top: y + MARGIN, width: BOX.width, height: BOX.height }}
              onClick={() => choose(agent.id)}
            >
              <span className="who">
                <strong>{agent.id}</strong>
                <Badge status={status} />
              </span>
              <span className="faint">{state.roles.get(agent.role)?.name ?? agent.role}</span>
              <Now state={state} agent={agent} />
              <span className="faint numbers">
                {t('unit.tokens', { n: number(agent.spent.tokens) })} · {money(agent.spent.costNanos)}
                {agent.inbox.length + agent.unlisted > 0 && ` · ${count('org.queue', agent.inbox.length + agent.unlisted)}`}
              </span>
            </button>
          )
        })}
      </div>
    </div>
  )
}

function edge(above: Placed, below: Placed): string {
  const [from, to] = above.y <= below.y ? [above, below] : [below, above]
  const x1 = from.x + BOX.width / 2
  const x2 = to.x + BOX.width / 2
  const [y1, y2] = [from.y + BOX.height, to.y]
  if (y1 > y2) {
    const dip = from.y + BOX.height + BOX.gapY / 2
    return `M${x1} ${y1}C${x1} ${dip} ${x2} ${dip} ${x2} ${to.y + BOX.height}`
  }
  const middle = (y1 + y2) / 2
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`
}

function envelopes(state: State, { byId }: Layout): { key: string; from: Placed; to: Placed }[] {
  const found: { key: string; from: Placed; to: Placed }[] = []
  for (const recorded of state.recent.slice(-RECENT)) {
    const [name, body] = named(recorded)
    const envelope =
      name === 'messageSent'
        ? (body as Events['messageSent']).envelope
        : name === 'effectStarted' && 'ask' in (body as Events['effectStarted']).effect
          ? ((body as Events['effectStarted']).effect as { ask: { envelope: Events['messageSent']['envelope'] } }).ask.envelope
          : undefined
    const from = envelope && byId.get(envelope.from)
    const to = envelope && byId.get(envelope.to)
    if (from && to && from !== to) found.push({ key: String(recorded.seq), from, to })
  }
  return found
}

/** The part of a scrolled box that can be seen, and a little around it. */
function useSight(box: React.RefObject<HTMLDivElement | null>) {
  const [sight, setSight] = useState({ left: 0, top: 0, right: 2000, bottom: 1200, width: 2000 })
  useEffect(() => {
    const element = box.current
    if (!element) return
    const around = 300
    const look = () => {
      const { scrollLeft, scrollTop, clientWidth, clientHeight } = element
      setSight({ left: scrollLeft - around, top: scrollTop - around, right: scrollLeft + clientWidth + around, bottom: scrollTop + clientHeight + around, width: clientWidth })
    }
    look()
    element.addEventListener('scroll', look, { passive: true })
    const watcher = new ResizeObserver(look)
    watcher.observe(element)
    return () => {
      element.removeEventListener('scroll', look)
      watcher.disconnect()
    }
  }, [box])
  return sight
}
