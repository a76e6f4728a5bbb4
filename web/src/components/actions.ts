// What a component may set off. It names an action; only actions that somebody registered do anything, whatever a model writes
// into the props. One event, `component-action`, carries them all.

import { post } from '../api'
import { t } from '../i18n'
import type { Json } from '../types'
import { alarm } from '../ui/announce'

export const ACTION = 'component-action'

export type Action = (data: Json) => void | Promise<void>

const actions = new Map<string, Action>()

/** Lets components set something off, or replaces what a name does. */
export function registerAction(name: string, action: Action): void {
  actions.set(name, action)
}

/** Sets an action off by the event that everybody can listen to. */
export function act(action: string, data: unknown = null): void {
  // What leaves a component is data: nothing that lives in its page comes along.
  const detail = { action, data: JSON.parse(JSON.stringify(data ?? null)) as Json }
  window.dispatchEvent(new CustomEvent(ACTION, { detail }))
}

/** Listens for actions until the returned function is called. */
export function listenForActions(): () => void {
  const hear = (event: Event) => {
    const { action, data } = (event as CustomEvent<{ action?: unknown; data?: Json }>).detail ?? {}
    if (typeof action !== 'string') return
    const run = actions.get(action)
    if (!run) return alarm(t('component.no_action', { name: action }))
    void Promise.resolve(run(data ?? null)).catch((error: unknown) => alarm(error instanceof Error ? error.message : String(error)))
  }
  window.addEventListener(ACTION, hear)
  return () => window.removeEventListener(ACTION, hear)
}

/** Tells the society what was done with a component: it becomes a message to an agent, root if none is named. */
export async function tellSociety(component: string, action: string, data: Json = null, to: { agentId?: string; taskId?: string } = {}): Promise<void> {
  await post('/api/actions', { component, action, data, ...to })
}
