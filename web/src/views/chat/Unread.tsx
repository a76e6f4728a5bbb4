// What was said to an agent and not read yet: shown at once, below everything else, with what becomes of it.

import { count, t } from '../../i18n'
import { isOfWorkflow } from '../../store/derive'
import type { Agent, State } from '../../store/state'
import type { Artifact } from '../../types'
import { Files } from '../../ui/Files'
import { Icon } from '../../ui/Icon'
import { clock, moment } from '../../ui/format'
import { complain, stop } from './actions'

const MOST = 20

/** Whether a workflow is at a request: it hears what is said in its next round. */
export function hearsAlong(state: State, task: string | undefined): boolean {
  const open = state.requests.get(task ?? '')?.open ?? []
  return [...open].some((id) => {
    const turn = state.turns.get(id)
    return turn !== undefined && isOfWorkflow(turn)
  })
}

/** What becomes of a message that waits. */
function fate(state: State, task: string, id: string): 'round' | 'turn' | 'queue' {
  const request = state.requests.get(task)
  const isFirst = request?.message === id
  if (isFirst || !request || request.open.size === 0) return 'queue'
  return hearsAlong(state, task) ? 'round' : 'turn'
}

export function Unread({ state, agent }: { state: State; agent: Agent }) {
  const envelopes = agent.inbox.filter((entry) => entry.envelope?.from === 'user')
  if (envelopes.length === 0) return null
  return (
    <ol className="unread" aria-label={count('chat.unread', envelopes.length)}>
      {envelopes.slice(0, MOST).map(({ envelope, task, at: sent }) => {
        if (!envelope) return null
        const at = sent ?? state.requests.get(task)?.at ?? Date.now()
        const what = fate(state, task, envelope.id)
        const isOwn = state.requests.get(task)?.message === envelope.id
        return (
          <li key={envelope.id} className="message user waiting" id={isOwn ? `request-${task}` : undefined}>
            <div className="bubble">
              <div className="plain">{envelope.payload.text}</div>
              <Files artifacts={(envelope.payload.meta?.artifacts ?? []) as unknown as Artifact[]} />
            </div>
            <p className="message-foot">
              <Icon name="clock" size={13} />
              <span>{t(`unread.${what}`)}</span>
              {isOwn && (
                <button type="button" className="quiet small" onClick={() => stop(task).catch(complain)}>{t('unread.back')}</button>
              )}
              <time dateTime={new Date(at).toISOString()} title={moment(at)}>{clock(at)}</time>
            </p>
          </li>
        )
      })}
    </ol>
  )
}
