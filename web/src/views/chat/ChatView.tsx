// The view `chat`: conversations on the left, the conversation, and what lies beside it.

import { Suspense, lazy, useEffect, useState } from 'react'
import { Problem } from '../../api'
import { go, href, usePlace } from '../../router'
import { turnShown } from '../../store/derive'
import type { State } from '../../store/state'
import { placeOf } from '../../store/view'
import { t } from '../../i18n'
import { conversationPath, store, useLine, useLog } from '../../store/store'
import { NotThere } from '../../ui/NotThere'
import { isCarried } from './actions'
import { Conversation } from './Conversation'
import { ConversationList } from './ConversationList'

const Drawer = lazy(() => import('./Drawer').then((file) => ({ default: file.Drawer })))

/** Whether a request lies in the part of a conversation that is here. */
function isHere(state: State, agent: string, task: string): boolean {
  const request = state.requests.get(task)
  const thread = state.threads.get(agent)
  if (!request) return false
  if (!thread || request.to !== agent) return true
  const first = thread.items[0]
  if (thread.earlier !== undefined && first && request.seq < placeOf(first) && request.open.size === 0) return thread.items.some((item) => item.kind === 'turn' && state.turns.get(item.turn)?.task.id === task)
  return thread.later === undefined || request.seq < thread.later
}

/** Has the conversation read, at the chosen request where that is not among the newest. Says whether there is none. */
function useConversation(state: State, agent: string | undefined, task: string | undefined): boolean {
  const line = useLine()
  const [missing, setMissing] = useState<string>()
  const isMissing = agent !== undefined && task !== undefined && !isHere(state, agent, task)
  const isRead = agent === undefined || state.operations.has(agent)
  useEffect(() => {
    if (line !== 'live' || agent === undefined) return
    if (!isMissing) {
      if (!isRead) store.load(conversationPath(agent), 'conversation', agent).catch((error: unknown) => error instanceof Problem && error.status === 404 && setMissing(agent))
      return
    }
    // A request that was just sent comes by itself.
    const later = setTimeout(() => {
      store.drop(conversationPath(agent))
      store.drop(conversationPath(agent, task))
      store.load(conversationPath(agent, task), 'conversation', agent).catch(() => undefined)
    }, 400)
    return () => clearTimeout(later)
  }, [line, agent, task, isMissing, isRead])
  return missing !== undefined && missing === agent && !state.agents.has(agent)
}

export function ChatView({ rest }: { rest: string[] }) {
  const state = useLog()
  const { query } = usePlace()
  const [agent, task] = rest
  const [isListShown, setListShown] = useState(false)
  const isNowhere = useConversation(state, agent, task)
  const turn = agent === undefined ? undefined : turnShown(state, agent, task)
  const isLeft = agent !== undefined && isNowhere && isCarried(agent)
  useEffect(() => {
    if (isLeft) go(href('chat'), { replace: true })
  }, [isLeft])
  if (agent !== undefined && isNowhere) return <NotThere title={t('nowhere.agent', { name: agent })} text={t('nowhere.agent.text')} />
  const side = query.has('thread') ? 'thread' : (['plan', 'files', 'agents'] as const).find((one) => one === query.get('side'))
  return (
    <div className={`chat${side && agent ? ' with-drawer' : ''}${isListShown ? ' list-shown' : ''}`}>
      <ConversationList id={agent} onPick={() => setListShown(false)} />
      <Conversation key={agent ?? ''} agent={agent} task={task} turn={turn} onList={() => setListShown(true)} />
      {side && agent && (
        <Suspense fallback={null}>
          <Drawer side={side} turn={turn} task={task} />
        </Suspense>
      )}
    </div>
  )
}
