// What is shown before anything was said: what this is, and three requests that work without a key. Those that were not tried
// yet stay in reach below the first answers.

import { useEffect, useState } from 'react'
import { get } from '../../api'
import { t } from '../../i18n'
import { go, href } from '../../router'
import { isConversation } from '../../store/derive'
import { useLog } from '../../store/store'
import type { Models } from '../../types'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { type Strategy, complain, say } from '../chat/actions'

/** After this many requests nobody needs examples any more. */
const ENOUGH = 4

interface Example {
  text: string
  hint: string
  strategy: Strategy
}

function examples(): Example[] {
  return [
    { text: t('first.files'), hint: t('first.files.hint'), strategy: 'auto' },
    { text: t('first.sum'), hint: t('first.sum.hint'), strategy: 'auto' },
    { text: t('first.time'), hint: t('first.time.hint'), strategy: 'workflow' },
  ]
}

let asked: Promise<Models> | undefined

/** Which models can be asked, as soon as somebody wants to know. */
export function useModels(isWanted = true): Models | undefined {
  const [models, setModels] = useState<Models>()
  useEffect(() => {
    if (!isWanted) return
    asked ??= get<Models>('/api/models')
    asked.then(setModels, () => {
      asked = undefined
    })
  }, [isWanted])
  return models
}

function Examples({ agent, list, isSmall = false }: { agent: string | undefined; list: Example[]; isSmall?: boolean }) {
  const [trouble, setTrouble] = useState('')
  const start = ({ text, strategy }: Example) =>
    say(agent, text, { strategy }).then(
      (sent) => go(href('chat', [sent.conversation, sent.taskId])),
      (error: unknown) => setTrouble(complain(error)),
    )
  return (
    <>
      <ul className={isSmall ? 'examples small' : 'examples'}>
        {list.map((example) => (
          <li key={example.text}>
            <button type="button" className="example" onClick={() => void start(example)}>
              <span className="example-text">{example.text}</span>
              {!isSmall && <span className="example-hint">{example.hint}</span>}
              <Icon name="arrow" size={16} />
            </button>
          </li>
        ))}
      </ul>
      {trouble && <p className="bad">{trouble}</p>}
    </>
  )
}

export function FirstRun({ agent }: { agent: string | undefined }) {
  const state = useLog()
  if (agent !== undefined && !isConversation(state, agent)) return <p className="empty">{t('first.agent', { name: agent })}</p>
  return (
    <div className="first">
      <svg viewBox="0 0 32 32" width="52" height="52" aria-hidden="true" className="first-mark">
        <path d="M4 11 16 4l12 7v3H4zM7 16h3v8H7zm7.5 0h3v8h-3zm7.5 0h3v8h-3zM4 26h24v2.5H4z" />
      </svg>
      <h2>{t('first.title')}</h2>
      <p className="first-text">{t('first.text')}</p>
      {state.isOffline && (
        <p className="first-offline">
          {t('first.offline')} <Link href={href('settings', ['models'])}>{t('first.model')}</Link>
        </p>
      )}
      <Examples agent={agent} list={examples()} />
    </div>
  )
}

/** The examples that are left, with the offline model only. */
export function MoreExamples({ agent }: { agent: string }) {
  const state = useLog()
  const requests = [...state.requests.values()]
  if (!isConversation(state, agent) || !state.isOffline || requests.length >= ENOUGH || requests.some((request) => request.open.size > 0)) return null
  const left = examples().filter((example) => !requests.some((request) => request.text === example.text))
  return left.length > 0 ? <Examples agent={agent} list={left} isSmall /> : null
}
