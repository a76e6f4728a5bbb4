// A button that copies a text, and says so only if it was copied.

import { useState } from 'react'
import { t } from '../i18n'
import { alarm, announce } from './announce'
import { Icon } from './Icon'

/** Copies a text. Browsers keep the clipboard itself from pages that came over plain HTTP from another machine. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const box = document.createElement('textarea')
    box.value = text
    box.className = 'unseen'
    const before = document.activeElement
    document.body.append(box)
    box.select()
    const isDone = document.execCommand('copy')
    box.remove()
    if (before instanceof HTMLElement) before.focus()
    return isDone
  }
}

export function Copy({ text, label }: { text: string; label?: string }) {
  const [state, setState] = useState<'done' | 'failed'>()
  const press = async () => {
    const isDone = await copy(text)
    setState(isDone ? 'done' : 'failed')
    if (isDone) announce(t('copied'))
    else alarm(t('copied.not'))
    setTimeout(() => setState(undefined), 1500)
  }
  const name = state === 'failed' ? t('copied.not') : (label ?? t('copy'))
  return (
    <button type="button" className="quiet small" onClick={press} aria-label={name} title={name}>
      <Icon name={state === 'done' ? 'check' : state === 'failed' ? 'cross' : 'copy'} size={15} />
    </button>
  )
}
