// What it cost: by agent, by model, by tool, and over time.

import { useState } from 'react'
import { t } from '../../i18n'
import type { State } from '../../store/state'
import { clock, money, number, plainText } from '../../ui/format'
import { costs, sums, usageOverTime } from './spans'

const BY = ['agent', 'model', 'task'] as const
const PARTS = 48

export function Totals({ state, task }: { state: State; task: string | undefined }) {
  const [by, setBy] = useState<(typeof BY)[number]>('agent')
  const all = costs(state, task)
  const rows = sums(all, (cost) => {
    if (by === 'agent') return cost.agent
    if (by === 'task') return plainText(state.requests.get(cost.task)?.text ?? cost.task).slice(0, 80)
    return cost.name || t('trace.kind.other')
  })
  const bars = usageOverTime(all, PARTS)
  const most = Math.max(1, ...bars.map((bar) => bar.tokens))
  if (rows.length === 0) return null
  const choices = BY.filter((one) => one !== 'task' || !task)
  return (
    <section className="totals-sheet" aria-labelledby="totals-title">
      <header>
        <h2 id="totals-title">{t('trace.totals')}</h2>
        <div className="switch" role="group" aria-label={t('trace.by')}>
          {choices.map((one) => (
            <button key={one} type="button" aria-pressed={one === by} onClick={() => setBy(one)}>{t(`trace.by.${one}`)}</button>
          ))}
        </div>
      </header>
      <div className="totals-body">
        <table className="sheet-table">
          <thead>
            <tr>
              <th scope="col">{t(`trace.by.${by}`)}</th>
              <th scope="col" className="right">{t('trace.calls')}</th>
              <th scope="col" className="right">{t('trace.tokens')}</th>
              <th scope="col" className="right">{t('trace.cost')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 20).map((row) => (
              <tr key={row.name}>
                <td className="wide">{row.name}</td>
                <td className="right numbers">{number(row.requests)}</td>
                <td className="right numbers">{number(row.tokens)}</td>
                <td className="right numbers">{money(row.costNanos)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {bars.length > 0 && (
          <figure className="plot">
            <svg viewBox={`0 0 ${PARTS * 10} 120`} preserveAspectRatio="none" role="img" aria-label={t('trace.over_time')}>
              {bars.map((bar, place) => (
                <rect key={place} x={place * 10 + 1} width={8} y={120 - (bar.tokens / most) * 116} height={(bar.tokens / most) * 116} />
              ))}
            </svg>
            <span className="peak faint numbers">{t('trace.peak', { n: number(most) })}</span>
            <figcaption className="faint numbers">
              <span>{clock((bars[0] as { at: number }).at)}</span>
              <span>{t('trace.over_time')}</span>
              <span>{clock((bars.at(-1) as { at: number }).at)}</span>
            </figcaption>
          </figure>
        )}
      </div>
    </section>
  )
}
