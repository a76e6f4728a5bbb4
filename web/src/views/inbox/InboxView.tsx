// The view `inbox`: everything in the society that waits for a person.

import { useEffect, useState } from 'react'
import { count, t } from '../../i18n'
import { store, useLog, useView } from '../../store/store'
import { Icon } from '../../ui/Icon'
import { ApprovalCard } from './ApprovalCard'
import { DecideAll } from './DecideAll'
import { useOthers } from './others'

export function InboxView({ rest }: { rest: string[] }) {
  const state = useLog()
  useView('inbox', 'frame')
  // Of very many decisions only the first were read; the next are read when those are decided.
  const isShort = state.unlistedWaiting > 0 && state.waiting.size === 0
  useEffect(() => {
    if (!isShort) return
    store.drop('inbox')
    store.load('inbox', 'frame').catch(() => undefined)
  }, [isShort])
  const others = useOthers()
  const all = [...others, ...[...state.waiting.values()].sort((a, b) => a.at - b.at)]
  const [edited, setEdited] = useState<ReadonlySet<string>>(new Set())
  return (
    <section className="view inbox" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.inbox')}</h1>
        {all.length > 0 && <span className="faint">{count('nav.waiting', all.length)}</span>}
        <span className="grow" />
        <DecideAll all={all} edited={edited} />
      </header>
      {all.length === 0 ? (
        <div className="nothing">
          <Icon name="inbox" size={36} />
          <p>{t('inbox.none')}</p>
          <p className="faint">{t('inbox.none.hint')}</p>
        </div>
      ) : (
        <ul className="approvals">
          {all.map((waiting, place) => (
            <li key={waiting.id} id={`waiting-${waiting.id}`} className={rest[0] === waiting.id ? 'chosen' : undefined}>
              <ApprovalCard
                waiting={waiting}
                hasKeys={rest[0] ? rest[0] === waiting.id : place === 0}
                onEdit={(isEdited) =>
                  setEdited((before) => {
                    const next = new Set(before)
                    if (isEdited) next.add(waiting.id)
                    else next.delete(waiting.id)
                    return next
                  })
                }
              />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
