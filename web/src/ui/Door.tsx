// What is shown to whoever has no token yet, or a wrong one.

import { useState } from 'react'
import { signIn, token } from '../api'
import { t } from '../i18n'
import { store } from '../store/store'

export function Door() {
  const [value, setValue] = useState('')
  const wasGiven = token() !== null
  const open = (event: React.FormEvent) => {
    event.preventDefault()
    const secret = value.trim().replace(/^.*token=/, '')
    if (!secret) return
    void signIn(secret).then(() => store.restart())
  }
  return (
    <main className="door">
      <form onSubmit={open}>
        <svg viewBox="0 0 32 32" width="44" height="44" aria-hidden="true">
          <path d="M4 11 16 4l12 7v3H4zM7 16h3v8H7zm7.5 0h3v8h-3zm7.5 0h3v8h-3zM4 26h24v2.5H4z" />
        </svg>
        <h1>{t('door.title')}</h1>
        <p>{t('door.text').split('`').map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}</p>
        <label>
          <span>{t('door.label')}</span>
          <input type="password" autoComplete="off" value={value} onChange={(event) => setValue(event.target.value)} autoFocus />
        </label>
        {wasGiven && <p role="alert" className="bad">{t('door.wrong')}</p>}
        <button type="submit" className="primary">{t('door.open')}</button>
      </form>
    </main>
  )
}
