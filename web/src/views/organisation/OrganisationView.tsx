// The view `organisation`: who is there, who made whom, what each is at; now, or at any place of the log.

import '../../styles/organisation-view.css'
import { useMemo, useState } from 'react'
import { addTexts, count, t } from '../../i18n'
import { organisation as texts } from '../../i18n/organisation'
import { go, href, usePlace } from '../../router'
import { ORGANISATION, store, useAll, useView } from '../../store/store'
import { usePast } from '../../store/past'
import { Badge } from '../../ui/Badge'
import { AgentPage } from './AgentPage'
import { Graph } from './Graph'
import { TimeSlider } from './TimeSlider'
import { Tree } from './Tree'
import { census, forest } from './tree'

addTexts(texts)

export function OrganisationView({ rest }: { rest: string[] }) {
  const now = useAll()
  const { query } = usePlace()
  const wanted = query.get('at')
  const at = wanted === null ? undefined : Math.max(0, Math.min(now.seq, Number(wanted) || 0))
  useView(ORGANISATION, 'organisation')
  const past = usePast(at)
  const state = past?.state ?? now
  const isGraph = query.get('as') === 'graph'
  const [withGone, setWithGone] = useState(false)
  const roots = useMemo(() => forest(state, withGone), [state, state.agents.size, state.seq, withGone])
  const chosen = rest[0]
  const keep = { as: isGraph ? 'graph' : undefined, at: at === undefined ? undefined : String(at) }
  const choose = (agent?: string) => go(href('organisation', [agent], keep))
  const show = (as: 'tree' | 'graph') => go(href('organisation', [chosen], { ...keep, as: as === 'graph' ? as : undefined }))
  const move = (to?: number) => go(href('organisation', [chosen], { ...keep, at: to === undefined ? undefined : String(to) }), { replace: true })
  const all = [...census(state)]
  const next = at === undefined ? now.nextAgents : undefined
  return (
    <section className={`organisation${chosen ? ' with-agent' : ''}`} aria-labelledby="view-title">
      <div className="organisation-main">
        <header className="view-head">
          <h1 id="view-title">{t('nav.organisation')}</h1>
          <p className="faint numbers">{count('org.agents', state.agentCount)}</p>
          <ul className="census" aria-label={t('org.census')}>
            {all.map(([status, n]) => (
              <li key={status}>
                <Badge status={status} n={n} />
              </li>
            ))}
          </ul>
          <div className="head-tools">
            <label className="check">
              <input type="checkbox" checked={withGone} onChange={(event) => setWithGone(event.target.checked)} />
              {t('org.gone')}
            </label>
            <div className="switch" role="group" aria-label={t('org.shape')}>
              <button type="button" aria-pressed={!isGraph} onClick={() => show('tree')}>{t('org.tree')}</button>
              <button type="button" aria-pressed={isGraph} onClick={() => show('graph')}>{t('org.graph')}</button>
            </div>
          </div>
        </header>
        {at !== undefined && !past ? (
          <p className="empty">{t('line.loading')}</p>
        ) : roots.length === 0 ? (
          <p className="empty">{t('org.nobody')}</p>
        ) : isGraph ? (
          <Graph state={state} roots={roots} chosen={chosen} choose={choose} />
        ) : (
          <Tree state={state} roots={roots} chosen={chosen} choose={choose} />
        )}
        {next && (
          <button type="button" className="quiet" onClick={() => void store.load(`${ORGANISATION}&after=${encodeURIComponent(next)}`, 'organisation')}>
            {t('org.more')}
          </button>
        )}
        <TimeSlider now={now} at={at} event={past?.event} move={move} />
      </div>
      {chosen && <AgentPage state={state} id={chosen} isPast={at !== undefined} close={() => choose()} />}
    </section>
  )
}
