// The view `inbox`: everything in the society that waits for a person.

import { useEffect, useState } from 'react'
import { post } from '../../api'
import { usePage } from '../../components/page'
import { count, t } from '../../i18n'
import { store, useLog, useView } from '../../store/store'
import { Icon } from '../../ui/Icon'
import { complain } from '../chat/actions'
import { ApprovalCard } from './ApprovalCard'
import { look, useOthers } from './others'

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
  const [trouble, setTrouble] = useState('')
  const others = useOthers()
  const all = [...others, ...[...state.waiting.values()].sort((a, b) => a.at - b.at)]
  const [edited, setEdited] = useState<ReadonlySet<string>>(new Set())
  const mayDecide = usePage()?.approvers.length === 0
  const plain = all.filter((waiting) => mayDecide && waiting.what.kind === 'approval' && waiting.what.call)
  const approveAll = async () => {
    try {
      for (const waiting of plain) await post(`/api/approvals/${encodeURIComponent(waiting.id)}`, { approved: true })
      if (others.length > 0) await look()
    } catch (error) {
      setTrouble(complain(error))
    }
  }
  return (
    <section className="view inbox" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.inbox')}</h1>
        {all.length > 0 && <span className="faint">{count('nav.waiting', all.length)}</span>}
        <span className="grow" />
        {plain.length > 1 && (
          <button type="button" disabled={plain.some((waiting) => edited.has(waiting.id))} onClick={() => void approveAll()}>
            <Icon name="check" size={15} />
            {t('approval.all', { n: plain.length })}
          </button>
        )}
      </header>
      {trouble && <p className="bad">{trouble}</p>}
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
