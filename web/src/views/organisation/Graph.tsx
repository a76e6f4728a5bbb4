// The agents as a graph that is moved, zoomed and searched. Many agents of one role are a group; a message lights the way that it
// went; only what is in sight is drawn.

import { useEffect, useMemo, useState } from 'react'
import { count, t } from '../../i18n'
import { agentStatus } from '../../store/derive'
import type { State } from '../../store/state'
import { useAllAgents } from '../../store/store'
import { AgentChooser } from '../../ui/AgentChooser'
import { Badge, type Status } from '../../ui/Badge'
import { money, number } from '../../ui/format'
import { Icon } from '../../ui/Icon'
import { type Group, everyOf, grouped, wayTo } from './groups'
import { BOX, type Frame, type Placed, layout } from './layout'
import { type Light, useLights } from './lights'
import { Now } from './Now'
import type { Node } from './tree'
import { MARGIN, type Sight, useSheet } from './useSheet'

interface Props {
  state: State
  roots: Node[]
  chosen: string | undefined
  choose: (agent?: string) => void
}

export function Graph({ state, roots, chosen, choose }: Props) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [isFinding, setFinding] = useState(false)
  /** The agent that is brought into the middle once it is drawn. */
  const [wanted, setWanted] = useState(chosen)
  useAllAgents(true)
  const plan = useMemo(() => layout(grouped(roots, opened)), [roots, opened])
  const top = plan.byId.get('root') ?? plan.placed[0]
  const sheet = useSheet(plan, top && middleOf(top))
  const lights = useLights(state)
  const find = (id: string) => {
    setWanted(id)
    choose(id)
  }
  useEffect(() => {
    const found = wanted === undefined ? undefined : plan.byId.get(wanted)
    // Before all are here, it is not known what they belong to.
    if (wanted === undefined || !found || state.nextAgents) return
    if (found.shown.kind === 'group') return setOpened((before) => new Set([...before, ...wayTo(roots, wanted)]))
    setWanted(undefined)
    sheet.bring(middleOf(found))
  }, [plan, wanted])
  // Who is chosen elsewhere, by a link or in the address, is looked for.
  useEffect(() => {
    const found = chosen === undefined ? undefined : plan.byId.get(chosen)
    if (!found || found.shown.kind === 'group' || !isSeen(found, sheet)) setWanted(chosen)
  }, [chosen])
  const toggle = (key: string) =>
    setOpened((before) => {
      const next = new Set(before)
      if (!next.delete(key)) next.add(key)
      return next
    })
  return (
    <div className="graph-view">
      <div ref={sheet.box} className="graph" role="group" tabIndex={0} aria-label={t('org.graph.label')} aria-keyshortcuts="+ - 0" onKeyDown={sheet.onKeyDown}>
        <div className="graph-sheet" style={{ width: sheet.width, height: sheet.height, zoom: sheet.scale }}>
          <Edges plan={plan} lights={lights} sight={sheet.sight} scale={sheet.scale} />
          {plan.placed.filter((one) => isSeen(one, sheet)).map((one) =>
            one.shown.kind === 'agent' ? (
              <AgentBox key={one.key} state={state} place={one} node={one.shown.node} isChosen={one.key === chosen} isLit={lights.some(({ from, to }) => from === one.key || to === one.key)} choose={choose} />
            ) : (
              <GroupBox key={one.key} state={state} place={one} group={one.shown} toggle={() => toggle(one.key)} />
            ),
          )}
        </div>
      </div>
      <div className="graph-tools" role="toolbar" aria-label={t('org.graph.tools')}>
        <Tool label={t('org.find')} icon="search" run={() => setFinding(true)} />
        <Tool label={t('org.nearer')} icon="plus" run={sheet.nearer} />
        <Tool label={t('org.farther')} icon="skip" run={sheet.farther} />
        <Tool label={t('org.fit')} icon="fit" run={sheet.fit} />
        <span className="faint numbers">{`${Math.round(sheet.scale * 100)} %`}</span>
      </div>
      {isFinding && <AgentChooser label={t('org.find')} onPick={find} onClose={() => setFinding(false)} />}
    </div>
  )
}

