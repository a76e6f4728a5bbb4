// One conversation: the main thread of an agent, with what is pinned above it and the composer below.

import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { count, t } from '../../i18n'
import { go, href, usePlace } from '../../router'
import { agentStatus } from '../../store/derive'
import type { Request, State, Turn } from '../../store/state'
import { conversationPath, store, useLog, useLine } from '../../store/store'
import { Badge } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { Operations } from '../../ui/Operations'
import { ApprovalBar } from '../inbox/ApprovalBar'
import { FirstRun, MoreExamples } from '../settings/FirstRun'
import { complain } from './actions'
import { Composer } from './Composer'
import { PlanBar } from './PlanBar'
import { Timeline } from './Timeline'
import { Unread, hearsAlong } from './Unread'

interface Props {
  agent: string
  task: string | undefined
  turn: Turn | undefined
  onList: () => void
}

/** The newest request with an agent that is not done. */
function runningWith(state: State, agent: string, task: string | undefined): Request | undefined {
  const chosen = task ? state.requests.get(task) : undefined
  if (chosen && chosen.to === agent && chosen.open.size > 0) return chosen
  const open = [...state.requests.values()].filter((request) => request.to === agent && request.open.size > 0)
  return open.at(-1)
}

export function Conversation({ agent, task, turn, onList }: Props) {
  const state = useLog()
  const line = useLine()
  const place = usePlace()
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const follows = useRef(true)
  const thread = state.threads.get(agent)
  const running = runningWith(state, agent, task)
  const isEmpty = line !== 'loading' && (thread?.items.length ?? 0) === 0 && (state.agents.get(agent)?.inbox.length ?? 0) === 0

  useEffect(() => {
    const box = scroller.current
    const inner = content.current
    if (!box || !inner) return
    const observer = new ResizeObserver(() => {
      // What somebody has opened or begun to write in the conversation stays where it is.
      const isAtWork = document.activeElement !== box && box.contains(document.activeElement)
      if (follows.current && !isAtWork) box.scrollTop = box.scrollHeight
      else if (isAtWork) onScroll()
    })
    observer.observe(inner)
    observer.observe(box)
    return () => observer.disconnect()
  }, [agent])

  // A request that was chosen is brought into view once it is drawn; one that goes on is followed at its end.
  const brought = useRef<string>(undefined)
  useLayoutEffect(() => {
    if (!task || brought.current === task) return
    const found = document.getElementById(`request-${task}`)
    if (!found) return
    brought.current = task
    const isLast = [...store.state.requests.values()].filter((one) => one.to === agent).at(-1)?.id === task
    follows.current = isLast
    if (isLast && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight
    else found.scrollIntoView({ block: 'start' })
  })

  const onScroll = () => {
    const box = scroller.current
    if (!box) return
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60
    follows.current = atEnd
    setAtEnd(atEnd)
  }
  const toEnd = () => {
    follows.current = true
    if (thread?.later !== undefined) {
      store.drop(conversationPath(agent))
      void store.load(conversationPath(agent), 'conversation', agent).catch(() => undefined)
    }
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight
  }
  const role = state.agents.get(agent)
  const unread = (role?.inbox.length ?? 0) + (role?.unlisted ?? 0)
  const roleName = state.roles.get(role?.role ?? '')?.name ?? ''
  const operations = state.operations.get(agent) ?? []
  const isSideOpen = place.query.has('side') || place.query.has('thread')
  return (
    <section className="conversation" aria-labelledby="view-title">
      <header className="conversation-head">
        <button type="button" className="quiet to-list" onClick={onList} aria-label={t('requests.title')}>
          <Icon name="left" />
        </button>
        <h1 id="view-title">{agent}</h1>
        {roleName.toLowerCase() !== agent && <span className="faint role-name">{roleName}</span>}
        <Badge status={agentStatus(state, agent)} />
        {unread > 0 && <span className="faint numbers unread-count">{count('chat.unread', unread)}</span>}
        <span className="grow" />
        <button
          type="button"
          className="quiet"
          aria-pressed={isSideOpen}
          aria-label={t('drawer.label')}
          title={t('drawer.label')}
          onClick={() => go(href('chat', place.rest, isSideOpen ? {} : { side: 'plan' }))}
        >
          <Icon name="panel" />
        </button>
      </header>
      {turn && <PlanBar key={turn.id} turn={turn} />}
      <div className="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="log" aria-live="off" aria-label={t('chat.log')}>
        <div className="column" ref={content}>
          {task && line === 'live' && !state.requests.has(task) && <p className="notice">{t('nowhere.request', { name: task })}</p>}
          {isEmpty ? <FirstRun agent={agent} /> : <Timeline thread={agent} depth={0} task={task} scroller={scroller} />}
          {role && <Unread state={state} agent={role} />}
          {!isEmpty && <MoreExamples agent={agent} />}
        </div>
      </div>
      <div className="foot">
        {(!isAtEnd || thread?.later !== undefined) && !isEmpty && (
          <button type="button" className="to-end" onClick={toEnd}>
            <Icon name="down" size={15} />
            {t('chat.latest')}
          </button>
        )}
        <ApprovalBar />
        {operations.length > 0 && !isEmpty && !running && (
          <div className="operations" role="group" aria-label={t('operation.label', { agent })}>
            <Operations agent={agent} operations={operations} onSent={(sent) => go(href('chat', [agent, sent.taskId]))} onTrouble={complain} />
          </div>
        )}
        <Composer key={agent} agent={agent} running={running} hearsAlong={hearsAlong(state, running?.id)} />
      </div>
    </section>
  )
}
