// What a component is: one contract for those of the page, for React components of others, and for custom elements.

import type { ComponentType } from 'react'
import type { JsonObject } from '../types'
import type { Schema } from './schema'

/** What every component is given. */
export interface ComponentProps<P = JsonObject> {
  /** What is to be shown, as far as it fits the component's schema. */
  props: P
  /** Whether it is still being written: anything may be missing. */
  isGrowing?: boolean
}

// What a component takes is checked by its schema, so the registry need not know it.
export type ToolComponent = ComponentType<ComponentProps<any>>

export interface Options {
  /** What it takes. Without one it gets whatever JSON there is. */
  schema?: Schema
  /** What it can look like, for the gallery. */
  sample?: JsonObject
  /** Who brought it; the page itself if nobody is named. */
  from?: string
}

export interface Registered extends Options {
  name: string
  component?: ToolComponent
  /** A custom element that is given its props as a property `props`. */
  element?: string
}

/** A piece of what a tool or an agent gives to be shown. */
export interface ToolResultContentItem {
  type: 'text' | 'json' | 'webcomponent' | 'component'
  /** The text, the JSON or the HTML. */
  value?: string
  /** The component's name. */
  component?: string
  props?: JsonObject
}
