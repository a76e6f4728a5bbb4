// What waits for the person in a conversation, in reach wherever the conversation is scrolled to.

import { Suspense, lazy, useEffect, useRef, useState } from 'react'
import { count, t } from '../../i18n'
import { href } from '../../router'
import { isFor } from '../../store/derive'
import type { Waiting } from '../../store/state'
import { useLog } from '../../store/store'
import { Icon } from '../../ui/Icon'
import { readJson } from '../../ui/JsonView'
import { Link } from '../../ui/Link'
import { Visible } from '../../ui/Visible'
import { brief } from '../chat/Steps'
import { DecideAll } from './DecideAll'

const ApprovalCard = lazy(() => import('./ApprovalCard').then((file) => ({ default: file.ApprovalCard })))

export function ApprovalBar({ agent }: { agent: string }) {
  const state = useLog()
  const [isOpen, setOpen] = useState(true)
  const [place, setPlace] = useState(0)
  const all = [...state.waiting.values()].filter((waiting) => isFor(state, waiting, agent))
  const [edited, setEdited] = useState<string>()
  const before = useRef(0)
  useEffect(() => {
    if (all.length > before.current) {
      setOpen(true)
    }
    before.current = all.length
  }, [all.length])
  const shown = all[Math.min(place, all.length - 1)]
  if (!shown) return null
  // The bar comes with its card: keys for a decision that is in sight must work.
  return (
    <Suspense fallback={null}>
      <section className="approval-bar" aria-label={t('approval.bar')}>
        <div className="approval-bar-head">
          <button type="button" className="approval-bar-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name="alert" size={16} />
            {count('nav.waiting', all.length)}
            <Icon name={isOpen ? 'down' : 'up'} size={14} />
          </button>
          {all.length > 1 && (
            <span className="ways">
              <button type="button" className="quiet small" onClick={() => setPlace((place + all.length - 1) % all.length)} aria-label={t('approval.before')}>
                <Icon name="left" size={14} />
              </button>
              <span className="numbers">{`${all.indexOf(shown) + 1}/${all.length}`}</span>
              <button type="button" className="quiet small" onClick={() => setPlace((place + 1) % all.length)} aria-label={t('approval.after')}>
                <Icon name="right" size={14} />
              </button>
            </span>
          )}
          <Link href={href('inbox')}>{t('nav.inbox')}</Link>
        </div>
        {isOpen && all.length > 1 && (
          <div className="approval-choice">
            <ol>
              {all.map((waiting, at) => (
                <li key={waiting.id}>
                  <button type="button" className="quiet small" aria-current={waiting === shown || undefined} onClick={() => setPlace(at)}>
                    <Summary waiting={waiting} />
                  </button>
                </li>
              ))}
            </ol>
            <DecideAll all={all} edited={new Set(edited === undefined ? [] : [edited])} />
          </div>
        )}
        {isOpen && <ApprovalCard key={shown.id} waiting={shown} hasKeys onEdit={(isEdited) => setEdited(isEdited ? shown.id : undefined)} />}
      </section>
    </Suspense>
  )
}

/** One line about what waits: the tool and its arguments, or the question. */
function Summary({ waiting: { agent, what } }: { waiting: Waiting }) {
  const call = 'call' in what ? what.call : undefined
  const text = call ? brief(readJson(call.arguments)) : 'question' in what ? what.question : agent
  return (
    <>
      {call && <code>{call.tool}</code>}
      <span className="step-brief">
        <Visible text={text} />
      </span>
    </>
  )
}
