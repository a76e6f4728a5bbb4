// The view `trace`: what was done for a request, as a waterfall; what it cost, and what was asked and answered.

import '../../styles/trace.css'
import { useEffect, useMemo, useState } from 'react'
import { addTexts, count, t } from '../../i18n'
import { trace as texts } from '../../i18n/trace'
import { go, href, usePlace } from '../../router'
import { agentName, requestStatus } from '../../store/derive'
import { store, useAll, useLine, useView } from '../../store/store'
import { Badge } from '../../ui/Badge'
import { duration, money, moment, number, plainText } from '../../ui/format'
import { Link } from '../../ui/Link'
import { Inspector } from './Inspector'
import { Totals } from './Totals'
import { Waterfall } from './Waterfall'
import { newest, spans } from './spans'

addTexts(texts)

export function TraceView({ rest }: { rest: string[] }) {
  const state = useAll()
  const { query } = usePlace()
  const line = useLine()
  const task = rest[0]
  useView(task ? `task/${encodeURIComponent(task)}` : undefined, 'tree')
  const request = task ? state.requests.get(task) : undefined
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const [search, setSearch] = useState('')
  const all = useMemo(() => (task ? spans(state, task, closed) : []), [state, state.rev, task, closed])
  const word = search.trim().toLowerCase()
  const list = word ? all.filter((span) => `${span.name} ${span.note ?? ''} ${span.agent} ${span.kind}`.toLowerCase().includes(word)) : all
  const isRunning = list.some((span) => span.end === undefined)
  const now = useTick(isRunning)
  const chosen = query.get('span') ?? query.get('turn') ?? undefined
  const choose = (span?: string) => go(href('trace', [task], { span }), { replace: true })
  if (!task) return <Requests />
  return (
    <section className={`trace${chosen ? ' with-span' : ''}`} aria-labelledby="view-title">
      <div className="trace-main">
        <header className="view-head">
          <p className="crumbs">
            <Link href={href('trace')}>{t('nav.trace')}</Link>
          </p>
          <h1 id="view-title">{request ? plainText(request.text).slice(0, 120) : task}</h1>
          <div className="trace-line">
            {request && <Badge status={requestStatus(state, request)} why={request.failedPart?.message} />}
            {request && (
              <p className="faint numbers">
                {[request.endedAt && duration(request.endedAt - request.at), t('unit.tokens', { n: number(request.spent.tokens) }), money(request.spent.costNanos)].filter(Boolean).join(' · ')}
              </p>
            )}
            {request && <Link href={href('chat', [request.to, task])}>{t('trace.to_chat')}</Link>}
            <label className="search">
              <span className="unseen">{t('trace.search')}</span>
              <input type="search" placeholder={t('trace.search')} value={search} onChange={(event) => setSearch(event.target.value)} />
            </label>
          </div>
        </header>
        {list.length === 0 ? (
          <p className="empty">{request || line !== 'live' ? t('trace.nothing') : t('trace.unknown', { name: task })}</p>
        ) : (
          <Waterfall
            list={list}
            now={now}
            chosen={chosen}
            choose={choose}
            closed={closed}
            turn={(id) =>
              setClosed((before) => {
                const next = new Set(before)
                if (!next.delete(id)) next.add(id)
                return next
              })
            }
          />
        )}
        <Totals state={state} task={task} />
      </div>
      {chosen && <Inspector state={state} id={chosen} close={() => choose()} />}
    </section>
  )
}

function Requests() {
  const state = useAll()
  useView('trace', 'trace')
  const requests = newest(state)
  const more = state.nextRequests
  return (
    <section className="view" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.trace')}</h1>
        <p className="faint numbers">{count('trace.requests', requests.length)}{more && '+'}</p>
      </header>
      {requests.length === 0 && <p className="empty">{t('trace.no_requests')}</p>}
      {requests.length > 0 && (
        <>
          <table className="sheet-table">
            <thead>
              <tr>
                <th scope="col">{t('trace.request')}</th>
                <th scope="col">{t('trace.to')}</th>
                <th scope="col">{t('trace.state')}</th>
                <th scope="col" className="right">{t('trace.took')}</th>
                <th scope="col" className="right">{t('trace.tokens')}</th>
                <th scope="col" className="right">{t('trace.cost')}</th>
                <th scope="col" className="right">{t('trace.when')}</th>
              </tr>
            </thead>
            <tbody>
              {requests.map((request) => (
                <tr key={request.id}>
                  <td className="wide">
                    <Link href={href('trace', [request.id])}>{plainText(request.text).slice(0, 140) || request.id}</Link>
                  </td>
                  <td>{agentName(state, request.to)}</td>
                  <td>
                    <Badge status={requestStatus(state, request)} why={request.failedPart?.message} />
                  </td>
                  <td className="right numbers">{request.endedAt ? duration(request.endedAt - request.at) : '…'}</td>
                  <td className="right numbers">{number(request.spent.tokens)}</td>
                  <td className="right numbers">{money(request.spent.costNanos)}</td>
                  <td className="right numbers faint">{moment(request.at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {more && (
            <button type="button" className="quiet" onClick={() => void store.load(`trace?before=${encodeURIComponent(more)}`, 'trace')}>
              {t('trace.more')}
            </button>
          )}
          <Totals state={state} task={undefined} />
        </>
      )}
    </section>
  )
}

/** The time, a few times a second while something lasts. */
function useTick(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return
    const tick = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(tick)
  }, [isRunning])
  return now
}
