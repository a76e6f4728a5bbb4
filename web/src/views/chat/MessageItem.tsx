// One message. What the person said can be asked again, or differently in a branch.

import { memo, useMemo, useState } from 'react'
import { ToolResultDisplay } from '../../components/ToolResultDisplay'
import { t } from '../../i18n'
import { here, useSocieties } from '../../store/societies'
import { store, useRecord } from '../../store/store'
import { waysOf } from '../../store/ways'
import type { Artifact, JsonObject, Message } from '../../types'
import { Copy } from '../../ui/Copy'
import { Files } from '../../ui/Files'
import { Icon } from '../../ui/Icon'
import { Markdown } from '../../ui/Markdown'
import { clock, moment } from '../../ui/format'
import { branch, complain, retry, visit } from './actions'
import { Structured, StructuredText, isStructured } from './Structured'

interface Props {
  message: Message
  turn?: number
  depth: number
  isHeard?: boolean
}

export const MessageItem = memo(function MessageItem({ message, turn, depth, isHeard = false }: Props) {
  return message.sender === 'user' ? (
    <UserMessage message={message} depth={depth} isHeard={isHeard} {...(turn !== undefined && { turn })} />
  ) : (
    <BotMessage message={message} {...(turn !== undefined && { turn })} />
  )
})

function UserMessage({ message, turn, depth, isHeard }: Props) {
  const task = turn === undefined ? undefined : store.state.turns.get(turn)?.task.id
  const request = useRecord((state) => state.requests.get(task ?? ''))
  const [draft, setDraft] = useState<string>()
  const [trouble, setTrouble] = useState('')
  const from = typeof message.meta?.from === 'string' ? message.meta.from : undefined
  const isOwn = depth === 0 && !from && !isHeard && request !== undefined && request.message === message.id
  const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => setTrouble(complain(error)))
  return (
    <article className={isHeard ? 'message user heard' : 'message user'} id={isOwn ? `request-${task}` : undefined} aria-label={from ?? t('chat.you')}>
      {draft === undefined ? (
        <div className="bubble">
          {(from || isHeard) && <p className="from">{from ?? t('chat.heard')}</p>}
          {isStructured(message.text) ? <StructuredText text={message.text} /> : <div className="plain">{message.text}</div>}
          <Files artifacts={(message.meta?.artifacts ?? []) as unknown as Artifact[]} />
        </div>
      ) : (
        <form
          className="bubble editing"
          onSubmit={(event) => {
            event.preventDefault()
            if (request && draft.trim()) void attempt(branch(request, draft.trim()).then(() => setDraft(undefined)))
          }}
        >
          <textarea aria-label={t('chat.edit')} value={draft} rows={Math.min(10, draft.split('\n').length + 1)} onChange={(event) => setDraft(event.target.value)} autoFocus />
          <p className="faint">{t('chat.edit.hint')}</p>
          <div className="buttons">
            <button type="button" className="small" onClick={() => setDraft(undefined)}>{t('cancel')}</button>
            <button type="submit" className="primary small">{t('chat.edit.send')}</button>
          </div>
        </form>
      )}
      {trouble && <p className="bad">{trouble}</p>}
      <div className="message-foot">
        {isOwn && request && draft === undefined && <Ways task={request.id} />}
        {isOwn && request && draft === undefined && (
          <span className="message-tools">
            <button type="button" className="quiet small" onClick={() => void attempt(retry(request))} aria-label={t('chat.retry')} title={t('chat.retry')}>
              <Icon name="retry" size={15} />
            </button>
            <button type="button" className="quiet small" onClick={() => setDraft(message.text)} aria-label={t('chat.edit')} title={t('chat.edit')}>
              <Icon name="edit" size={15} />
            </button>
            <Copy text={message.text} />
          </span>
        )}
        <time dateTime={new Date(message.timestamp).toISOString()} title={moment(message.timestamp)}>{clock(message.timestamp)}</time>
      </div>
    </article>
  )
}

/** The other ways in which a request was asked, each in its own branch. */
function Ways({ task }: { task: string }) {
  const societies = useSocieties()
  const request = store.state.requests.get(task)
  const name = here(societies)
  const ways = useMemo(() => (request ? waysOf(societies, name, store.state.requests.values(), request) : []), [societies, name, request])
  const at = ways.indexOf(name ?? '')
  if (!request || at < 0) return null
  const to = (step: number) => visit(ways[(at + step + ways.length) % ways.length] as string, request.to)
  return (
    <span className="ways" role="group" aria-label={t('chat.branches')}>
      <button type="button" className="quiet small" onClick={() => to(-1)} aria-label={t('chat.branch.before')}>
        <Icon name="left" size={14} />
      </button>
      <span className="numbers">{`${at + 1}/${ways.length}`}</span>
      <button type="button" className="quiet small" onClick={() => to(1)} aria-label={t('chat.branch.after')}>
        <Icon name="right" size={14} />
      </button>
    </span>
  )
}

function BotMessage({ message, turn }: { message: Message; turn?: number }) {
  const component = message.meta?.component as JsonObject | undefined
  const found = useRecord((state) => state.turns.get(turn ?? -1))
  const isWaiting = found !== undefined && found.settledAt === undefined
  if (isWaiting && component === undefined && /…|\.\.\.$/.test(message.text)) return <p className="placeholder">{message.text}</p>
  return (
    <article className="message bot" aria-label={t('chat.answer')}>
      {component && component.component !== 'summary-response' ? <Structured data={component} /> : /^\s*[[{]/.test(message.text) ? <ToolResultDisplay content={message.text} /> : <Markdown text={message.text} />}
      {component?.component === 'summary-response' && component.verified === false && <p className="ending warn">{t('chat.unverified')}</p>}
      <Files artifacts={(message.meta?.artifacts ?? []) as unknown as Artifact[]} />
      <div className="message-foot">
        <time dateTime={new Date(message.timestamp).toISOString()} title={moment(message.timestamp)}>{clock(message.timestamp)}</time>
        <span className="message-tools">
          <Copy text={message.text} />
        </span>
      </div>
    </article>
  )
}
