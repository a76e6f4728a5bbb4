// A custom element of somebody else's. It gets its props as a property and speaks by `component-action` events.

import { createElement, useEffect, useRef } from 'react'
import type { JsonObject } from '../types'
import { ACTION, act } from './actions'
import type { ComponentProps } from './contract'

export function Element({ tag, props, isGrowing }: ComponentProps & { tag: string }) {
  const place = useRef<HTMLElement & { props?: JsonObject; isGrowing?: boolean }>(null)
  useEffect(() => {
    const element = place.current
    if (!element) return
    element.props = props
    element.isGrowing = isGrowing ?? false
  }, [props, isGrowing])
  useEffect(() => {
    const element = place.current
    if (!element) return
    const hear = (event: Event) => {
      event.stopPropagation()
      const { action, data } = (event as CustomEvent).detail ?? {}
      if (typeof action === 'string') act(action, data)
    }
    element.addEventListener(ACTION, hear)
    return () => element.removeEventListener(ACTION, hear)
  }, [])
  return createElement(tag, { ref: place })
}
