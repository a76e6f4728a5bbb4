// One field over a list: type to narrow it, go with the arrows, pick with Enter.

import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { count } from '../i18n'
import { Icon, type IconName } from './Icon'

export interface Choice {
  icon: IconName
  text: string
  /** Further words that find it, and are shown beside it. */
  also?: string
  hint?: ReactNode
  run: () => unknown
}

interface Props {
  label: string
  choices: Choice[]
  /** Choices that the caller has found for the text in the field. */
  found?: Choice[]
  onText?: (text: string) => void
  onClose: () => void
}

const MOST = 12

export function Chooser({ label, choices, found: others = [], onText, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [text, setText] = useState('')
  const [place, setPlace] = useState(0)
  useEffect(() => dialog.current?.showModal(), [])
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = choices.filter(({ text, also = '' }) => words.every((word) => `${text} ${also}`.toLowerCase().includes(word)))
  const found = [...all.slice(0, MOST), ...others]
  const at = Math.min(place, Math.max(0, found.length - 1))
  const pick = (choice: Choice | undefined) => {
    onClose()
    choice?.run()
  }
  const onKey = (event: React.KeyboardEvent) => {
    if (event.key === 'ArrowDown') setPlace((at + 1) % Math.max(1, found.length))
    else if (event.key === 'ArrowUp') setPlace((at + found.length - 1) % Math.max(1, found.length))
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) pick(found[at])
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} className="palette" aria-label={label} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
        aria-label={label}
        placeholder={label}
        value={text}
        autoFocus
        onChange={(event) => {
          setText(event.target.value)
          setPlace(0)
          onText?.(event.target.value)
        }}
        onKeyDown={onKey}
      />
      <ul role="listbox" id={id} aria-label={label}>
        {found.map((choice, n) => (
          <li key={`${choice.icon}${choice.text}${n}`} id={`${id}-${n}`} role="option" aria-selected={n === at} onClick={() => pick(choice)} onMouseMove={() => setPlace(n)}>
            <Icon name={choice.icon} size={17} />
            <span className="choice">{choice.text}</span>
            {choice.also && <span className="faint">{choice.also}</span>}
            {choice.hint && <kbd>{choice.hint}</kbd>}
          </li>
        ))}
      </ul>
      {all.length > MOST && <p className="faint numbers palette-rest">{count('palette.more', all.length - MOST)}</p>}
    </dialog>
  )
}
