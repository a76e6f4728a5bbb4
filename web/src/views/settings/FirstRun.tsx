// What is shown before anything was said: what this is, and three requests that work without a key.

import { useEffect, useState } from 'react'
import { get } from '../../api'
import { t } from '../../i18n'
import { go, href } from '../../router'
import type { Models } from '../../types'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { complain, say } from '../chat/actions'

export function FirstRun({ agent }: { agent: string }) {
  const [models, setModels] = useState<Models>()
  const [trouble, setTrouble] = useState('')
  useEffect(() => {
    get<Models>('/api/models').then(setModels, () => undefined)
  }, [])
  const examples = [
    { text: t('first.files'), hint: t('first.files.hint'), strategy: 'auto' },
    { text: t('first.sum'), hint: t('first.sum.hint'), strategy: 'auto' },
    { text: t('first.time'), hint: t('first.time.hint'), strategy: 'workflow' },
  ] as const
  const start = (text: string, strategy: 'auto' | 'workflow') =>
    say('root', text, { strategy }).then(
      (sent) => go(href('chat', ['root', sent.taskId])),
      (error: unknown) => setTrouble(complain(error)),
    )
  if (agent !== 'root') return <p className="empty">{t('first.agent', { name: agent })}</p>
  return (
    <div className="first">
      <svg viewBox="0 0 32 32" width="52" height="52" aria-hidden="true" className="first-mark">
        <path d="M4 11 16 4l12 7v3H4zM7 16h3v8H7zm7.5 0h3v8h-3zm7.5 0h3v8h-3zM4 26h24v2.5H4z" />
      </svg>
      <h2>{t('first.title')}</h2>
      <p className="first-text">{t('first.text')}</p>
      {models?.offline && (
        <p className="first-offline">
          {t('first.offline')} <Link href={href('settings', ['models'])}>{t('first.model')}</Link>
        </p>
      )}
      <ul className="examples">
        {examples.map((example) => (
          <li key={example.text}>
            <button type="button" className="example" onClick={() => void start(example.text, example.strategy)}>
              <span className="example-text">{example.text}</span>
              <span className="example-hint">{example.hint}</span>
              <Icon name="arrow" size={16} />
            </button>
          </li>
        ))}
      </ul>
      {trouble && <p className="bad">{trouble}</p>}
    </div>
  )
}
