// Which society this is, where there is more than one, and a way to the others. It stands above every view.

import { useEffect } from 'react'
import { count, t } from '../i18n'
import { href, prefixOf, usePlace } from '../router'
import { here, parentOf, refreshSocieties, useSocieties } from '../store/societies'
import { useLine } from '../store/store'
import { visit } from '../views/chat/actions'
import { Icon } from './Icon'
import { Link } from './Link'
import { NotThere } from './NotThere'

export function SocietyBar() {
  const line = useLine()
  usePlace()
  const all = useSocieties()
  useEffect(() => {
    if (line !== 'live') return
    void refreshSocieties()
    const look = () => void refreshSocieties()
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [line])
  const name = here(all)
  const own = all.find((one) => one.name === name)
  if (all.length < 2 || name === undefined || !own) return null
  const parent = parentOf(all, name)
  const branches = all.filter((one) => one.forkedFrom === name).length
  return (
    <div className={own.first ? 'society-bar' : 'society-bar other'} role="group" aria-label={t('society.label')}>
      <Icon name="branch" size={16} />
      <label>
        <span className="unseen">{t('society.switch')}</span>
        <select value={name} onChange={(event) => visit(event.target.value)}>
          {all.map((one) => (
            <option key={one.name} value={one.name}>
              {one.forkedFrom ? t('society.option', { name: one.name, parent: one.forkedFrom, n: one.forkedAt ?? 0 }) : one.name}
            </option>
          ))}
        </select>
      </label>
      {branches > 0 && <span className="faint society-note">{count('society.others', branches)}</span>}
      {parent && (
        <button type="button" className="quiet small" onClick={() => visit(parent.name)}>
          <Icon name="left" size={14} />
          {t('society.back', { name: parent.name })}
        </button>
      )}
    </div>
  )
}

/** An address that names a society which the server does not have. */
export function NoSociety({ name }: { name: string }) {
  const all = useSocieties()
  useEffect(() => void refreshSocieties(), [])
  return (
    <NotThere title={t('nowhere.society', { name })} text={t('nowhere.society.text')}>
      <ul className="others">
        {all.map((one) => (
          <li key={one.name}>
            <Link
              className="button"
              href={href('chat', [], {}, prefixOf(one.first ? '' : one.name))}
              onClick={(event) => {
                event.preventDefault()
                visit(one.name)
              }}
            >
              <Icon name="branch" size={15} />
              {one.name}
            </Link>
          </li>
        ))}
      </ul>
    </NotThere>
  )
}
