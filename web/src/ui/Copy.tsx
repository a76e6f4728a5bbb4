// A button that copies a text.

import { useState } from 'react'
import { t } from '../i18n'
import { announce } from './announce'
import { Icon } from './Icon'

export function Copy({ text, label }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => undefined)
    setDone(true)
    announce(t('copied'))
    setTimeout(() => setDone(false), 1500)
  }
  const name = label ?? t('copy')
  return (
    <button type="button" className="quiet small" onClick={copy} aria-label={name} title={name}>
      <Icon name={isDone ? 'check' : 'copy'} size={15} />
    </button>
  )
}
