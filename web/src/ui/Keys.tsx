// Keys that work everywhere, the palette and the sheet of keys. Whoever is writing is left alone.

import { Suspense, lazy, useEffect, useState } from 'react'
import { type View, go, homeOf, href, usePlace } from '../router'
import { sortedConversations } from '../store/derive'
import { store } from '../store/store'
import { Palette } from './Palette'
import { write } from './write'

const KeySheet = lazy(() => import('./KeySheet').then((file) => ({ default: file.KeySheet })))

const AFTER_G: Record<string, View> = { c: 'chat', i: 'inbox', o: 'organisation', t: 'trace', g: 'gallery', s: 'settings' }
const MEANT_TOGETHER_MS = 1200

export function Keys() {
  const place = usePlace()
  const [shown, setShown] = useState<'palette' | 'sheet'>()
  useEffect(() => {
    let went = 0
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        setShown((before) => (before === 'palette' ? undefined : 'palette'))
        return
      }
      const target = event.target as HTMLElement
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select, dialog')) return
      const key = event.key.toLowerCase()
      const view = AFTER_G[key]
      if (Date.now() - went < MEANT_TOGETHER_MS && view) {
        went = 0
        go(homeOf(view))
      } else if (key === 'g') went = Date.now()
      else if (event.key === '?') setShown('sheet')
      else if (key === 'n') write()
      else if (key === '/') document.getElementById('composer')?.focus()
      else if (key === 'j' || key === 'k') step(place.view === 'chat' ? place.rest[0] : undefined, key === 'j' ? 1 : -1)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [place])
  return (
    <Suspense fallback={null}>
      {shown === 'palette' && <Palette onClose={() => setShown((before) => (before === 'palette' ? undefined : before))} onKeys={() => setShown('sheet')} />}
      {shown === 'sheet' && <KeySheet onClose={() => setShown(undefined)} />}
    </Suspense>
  )
}

/** The conversation before or after this one in the list. */
function step(id: string | undefined, by: number): void {
  const all = sortedConversations(store.state).filter((chat) => !chat.archived)
  const at = all.findIndex((chat) => chat.id === id)
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))]
  if (next) go(href('chat', [next.id]))
}
