// What others may use, as `window.polis`: one script of theirs adds a component, and the page is not built anew.

import * as React from 'react'
import { alarm } from '../ui/announce'
import { act, listenForActions, registerAction, tellSociety } from './actions'
import type { Options, ToolComponent } from './contract'
import { loadPage } from './page'
import { componentRegistry } from './registry'
import { initComponents } from './shipped'

export interface Polis {
  /** React itself, for components written with it. */
  React: typeof React
  components: {
    register: (name: string, component: ToolComponent | string, options?: Options) => void
    get: (name: string) => ToolComponent | undefined
    render: typeof componentRegistry.render
  }
  actions: { register: typeof registerAction; act: typeof act; tellSociety: typeof tellSociety }
}

declare global {
  interface Window {
    polis: Polis
  }
}

/** Registers what ships, and offers scripts what they need. */
export function startComponents(): void {
  initComponents()
  listenForActions()
  window.polis = {
    React,
    components: {
      register: (name, component, options) => componentRegistry.register(name, component, { from: 'script', ...options }),
      get: (name) => componentRegistry.get(name),
      render: (name, props, isGrowing) => componentRegistry.render(name, props, isGrowing),
    },
    actions: { register: registerAction, act, tellSociety },
  }
}

let isLoaded = false

/** Loads the scripts that the operator put beside the society, once. */
export async function loadScripts(): Promise<void> {
  if (isLoaded) return
  isLoaded = true
  for (const name of await loadPage()) {
    await import(/* @vite-ignore */ `/components/${encodeURIComponent(name)}`).catch((error: unknown) => alarm(`${name}: ${String(error)}`))
  }
}
