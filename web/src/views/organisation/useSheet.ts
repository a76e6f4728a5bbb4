// The sheet that the graph lies on: a box that is scrolled through, at a scale. It is moved with the wheel, by dragging, with the
// keyboard and by touch; with Ctrl (and by pinching a touchpad) the wheel changes the scale around the pointer.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'

export const MARGIN = 40
const SMALLEST = 0.05
const LARGEST = 2
/** The smallest scale at which names can be read; a sheet begins with no smaller one. */
const READABLE = 0.6
const STEP = 1.25
/** Drawn around what is in sight. */
const AROUND = 300
/** A pointer that moved less has clicked. */
const STILL = 4

interface Point {
  x: number
  y: number
}

export interface Sight {
  left: number
  top: number
  right: number
  bottom: number
}

const within = (scale: number): number => Math.max(SMALLEST, Math.min(LARGEST, scale))

/** A sheet of a size, on which `home` is in the middle at first and stays where it is when the sheet changes. */
export function useSheet(size: { width: number; height: number }, home: Point | undefined) {
  const box = useRef<HTMLDivElement>(null)
  const [scale, setScale] = useState(1)
  const [sight, setSight] = useState<Sight>({ left: 0, top: 0, right: 2000, bottom: 1200 })
  /** What must lie where in the box once the scale is drawn. */
  const target = useRef<{ point: Point; at: Point }>(undefined)
  const width = size.width + 2 * MARGIN
  const height = size.height + 2 * MARGIN

  const look = useCallback(() => {
    const element = box.current
    if (!element) return
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = element
    const now = { left: scrollLeft - AROUND, top: scrollTop - AROUND, right: scrollLeft + clientWidth + AROUND, bottom: scrollTop + clientHeight + AROUND }
    setSight((before) => (before.left === now.left && before.top === now.top && before.right === now.right && before.bottom === now.bottom ? before : now))
  }, [])
  const bring = useCallback((point: Point, to: number, at?: Point) => {
    const element = box.current
    if (!element) return
    target.current = { point, at: at ?? { x: element.clientWidth / 2, y: element.clientHeight / 2 } }
    setScale(to)
    settle(element, to, target.current)
  }, [])
  useLayoutEffect(() => {
    if (box.current && target.current) settle(box.current, scale, target.current)
    target.current = undefined
    look()
  })

  /** Everything in sight, if it fits. */
  const fitting = useCallback((): number => {
    const element = box.current
    return element ? within(Math.min(1, element.clientWidth / width, element.clientHeight / height)) : 1
  }, [width, height])
  const fit = () => bring({ x: width / 2, y: height / 2 }, fitting())
  const zoom = useCallback((by: number, at?: Point) => {
    const element = box.current
    if (!element) return
    const middle = at ?? { x: element.clientWidth / 2, y: element.clientHeight / 2 }
    setScale((before) => {
      const next = within(before * by)
      const point = { x: (element.scrollLeft + middle.x) / before, y: (element.scrollTop + middle.y) / before }
      target.current = { point, at: middle }
      return next
    })
  }, [])

  // At first the middle of the top is in sight; when others come, it stays where it is.
  const last = useRef<Point>(undefined)
  const isHere = home !== undefined
  useLayoutEffect(() => {
    const element = box.current
    if (!element || !home) return
    const before = last.current
    last.current = home
    if (!before) {
      const start = Math.max(READABLE, fitting())
      const free = element.clientHeight - height * start
      return bring({ x: home.x, y: 0 }, start, { x: element.clientWidth / 2, y: Math.max(0, Math.min(free / 2, 60)) })
    }
    element.scrollLeft += (home.x - before.x) * scale
    element.scrollTop += (home.y - before.y) * scale
  }, [isHere, home?.x, home?.y])

  useEffect(() => {
    const element = box.current
    if (!element) return
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 150), { x: event.clientX - left, y: event.clientY - top })
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    element.addEventListener('scroll', look, { passive: true })
    const watcher = new ResizeObserver(look)
    watcher.observe(element)
    const stop = drag(element)
    return () => {
      element.removeEventListener('wheel', onWheel)
      element.removeEventListener('scroll', look)
      watcher.disconnect()
      stop()
    }
  }, [look, zoom])
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const deeds: Record<string, () => void> = { '+': () => zoom(STEP), '=': () => zoom(STEP), '-': () => zoom(1 / STEP), '0': fit }
    const deed = deeds[event.key]
    if (!deed) return
    event.preventDefault()
    deed()
  }
  return { box, sight, scale, width, height, fit, nearer: () => zoom(STEP), farther: () => zoom(1 / STEP), bring: (point: Point) => bring(point, Math.max(scale, READABLE)), onKeyDown }
}

/** Scrolls a point of the sheet to a place in the box. */
function settle(box: HTMLElement, scale: number, { point, at }: { point: Point; at: Point }): void {
  box.scrollLeft = point.x * scale - at.x
  box.scrollTop = point.y * scale - at.y
}

/** Lets a mouse drag what is scrolled; touch and pen scroll by themselves. A drag is no click on what it began at. */
function drag(box: HTMLElement): () => void {
  let from: { x: number; y: number; left: number; top: number } | undefined
  let hasMoved = false
  const down = (event: PointerEvent) => {
    if (event.pointerType !== 'mouse' || event.button !== 0) return
    from = { x: event.clientX, y: event.clientY, left: box.scrollLeft, top: box.scrollTop }
    hasMoved = false
  }
  const move = (event: PointerEvent) => {
    if (!from) return
    const [x, y] = [event.clientX - from.x, event.clientY - from.y]
    hasMoved ||= Math.hypot(x, y) > STILL
    if (!hasMoved) return
    box.classList.add('dragged')
    box.scrollLeft = from.left - x
    box.scrollTop = from.top - y
  }
  const up = () => {
    from = undefined
    box.classList.remove('dragged')
  }
  const click = (event: MouseEvent) => {
    if (!hasMoved) return
    hasMoved = false
    event.stopPropagation()
    event.preventDefault()
  }
  box.addEventListener('pointerdown', down)
  addEventListener('pointermove', move)
  addEventListener('pointerup', up)
  box.addEventListener('click', click, true)
  return () => {
    box.removeEventListener('pointerdown', down)
    removeEventListener('pointermove', move)
    removeEventListener('pointerup', up)
    box.removeEventListener('click', click, true)
  }
}
