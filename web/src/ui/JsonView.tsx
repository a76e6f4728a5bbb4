// A value as people read it: names and values in rows, deeper ones folded in; long texts whole, in a box that scrolls.

import type { Json } from '../types'
import { t } from '../i18n'
import { Visible } from './Visible'

export function JsonView({ value }: { value: unknown }) {
  if (value === undefined || value === null) return <span className="faint">{'—'}</span>
  if (typeof value === 'string') return value.includes('\n') || value.length > 120 ? <pre className="long" tabIndex={0}><Visible text={value} /></pre> : <span className="value"><Visible text={value} /></span>
  if (typeof value !== 'object') return <span className="value mono">{String(value)}</span>
  const entries = Array.isArray(value) ? value.map((one, place) => [String(place + 1), one] as const) : Object.entries(value)
  if (entries.length === 0) return <span className="faint">{t('json.empty')}</span>
  return (
    <dl className="named">
      {entries.map(([name, one]) => (
        <div key={name}>
          <dt><Visible text={name} /></dt>
          <dd>
            <JsonView value={one} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** JSON text as a value; the text itself where it is none. */
export function readJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
