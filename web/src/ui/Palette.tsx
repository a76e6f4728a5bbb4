// One field to go anywhere and do anything, opened with Ctrl or ⌘ and K. The server finds what was said in conversations.

import { useEffect, useState } from 'react'
import { setLanguage, t, useLanguage } from '../i18n'
import { VIEWS, go, href } from '../router'
import { knownSocieties, refreshSocieties, useSocieties } from '../store/societies'
import { sortedConversations } from '../store/derive'
import { useSearch } from '../store/search'
import { store } from '../store/store'
import { nextTheme } from '../theme'
import { complain, stop, visit } from '../views/chat/actions'
import { type Choice, Chooser } from './Chooser'
import { plainText } from './format'
import { write } from './write'

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
  const past: Choice[] = sortedConversations(state).map((chat) => conversation(chat.id, chat.title))
  const others: Choice[] = knownSocieties().length < 2 ? [] : knownSocieties().map((one) => ({ icon: 'branch', text: t('palette.society', { name: one.name }), run: () => visit(one.name) }))
  return [...views, ...acts, ...others, ...people, ...past]
}

const conversation = (id: string, title: string): Choice => ({ icon: 'chat', text: plainText(title), run: () => go(href('chat', [id])) })

export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const language = useLanguage()
  const [text, setText] = useState('')
  useSocieties()
  useEffect(() => void refreshSocieties(), [])
  const { excerpts } = useSearch(text.trim().length > 1 ? text : '', false)
  const said = [...excerpts.values()].map(({ conversation: id, taskId, text }): Choice => {
    return { icon: 'search', text: plainText(text), also: plainText(store.state.conversations.get(id)?.title ?? id), run: () => go(href('chat', [id, taskId ?? undefined])) }
  })
  return <Chooser label={t('nav.palette')} choices={choices(language, onKeys)} found={said} onText={setText} onClose={onClose} />
}
