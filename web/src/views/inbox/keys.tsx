// The keys of a decision: a letter alone unless somebody is writing, and with Alt always.

import { useEffect, useRef, useSyncExternalStore } from 'react'

const isWriting = (target: Element | null): boolean => /^(?:INPUT|TEXTAREA|SELECT)$/.test(target?.tagName ?? '')

export function useKeys(isOn: boolean, keys: Record<string, () => unknown>): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    if (!isOn) return
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || document.querySelector('dialog[open]')) return
      if (!event.altKey && isWriting(event.target as HTMLElement)) return
      // With Alt some keyboards write another letter.
      const letter = event.altKey ? event.code.replace(/^Key/, '') : event.key
      const act = latest.current[letter.toLowerCase()]
      if (!act) return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [isOn])
}

function onFocus(listener: () => void): () => void {
  const later = () => requestAnimationFrame(listener)
  document.addEventListener('focusin', later)
  document.addEventListener('focusout', later)
  return () => {
    document.removeEventListener('focusin', later)
    document.removeEventListener('focusout', later)
  }
}

/** The key to press just now. */
export function KeyHint({ letter }: { letter: string }) {
  const needsAlt = useSyncExternalStore(onFocus, () => isWriting(document.activeElement))
  return <kbd>{needsAlt ? `Alt ${letter}` : letter}</kbd>
}
