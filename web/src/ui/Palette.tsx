// One field to go anywhere and do anything, opened with Ctrl or ⌘ and K.

import { useEffect, useId, useRef, useState } from 'react'
import { setLanguage, t, useLanguage } from '../i18n'
import { VIEWS, go, href } from '../router'
import { knownSocieties, refreshSocieties, useSocieties } from '../store/societies'
import { sortedConversations } from '../store/derive'
import { store } from '../store/store'
import { nextTheme } from '../theme'
import { complain, stop, visit } from '../views/chat/actions'
import { Icon, type IconName } from './Icon'
import { write } from './write'

interface Choice {
  icon: IconName
  text: string
  hint?: string
  run: () => unknown
}

const MOST = 12

function choices(language: 'en' | 'zh', showKeys: () => void): Choice[] {
  const { state } = store
  const views: Choice[] = VIEWS.map((view) => ({ icon: view, text: t(`nav.${view}`), run: () => go(href(view)) }))
  const open = [...state.requests.values()].filter((request) => request.open.size > 0)
  const acts: Choice[] = [
    { icon: 'plus', text: t('list.new'), hint: 'N', run: write },
    ...open.map((request): Choice => ({ icon: 'stop', text: t('palette.stop', { text: request.text }), run: () => stop(request.id).catch(complain) })),
    { icon: 'sun', text: t('palette.theme'), run: nextTheme },
    { icon: 'globe', text: t('language.switch'), run: () => setLanguage(language === 'en' ? 'zh' : 'en') },
    { icon: 'question', text: t('keys.title'), hint: '?', run: showKeys },
  ]
  const agents = [...state.agents.values()].filter((agent) => !agent.terminatedAt && agent.parent)
  const people: Choice[] = agents.map((agent) => ({ icon: 'agent', text: t('palette.talk', { name: agent.id }), run: () => go(href('chat', [agent.id])) }))
  const past: Choice[] = sortedConversations(state).map((chat) => ({ icon: 'chat', text: chat.title, run: () => go(href('chat', [chat.id])) }))
  const others: Choice[] = knownSocieties().length < 2 ? [] : knownSocieties().map((one) => ({ icon: 'branch', text: t('palette.society', { name: one.name }), run: () => visit(one.name) }))
  return [...views, ...acts, ...others, ...people, ...past]
}

export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const language = useLanguage()
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [text, setText] = useState('')
  const [place, setPlace] = useState(0)
  useEffect(() => dialog.current?.showModal(), [])
  useSocieties()
  useEffect(() => void refreshSocieties(), [])
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = choices(language, onKeys).filter((choice) => words.every((word) => choice.text.toLowerCase().includes(word))).slice(0, MOST)
  const at = Math.min(place, Math.max(0, found.length - 1))
  const pick = (choice: Choice | undefined) => {
    onClose()
    choice?.run()
  }
  const onKey = (event: React.KeyboardEvent) => {
    if (event.key === 'ArrowDown') setPlace((at + 1) % found.length)
    else if (event.key === 'ArrowUp') setPlace((at + found.length - 1) % found.length)
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) pick(found[at])
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} className="palette" aria-label={t('nav.palette')} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
        aria-label={t('nav.palette')}
        placeholder={t('nav.palette')}
        value={text}
        autoFocus
        onChange={(event) => {
          setText(event.target.value)
          setPlace(0)
        }}
        onKeyDown={onKey}
      />
      <ul role="listbox" id={id} aria-label={t('nav.palette')}>
        {found.map((choice, n) => (
          <li key={`${choice.icon}${choice.text}${n}`} id={`${id}-${n}`} role="option" aria-selected={n === at} onClick={() => pick(choice)} onMouseMove={() => setPlace(n)}>
            <Icon name={choice.icon} size={17} />
            <span className="choice">{choice.text}</span>
            {choice.hint && <kbd>{choice.hint}</kbd>}
          </li>
        ))}
      </ul>
    </dialog>
  )
}
