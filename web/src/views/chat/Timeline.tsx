// The messages and turns of a thread in their order. Of a long one only the newest are drawn; the others follow when they are
// scrolled to.

import { memo, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { t } from '../../i18n'
import type { Item, Thread } from '../../store/state'
import { lastWords } from '../../store/derive'
import { store, useThread } from '../../store/store'
import { keyOf } from '../../store/view'
import { isStructured } from './Structured'
import { MessageItem } from './MessageItem'
import { TurnBlock } from './TurnBlock'

const STEP = 40
/** More turns than these are drawn only while the reader is further up. */
const MOST = 3 * STEP

interface Props {
  thread: string
  /** Only what belongs to these turns. */
  only?: number[]
  depth: number
  /** The request whose beginning must be drawn. */
  task?: string | undefined
  scroller?: React.RefObject<HTMLElement | null>
}

export const Timeline = memo(function Timeline({ thread: id, only, depth, task, scroller }: Props) {
  const thread = useThread(id)
  const items = thread ? shown(thread, only, depth) : []
  const [drawn, setDrawn] = useState(STEP)
  const first = Math.max(0, Math.min(items.length - drawn, placeOf(items, task)))
  const earlier = depth === 0 && !only ? thread?.earlier : undefined
  const top = useRef<HTMLButtonElement>(null)
  const held = useRef<{ height: number; top: number }>(undefined)
  const more = () => {
    const box = scroller?.current
    if (box) held.current = { height: box.scrollHeight, top: box.scrollTop }
    setDrawn((count) => count + STEP)
    if (first <= STEP && earlier !== undefined) void store.load(`conversation/${encodeURIComponent(id)}?before=${earlier}`, 'earlier', id).catch(() => undefined)
  }
  const total = items.length
  useLayoutEffect(() => {
    const box = scroller?.current
    if (box && held.current) box.scrollTop = held.current.top + box.scrollHeight - held.current.height
    held.current = undefined
  }, [drawn, total, scroller])
  // What lies before the part that was read is asked for when somebody goes up, not because there is room for it.
  const wentUp = useRef(false)
  useEffect(() => {
    const box = scroller?.current
    if (!box) return
    let last = box.scrollTop
    const look = () => {
      if (box.scrollTop < last - 1) wentUp.current = true
      last = box.scrollTop
      // Back at the end, what was drawn further up is let go.
      if (box.scrollHeight - last - box.clientHeight < 2) setDrawn((count) => (count > MOST ? STEP : count))
    }
    box.addEventListener('scroll', look, { passive: true })
    return () => box.removeEventListener('scroll', look)
  }, [scroller, thread !== undefined])
  useEffect(() => {
    const button = top.current
    if (!button || !scroller?.current) return
    const isDue = (entries: IntersectionObserverEntry[]) => entries.some((entry) => entry.isIntersecting) && (first > 0 || wentUp.current)
    const observer = new IntersectionObserver((entries) => isDue(entries) && more(), { root: scroller.current, rootMargin: '400px 0px' })
    observer.observe(button)
    return () => observer.disconnect()
  })
  if (!thread) return null
  return (
    <div className="timeline">
      {(first > 0 || earlier !== undefined) && (
        <button type="button" ref={top} className="quiet earlier" onClick={more}>
          {first > 0 && earlier === undefined ? t('chat.earlier', { n: first }) : t('chat.earlier.all')}
        </button>
      )}
      {items.slice(first).map((item) => (
        <Row key={keyOf(item)} item={item} thread={thread} rev={revOf(item, thread)} depth={depth} />
      ))}
    </div>
  )
})

/** A message is a new object whenever it changes. */
function revOf(item: Item, thread: Thread): unknown {
  return item.kind === 'message' ? thread.messages[item.index] : undefined
}

const Row = memo(function Row({ item, thread, depth }: { item: Item; thread: Thread; rev: unknown; depth: number }) {
  if (item.kind === 'turn') return <TurnBlock id={item.turn} depth={depth} />
  if (item.kind === 'heard') return <MessageItem message={item.message} isHeard depth={depth} />
  const message = thread.messages[item.index]
  return message ? <MessageItem message={message} depth={depth} {...(item.turn !== undefined && { turn: item.turn })} /> : null
})

function placeOf(items: Item[], task: string | undefined): number {
  if (!task) return Number.POSITIVE_INFINITY
  const place = items.findIndex((item) => item.kind === 'turn' && store.state.turns.get(item.turn)?.task.id === task)
  return place < 0 ? Number.POSITIVE_INFINITY : Math.max(0, place - 1)
}

/** The items of some turns of a thread, wherever they were read. */
function itemsOf(thread: Thread, turns: number[]): Item[] {
  return turns.flatMap((id) => {
    const own = store.state.turns.get(id)?.items
    return own ?? thread.items.filter((item) => item.kind !== 'heard' && item.turn === id)
  })
}

/** Below a main thread, messages that only repeat what the steps show are left out. */
function shown(thread: Thread, only: number[] | undefined, depth: number): Item[] {
  const isOrder = 'workflow' in thread.meta
  const above = thread.parent && store.state.threads.get(thread.parent.thread)
  const items = only ? itemsOf(thread, only) : thread.items
  return items.filter((item, place) => {
    if (only && !(item.kind !== 'heard' && item.turn !== undefined && only.includes(item.turn))) return false
    if (item.kind !== 'message' || depth === 0) return true
    const message = thread.messages[item.index]
    if (only && message?.sender === 'user') return false
    if (thread.parent && thread.holds.has(item.index)) return false
    if (thread.parent && !above?.parent && message?.text === above?.messages[thread.parent.index]?.text) return false
    const turn = isOrder && item.turn !== undefined ? store.state.turns.get(item.turn) : undefined
    return !isOrder || (place === items.length - 1 && !(turn && isStructured(lastWords(store.state, turn))))
  })
}
