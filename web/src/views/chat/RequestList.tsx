// The person's requests, the newest first, with where each stands.

import { useEffect, useState } from 'react'
import { t } from '../../i18n'
import { href } from '../../router'
import { requestStatus } from '../../store/derive'
import type { Request } from '../../store/state'
import { store, useLog, useView } from '../../store/store'
import { Badge, StatusIcon } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { write } from '../../ui/write'
import { clock, day, plainText } from '../../ui/format'

/** How long somebody must have stopped typing before the server searches. */
const REST_MS = 250

export function RequestList({ task, onPick }: { task: string | undefined; onPick?: () => void }) {
  const state = useLog()
  const [wanted, setWanted] = useState('')
  const words = wanted.trim().toLowerCase()
  const [searched, setSearched] = useState('')
  useEffect(() => {
    const later = setTimeout(() => setSearched(words), REST_MS)
    return () => clearTimeout(later)
  }, [words])
  // Older requests are searched by the server; what it finds joins those that are here.
  useView(searched && state.nextRequests ? `requests?find=${encodeURIComponent(searched)}` : undefined, 'frame')
  const all = [...state.requests.values()].filter((request) => !words || request.text.toLowerCase().includes(words)).sort((a, b) => b.seq - a.seq)
  const groups = Map.groupBy(all, (request) => day(request.at))
  const more = words ? undefined : state.nextRequests
  return (
    <nav className="requests" aria-label={t('requests.label')}>
      <div className="requests-head">
        <h2>{t('requests.title')}</h2>
        <button
          type="button"
          className="new"
          aria-label={t('requests.new')}
          title={t('requests.new')}
          onClick={() => {
            onPick?.()
            write()
          }}
        >
          <Icon name="plus" size={17} />
        </button>
      </div>
      {state.requests.size > 8 && (
        <div className="find">
          <Icon name="search" size={15} />
          <input type="search" value={wanted} onChange={(event) => setWanted(event.target.value)} aria-label={t('requests.find')} placeholder={t('requests.find')} />
        </div>
      )}
      {all.length === 0 && <p className="faint none">{t('requests.none')}</p>}
      {[...groups].map(([name, requests]) => (
        <section key={name}>
          <h3>{name}</h3>
          <ul>
            {requests.map((request) => (
              <li key={request.id}>
                <Entry request={request} isHere={request.id === task} status={requestStatus(state, request)} onPick={onPick} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      {more && (
        <button type="button" className="quiet earlier" onClick={() => void store.load(`requests?before=${encodeURIComponent(more)}`, 'requests')}>
          {t('requests.more')}
        </button>
      )}
    </nav>
  )
}

function Entry({ request, isHere, status, onPick }: { request: Request; isHere: boolean; status: ReturnType<typeof requestStatus>; onPick: (() => void) | undefined }) {
  const isLoud = status !== 'done'
  return (
    <Link className="request" href={href('chat', [request.to, request.id])} aria-current={isHere ? 'true' : undefined} onClickCapture={onPick}>
      <span className="request-text">{plainText(request.text)}</span>
      <span className="request-foot">
        {isLoud ? <Badge status={status} /> : <StatusIcon status={status} size={13} />}
        {!isLoud && <span className="unseen">{t('status.done')}</span>}
        {request.to !== 'root' && <span className="to">{request.to}</span>}
        <time className="numbers" dateTime={new Date(request.at).toISOString()}>{clock(request.at)}</time>
      </span>
    </Link>
  )
}
