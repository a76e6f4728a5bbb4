// A long list of rows of one height, of which only those in sight are drawn.

import { type ReactNode, type UIEvent, useCallback, useEffect, useRef, useState } from 'react'

const BEYOND = 8

export function Rows({
  total,
  height,
  row,
  className,
  shown,
  ...rest
}: {
  total: number
  height: number
  row: (place: number) => ReactNode
  className?: string
  /** A row that must be in sight. */
  shown?: number | undefined
} & React.AriaAttributes & { role?: string; onKeyDown?: React.KeyboardEventHandler; tabIndex?: number }) {
  const box = useRef<HTMLDivElement>(null)
  const [sight, setSight] = useState({ from: 0, to: 40 })
  const look = useCallback(() => {
    const element = box.current
    if (!element) return
    const from = Math.max(0, Math.floor(element.scrollTop / height) - BEYOND)
    const to = Math.ceil((element.scrollTop + element.clientHeight) / height) + BEYOND
    setSight((before) => (before.from === from && before.to === to ? before : { from, to }))
  }, [height])
  useEffect(() => {
    const element = box.current
    if (!element) return
    const watcher = new ResizeObserver(look)
    watcher.observe(element)
    return () => watcher.disconnect()
  }, [look])
  useEffect(() => {
    const element = box.current
    if (!element || shown === undefined || shown < 0) return
    const top = shown * height
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight
  }, [shown, height])
  const from = Math.min(sight.from, Math.max(0, total - 1))
  const to = Math.min(sight.to, total)
  const places = Array.from({ length: Math.max(0, to - from) }, (_, place) => from + place)
  return (
    <div ref={box} className={`rows ${className ?? ''}`} onScroll={(_: UIEvent) => look()} {...rest}>
      <div role="presentation" style={{ height: total * height, position: 'relative' }}>
        <div role="presentation" style={{ transform: `translateY(${from * height}px)` }}>
          {places.map(row)}
        </div>
      </div>
    </div>
  )
}