function Tool({ label, icon, run }: { label: string; icon: 'search' | 'plus' | 'skip' | 'fit'; run: () => void }) {
  return (
    <button type="button" className="quiet" aria-label={label} title={label} onClick={run}>
      <Icon name={icon} size={16} />
    </button>
  )
}

const middleOf = ({ x, y }: Placed) => ({ x: x + MARGIN + BOX.width / 2, y: y + MARGIN + BOX.height / 2 })

function isSeen({ x, y, width = BOX.width, height = BOX.height }: { x: number; y: number; width?: number; height?: number }, { sight, scale }: { sight: Sight; scale: number }): boolean {
  return (x + MARGIN + width) * scale > sight.left && (x + MARGIN) * scale < sight.right && (y + MARGIN + height) * scale > sight.top && (y + MARGIN) * scale < sight.bottom
}

function Edges({ plan, lights, sight, scale }: { plan: ReturnType<typeof layout>; lights: Light[]; sight: Sight; scale: number }) {
  const seen = { sight, scale }
  const edges = plan.placed.filter((one) => one.parent && (isSeen(one, seen) || isSeen(one.parent, seen)))
  const size = { width: plan.width + 2 * MARGIN, height: plan.height + 2 * MARGIN }
  const lit = lights.flatMap(({ key, from, to }) => {
    const [a, b] = [plan.byId.get(from), plan.byId.get(to)]
    return a && b && a !== b ? [{ key, d: edge(a, b) }] : []
  })
  return (
    <svg {...size} aria-hidden="true">
      <g transform={`translate(${MARGIN} ${MARGIN})`}>
        {plan.frames.filter((frame) => isSeen(frame, seen)).map(({ key, ...rest }: Frame) => (
          <rect key={key} className="graph-frame" rx={12} {...rest} />
        ))}
        {edges.map((one) => (
          <path key={one.key} className="edge" d={edge(one.parent as Placed, one)} />
        ))}
        {lit.map(({ key, d }) => (
          <path key={key} className="envelope" d={d} />
        ))}
      </g>
    </svg>
  )
}

function AgentBox({ state, place: { x, y }, node: { agent }, isChosen, isLit, choose }: { state: State; place: Placed; node: Node; isChosen: boolean; isLit: boolean; choose: (agent?: string) => void }) {
  const status = agentStatus(state, agent.id)
  return (
    <button
      type="button"
      className={`graph-agent ${status}${isLit ? ' lit' : ''}`}
      aria-pressed={isChosen}
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
}

/** Agents of one role below one agent, with how they stand. */
function GroupBox({ state, place: { x, y }, group, toggle }: { state: State; place: Placed; group: Group; toggle: () => void }) {
  const census = new Map<Status, number>()
  let tokens = 0
  let costNanos = 0
  for (const { agent } of everyOf(group.members)) {
    const status = agentStatus(state, agent.id)
    if (status !== 'idle') census.set(status, (census.get(status) ?? 0) + 1)
    tokens += agent.spent.tokens
    costNanos += agent.spent.costNanos
  }
  const below = group.size - group.members.length
  return (
    <button
      type="button"
      className={`graph-agent graph-group${census.has('needs_you') ? ' needs_you' : census.has('running') ? ' running' : ''}`}
      aria-expanded={group.isOpen}
      style={{ left: x + MARGIN, top: y + MARGIN, width: BOX.width, height: BOX.height }}
      onClick={toggle}
    >
      <span className="who">
        <strong>{`${state.roles.get(group.role)?.name ?? group.role} × ${group.members.length}`}</strong>
        <Icon name={group.isOpen ? 'up' : 'down'} size={14} />
      </span>
      <span className="faint">{below > 0 ? count('org.below', below) : t('org.group')}</span>
      <span className="census">
        {[...census].map(([status, n]) => (
          <Badge key={status} status={status} n={n} />
        ))}
      </span>
      <span className="faint numbers">
        {t('unit.tokens', { n: number(tokens) })} · {money(costNanos)}
      </span>
    </button>
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
