// One conversation, or one that is about to start: the main thread of an agent, with what is pinned above it and the composer below.

import { Suspense, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { count, t } from '../../i18n'
import { go, href, usePlace } from '../../router'
import { agentName, agentStatus, conversationStatus } from '../../store/derive'
import type { Chat, Request, State, Turn } from '../../store/state'
import { conversationPath, store, useLog, useLine } from '../../store/store'
import { Badge } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { Operations } from '../../ui/Operations'
import { ApprovalBar } from '../inbox/ApprovalBar'
import { FirstRun, MoreExamples } from '../settings/FirstRun'
import { plainText } from '../../ui/format'
import { type Strategy, complain } from './actions'
import { Composer } from './Composer'
import { MenuButton, Tools } from './ConversationList'
import { PlanBar } from './PlanBar'
import { Timeline } from './Timeline'
import { Unread, hearsAlong } from './Unread'

interface Props {
  /** None where a conversation is about to start. */
  agent: string | undefined
  task: string | undefined
  turn: Turn | undefined
  onList: () => void
}

/** The newest request with an agent that is not done. */
function runningWith(state: State, agent: string | undefined, task: string | undefined): Request | undefined {
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
  const thread = state.threads.get(agent ?? '')
  const role = state.agents.get(agent ?? '')
  const running = runningWith(state, agent, task)
  const isEmpty = line !== 'loading' && (thread?.items.length ?? 0) === 0 && (role?.inbox.length ?? 0) === 0

  useEffect(() => {
    const box = scroller.current
    const inner = content.current
    if (!box || !inner) return
    const observer = new ResizeObserver(() => {
      // What somebody has opened or begun to write in the conversation stays where it is.
      const isAtWork = document.activeElement !== box && box.contains(document.activeElement)
      if (follows.current && !isAtWork) box.scrollTop = box.scrollHeight
      else if (isAtWork) onScroll(true)
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

  // Text that grows after our own scroll looks like a place before the end: only a person scrolls up, and only that lets go.
  const lastTop = useRef(0)
  const onScroll = (letsGo = false) => {
    const box = scroller.current
    if (!box) return
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60
    if (atEnd) follows.current = true
    else if (letsGo || box.scrollTop < lastTop.current) follows.current = false
    lastTop.current = box.scrollTop
    setAtEnd(atEnd || follows.current)
  }
  const toEnd = () => {
    follows.current = true
    if (agent && thread?.later !== undefined) {
      store.drop(conversationPath(agent))
      void store.load(conversationPath(agent), 'conversation', agent).catch(() => undefined)
    }
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight
  }
  const unread = (role?.inbox.length ?? 0) + (role?.unlisted ?? 0)
  const operations = state.operations.get(agent ?? '') ?? []
  const chat = state.conversations.get(agent ?? '')
  const [isRenaming, setRenaming] = useState(false)
  const isSideOpen = place.query.has('side') || place.query.has('thread')
  return (
    <section className="conversation" aria-labelledby="view-title">
      <header className="conversation-head">
        <button type="button" className="quiet to-list" onClick={onList} aria-label={t('list.title')}>
          <Icon name="left" />
        </button>
        {chat && isRenaming ? (
          <Suspense fallback={null}>
            <Tools part="rename" chat={chat} onDone={() => setRenaming(false)} />
          </Suspense>
        ) : (
          <Title state={state} agent={agent} chat={chat} onRename={() => setRenaming(true)} />
        )}
        {unread > 0 && <span className="faint numbers unread-count">{count('chat.unread', unread)}</span>}
        <span className="grow" />
        {chat && <Picked chat={chat} />}
        {chat && <MenuButton chat={chat} isHere onRename={() => setRenaming(true)} />}
        {agent && <button
          type="button"
          className="quiet"
          aria-pressed={isSideOpen}
          aria-label={t('drawer.label')}
          title={t('drawer.label')}
          onClick={() => go(href('chat', place.rest, isSideOpen ? {} : { side: 'plan' }))}
        >
          <Icon name="panel" />
        </button>}
      </header>
      {turn && <PlanBar key={turn.id} turn={turn} />}
      <div className="scroller" ref={scroller} onScroll={() => onScroll()} tabIndex={0} role="log" aria-live="off" aria-label={t('chat.log')}>
        <div className="column" ref={content}>
          {task && line === 'live' && !state.requests.has(task) && <p className="notice">{t('nowhere.request', { name: task })}</p>}
          {isEmpty ? <FirstRun agent={agent} /> : <Timeline thread={agent ?? ''} depth={0} task={task} scroller={scroller} />}
          {role && <Unread state={state} agent={role} />}
          {!isEmpty && agent && <MoreExamples agent={agent} />}
        </div>
      </div>
      <div className="foot">
        {(!isAtEnd || thread?.later !== undefined) && !isEmpty && (
          <button type="button" className="to-end" onClick={toEnd}>
            <Icon name="down" size={15} />
            {t('chat.latest')}
          </button>
        )}
        {agent && <ApprovalBar agent={agent} />}
        {agent && operations.length > 0 && !isEmpty && !running && (
          <div className="operations" role="group" aria-label={t('operation.label', { agent: agentName(state, agent) })}>
            <Operations agent={agent} operations={operations} onSent={(sent) => go(href('chat', [agent, sent.taskId]))} onTrouble={complain} />
          </div>
        )}
        <Composer agent={agent} running={running} hearsAlong={hearsAlong(state, running?.id)} />
      </div>
    </section>
  )
}

/** What is shown: a conversation by its title, which can be changed where it stands, or an agent by its name. */
function Title({ state, agent, chat, onRename }: { state: State; agent: string | undefined; chat: Chat | undefined; onRename: () => void }) {
  if (agent === undefined) return <h1 id="view-title">{t('list.new')}</h1>
  const title = chat ? plainText(chat.title) : agent
  const roleName = chat ? '' : (state.roles.get(state.agents.get(agent)?.role ?? '')?.name ?? '')
  return (
    <>
      <h1 id="view-title" title={title} onDoubleClick={chat && onRename}>{title}</h1>
      {roleName.toLowerCase() !== agent && <span className="faint role-name">{roleName}</span>}
      <Badge status={chat ? conversationStatus(state, chat) : agentStatus(state, agent)} />
    </>
  )
}

/** The model, the strategy and the effort of a conversation; a click changes them. */
function Picked({ chat }: { chat: Chat }) {
  const [anchor, setAnchor] = useState<HTMLElement>()
  const strategy = chat.strategy && chat.strategy !== 'auto' ? t(`strategy.${chat.strategy as Strategy}`) : undefined
  const effort = chat.settings?.effort && t(`effort.${chat.settings.effort}`)
  const picked = [chat.model, strategy, effort].filter(Boolean).join(' · ')
  return (
    <>
      <button type="button" className="quiet small picked" aria-haspopup="dialog" aria-expanded={anchor !== undefined} title={t('settings.conversation')} onClick={(event) => setAnchor(event.currentTarget)}>
        <Icon name="settings" size={16} />
        <span className="unseen">{t('settings.conversation')}</span>
        {picked && <span className="picked-text">{picked}</span>}
      </button>
      {anchor && (
        <Suspense fallback={null}>
          <Tools part="settings" chat={chat} anchor={anchor} onClose={() => setAnchor(undefined)} />
        </Suspense>
      )}
    </>
  )
}
