// All keys, on one sheet.

import { useEffect, useRef } from 'react'
import { t } from '../i18n'

export function KeySheet({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  const keys: [string, string][] = [
    ['Ctrl K', t('nav.palette')],
    ['?', t('keys.title')],
    ['G C · G I · G O', t('keys.go.first')],
    ['G T · G G · G S', t('keys.go.second')],
    ['N', t('list.new')],
    ['/', t('keys.write')],
    ['J · K', t('keys.conversations')],
    ['Enter', t('keys.send')],
    ['Shift Enter', t('keys.line')],
    ['Esc', t('keys.stop')],
    ['(Alt) A · D · E', t('keys.decide')],
    ['Shift + click', t('delegation.beside')],
  ]
  return (
    <dialog ref={dialog} className="sheet" aria-labelledby="sheet-title" onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <h2 id="sheet-title">{t('keys.title')}</h2>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(/( · )/).map((part, place) =>
                part === ' · ' ? <span key={place}>{' · '}</span> : part.split(' ').map((one) => (one === '+' ? ' + ' : <kbd key={one + String(place)}>{one}</kbd>)),
              )}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">{t('close')}</button>
      </form>
    </dialog>
  )
}
