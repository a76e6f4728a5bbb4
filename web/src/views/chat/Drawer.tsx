// What lies beside the conversation: the plan, files, agents, or one thread of the work by itself.

import { t } from '../../i18n'
import { go, href, usePlace } from '../../router'
import { agentStatus, planOf } from '../../store/derive'
import type { Turn } from '../../store/state'
import { useAll, useView } from '../../store/store'
import { StatusIcon } from '../../ui/Badge'
import { Files } from '../../ui/Files'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { Path } from './Delegation'
import { Timeline } from './Timeline'
import { TodoList } from './TodoList'

const SIDES = ['plan', 'files', 'agents'] as const
export type Side = (typeof SIDES)[number]

export function Drawer({ side, turn, task }: { side: Side | 'thread'; turn: Turn | undefined; task: string | undefined }) {
  const place = usePlace()
  const thread = place.query.get('thread')
  const shut = () => go(href(place.view, place.rest))
  const to = (one: Side) => go(href(place.view, place.rest, { side: one }), { replace: true })
  return (
    <aside className="drawer" aria-label={t('drawer.label')} onKeyDown={(event) => event.key === 'Escape' && shut()}>
      <div className="drawer-head">
        <div className="tabs" role="group" aria-label={t('drawer.label')}>
          {SIDES.map((one) => (
            <button key={one} type="button" className="tab" aria-pressed={one === side} onClick={() => to(one)}>
              {t(`drawer.${one}`)}
            </button>
          ))}
        </div>
        <button type="button" className="quiet" onClick={shut} aria-label={t('close')} title={t('close')}>
          <Icon name="close" />
        </button>
      </div>
      <div className="drawer-body">
        {side === 'thread' && thread && <Beside thread={thread} turn={Number(place.query.get('turn') ?? Number.NaN)} />}
        {side === 'plan' && <Plan turn={turn} />}
        {side === 'files' && <AllFiles task={task} />}
        {side === 'agents' && <Agents />}
      </div>
    </aside>
  )
}

function Beside({ thread, turn }: { thread: string; turn: number }) {
  const state = useAll()
  const isMain = state.agents.has(thread)
  useView(Number.isNaN(turn) ? undefined : `turn/${turn}`, 'turn')
  return (
    <>
      <Path thread={thread} />
      <Timeline thread={thread} depth={1} {...(isMain && !Number.isNaN(turn) && { only: [turn] })} />
    </>
  )
}

function Plan({ turn }: { turn: Turn | undefined }) {
  const state = useAll()
  const plan = turn && planOf(state, turn)
  return plan && plan.steps.length > 0 ? <TodoList steps={plan.steps} isGrowing={plan.isGrowing} /> : <p className="empty">{t('drawer.plan.none')}</p>
}

function AllFiles({ task }: { task: string | undefined }) {
  const state = useAll()
  const files = [...state.artifacts.values()].filter((file) => !task || !file.task || file.task === task)
  return files.length > 0 ? <Files artifacts={files.reverse()} /> : <p className="empty">{t('drawer.files.none')}</p>
}

function Agents() {
  const state = useAll()
  const agents = [...state.agents.values()].filter((agent) => !agent.terminatedAt && agent.parent)
  return (
    <ul className="side-agents">
      {agents.map((agent) => (
        <li key={agent.id}>
          <Link href={href('chat', [agent.id])}>
            <StatusIcon status={agentStatus(state, agent.id)} size={15} />
            <span className="line-who">{agent.id}</span>
            <span className="faint">{state.roles.get(agent.role)?.name ?? agent.role}</span>
          </Link>
        </li>
      ))}
    </ul>
  )
}
