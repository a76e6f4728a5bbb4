// The spans as bars over one time line. Only the rows in sight are drawn.

import type { KeyboardEvent } from 'react'
import { count, t } from '../../i18n'
import { StatusIcon } from '../../ui/Badge'
import { duration, money, number } from '../../ui/format'
import { Icon, type IconName } from '../../ui/Icon'
import { Rows } from '../../ui/Rows'
import { type Span, type SpanKind, extent } from './spans'

const ICONS: Record<SpanKind, IconName> = {
  turn: 'agent',
  model: 'think',
  tool: 'tool',
  ask: 'arrow',
  unit: 'plan',
  approval: 'question',
  sleep: 'clock',
  other: 'dot',
}

export function Waterfall(props: {
  list: Span[]
  now: number
  chosen: string | undefined
  choose: (id?: string) => void
  closed: ReadonlySet<string>
  turn: (id: string) => void
}) {
  const { list, now, chosen, choose, closed, turn } = props
  const [first, last] = extent(list, now)
  const place = (at: number) => `${(((at - first) / (last - first)) * 100).toFixed(3)}%`
  const here = list.findIndex((span) => span.id === chosen)
  const key = (event: KeyboardEvent) => {
    const span = list[here]
    const to = (at: number) => choose(list[Math.max(0, Math.min(list.length - 1, at))]?.id)
    if (event.key === 'ArrowDown') to(here + 1)
    else if (event.key === 'ArrowUp') to(here - 1)
    else if (event.key === 'Home') to(0)
    else if (event.key === 'End') to(list.length - 1)
    else if (event.key === 'ArrowLeft' && span?.hasChildren && !closed.has(span.id)) turn(span.id)
    else if (event.key === 'ArrowRight' && span && closed.has(span.id)) turn(span.id)
    else if (event.key === 'Escape') choose()
    else return
    event.preventDefault()
  }
  return (
    <div className="waterfall">
      <div className="ruler numbers" aria-hidden="true">
        <span />
        <span className="ruler-marks">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span key={share} style={{ insetInlineStart: `${share * 100}%` }}>{duration((last - first) * share)}</span>
          ))}
        </span>
      </div>
      <Rows
        role="treegrid"
        aria-label={t('trace.waterfall')}
        aria-activedescendant={here >= 0 ? `span-${chosen}` : undefined}
        tabIndex={0}
        onKeyDown={key}
        total={list.length}
        height={32}
        shown={here < 0 ? undefined : here}
        row={(index) => {
          const span = list[index]
          if (!span) return null
          const end = span.end ?? now
          return (
            <div
              key={span.id}
              id={`span-${span.id}`}
              role="row"
              aria-level={span.depth + 1}
              aria-selected={span.id === chosen}
              aria-expanded={span.hasChildren ? !closed.has(span.id) : undefined}
              className={`span-row ${span.kind}`}
              onClick={() => choose(span.id)}
            >
              <span role="gridcell" className="span-name" style={{ paddingInlineStart: `${Math.min(span.depth, 12) * 0.875}rem` }}>
                {span.hasChildren ? (
                  <span
                    className={`twist${closed.has(span.id) ? '' : ' open'}`}
                    onClick={(event) => {
                      event.stopPropagation()
                      turn(span.id)
                    }}
                  >
                    <Icon name="right" size={12} />
                  </span>
                ) : (
                  <span className="twist" />
                )}
                <Icon name={ICONS[span.kind]} size={15} />
                <span className="unseen">{t(`trace.kind.${span.kind}`)}</span>
                <span className="span-text" title={span.name}>{(span.kind === 'model' ? span.name.replace(/^[^/]*\//, '') : span.name) || t(`trace.kind.${span.kind}`)}</span>
                {span.note && <span className="span-note">{span.note}</span>}
                <StatusIcon status={span.status} size={13} />
                {span.retries > 0 && <span className="queue">{count('trace.retries', span.retries)}</span>}
              </span>
              <span role="gridcell" className="span-bar">
                <span className={`bar ${span.kind} ${span.status}`} style={{ insetInlineStart: place(span.start), width: `max(3px, ${place(first + (end - span.start))})` }} />
              </span>
              <span role="gridcell" className="span-cost numbers faint">
                {duration(end - span.start)}
                {span.spent && span.spent.tokens > 0 && ` · ${t('unit.tokens', { n: number(span.spent.tokens) })}`}
                {span.spent && span.spent.costNanos > 0 && ` · ${money(span.spent.costNanos)}`}
              </span>
            </div>
          )
        }}
      />
    </div>
  )
}
