// The registry: which name is shown by what. Names can be added and replaced while the page runs.

import { type ReactElement, createElement, useSyncExternalStore } from 'react'
import type { ComponentProps, Options, Registered, ToolComponent } from './contract'
import { Element } from './Element'

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/

export class ComponentRegistry {
  private components = new Map<string, Registered>()
  private listeners = new Set<() => void>()
  private shown: readonly Registered[] = []

  /** Adds a component, or puts it in the place of the one that has the name. A text names a custom element. */
  register(name: string, component: ToolComponent | string, options: Options = {}): void {
    if (!NAME.test(name)) throw new TypeError(`"${name}" is no name for a component: use small envelopes, digits and hyphens`)
    if (typeof component === 'string' && !component.includes('-')) throw new TypeError(`"${component}" is no name for a custom element`)
    const what = typeof component === 'string' ? { element: component } : { component }
    this.components.set(name, { ...options, ...what, name })
    this.shown = [...this.components.values()]
    for (const listener of this.listeners) listener()
  }

  /** What shows a name. */
  get(name: string): ToolComponent | undefined {
    const found = this.components.get(name)
    if (!found?.element) return found?.component
    const { element } = found
    return (given) => <Element tag={element} {...given} />
  }

  find(name: string): Registered | undefined {
    return this.components.get(name)
  }

  /** What shows it, with these props; null for a name that nobody knows. */
  render(name: string, props: ComponentProps['props'], isGrowing = false): ReactElement | null {
    const found = this.components.get(name)
    if (!found) return null
    if (found.element) return <Element tag={found.element} props={props} isGrowing={isGrowing} />
    return found.component ? createElement(found.component, { props, isGrowing }) : null
  }

  /** The custom elements that may stand in HTML of a model. */
  elements(): string[] {
    return this.shown.flatMap(({ element }) => element ?? [])
  }

  all = (): readonly Registered[] => this.shown

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

export const componentRegistry = new ComponentRegistry()

/** All components, shown anew when one comes or is replaced. */
export function useComponents(): readonly Registered[] {
  return useSyncExternalStore(componentRegistry.subscribe, componentRegistry.all)
}
