// The log as a time line: the society is shown as it was wherever the slider stands, and can be forked there.

import { useEffect, useState } from 'react'
import { Problem, post } from '../../api'
import { sideOf, t } from '../../i18n'
import { events } from '../../i18n/events'
import { refreshSocieties } from '../../store/societies'
import type { State } from '../../store/state'
import type { View } from '../../types'
import { alarm, announce } from '../../ui/announce'
import { moment } from '../../ui/format'
import { Icon } from '../../ui/Icon'
import { visit } from '../chat/actions'

/** Events a second while it plays, and how long it plays at most. */
const PACE = 12
const LONGEST_MS = 20_000

/** What an event says, in a few words; one that the page does not know, by its name. */
function word({ name }: NonNullable<View['event']>): string {
  const pair = (events as Record<string, readonly [string, string]>)[`event.${name}`]
  return pair ? sideOf(pair) : name
}

export function TimeSlider({ now, at, event, move }: { now: State; at: number | undefined; event: View['event']; move: (to?: number) => void }) {
  const [isPlaying, setPlaying] = useState(false)
  const [made, setMade] = useState<string>()
  const place = at ?? now.seq
  useEffect(() => {
    if (!isPlaying) return
    const pace = Math.max(PACE, (now.seq / LONGEST_MS) * 1000)
    const tick = setInterval(() => {
      const next = (at ?? 0) + Math.max(1, Math.round(pace / PACE))
      if (next >= now.seq) {
        setPlaying(false)
        move(undefined)
      } else move(next)
    }, 1000 / PACE)
    return () => clearInterval(tick)
  }, [isPlaying, at, now.seq, move])
  const play = () => {
    if (!isPlaying && at === undefined) move(1)
    setPlaying(!isPlaying)
  }
  const fork = async () => {
    try {
      const { society } = await post<{ society: string }>('/api/fork', { at: place })
      setMade(society)
      void refreshSocieties()
      announce(t('org.forked', { name: society }))
    } catch (error) {
      alarm(error instanceof Problem ? error.message : String(error))
    }
  }
  return (
    <div className="time" role="group" aria-label={t('org.time')}>
      <button type="button" className="quiet" aria-label={t(isPlaying ? 'org.pause' : 'org.play')} onClick={play}>
        <Icon name={isPlaying ? 'pause' : 'play'} />
      </button>
      <input
        type="range"
        min={1}
        max={Math.max(1, now.seq)}
        value={place}
        aria-label={t('org.place')}
        aria-valuetext={event ? `${place}, ${word(event)}` : String(place)}
        onChange={(change) => {
          setPlaying(false)
          const to = Number(change.target.value)
          move(to >= now.seq ? undefined : to)
        }}
      />
      <p className="time-word numbers">
        {at === undefined ? t('org.now', { n: now.seq }) : t('org.then', { n: place, of: now.seq })}
        {at !== undefined && event && (
          <span className="faint">
            {' '}
            {word(event)} · {moment(event.at)}
          </span>
        )}
      </p>
      {at !== undefined && (
        <button type="button" className="small" onClick={() => move(undefined)}>{t('org.back')}</button>
      )}
      <button type="button" className="small" onClick={() => void fork()}>
        <Icon name="branch" size={15} />
        {t('org.fork')}
      </button>
      {made && (
        <button type="button" className="small primary" onClick={() => visit(made)}>
          {t('org.open_fork', { name: made })}
        </button>
      )}
    </div>
  )
}

