// The view `chat`: requests on the left, the conversation, and what lies beside it.

import { useState } from 'react'
import { usePlace } from '../../router'
import type { State, Turn } from '../../store/state'
import { t } from '../../i18n'
import { useLine, useLog } from '../../store/store'
import { NotThere } from '../../ui/NotThere'
import { Conversation } from './Conversation'
import { Drawer, SIDES } from './Drawer'
import { RequestList } from './RequestList'

/** The turn whose plan is shown: the one under way, else that of the request, else the newest. */
function turnFor(state: State, agent: string, task: string | undefined): Turn | undefined {
  const thread = state.threads.get(agent)
  if (thread?.turn !== undefined) return state.turns.get(thread.turn)
  const turns = (thread?.items ?? []).filter((item) => item.kind === 'turn').map((item) => state.turns.get(item.turn))
  return turns.findLast((turn) => turn && (!task || turn.task.id === task))
}

export function ChatView({ rest }: { rest: string[] }) {
  const state = useLog()
  const { query } = usePlace()
  const agent = rest[0] ?? 'root'
  const task = rest[1]
  const [isListShown, setListShown] = useState(false)
  const turn = turnFor(state, agent, task)
  const line = useLine()
  if (agent !== 'root' && line === 'live' && !state.agents.has(agent)) return <NotThere title={t('nowhere.agent', { name: agent })} text={t('nowhere.agent.text')} />
  const side = query.has('thread') ? 'thread' : SIDES.find((one) => one === query.get('side'))
  return (
    <div className={`chat${side ? ' with-drawer' : ''}${isListShown ? ' list-shown' : ''}`}>
      <RequestList task={task} onPick={() => setListShown(false)} />
      <Conversation agent={agent} task={task} turn={turn} onList={() => setListShown(true)} />
      {side && <Drawer side={side} turn={turn} task={task} />}
    </div>
  )
}
