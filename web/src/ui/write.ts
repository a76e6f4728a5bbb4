// Where a new conversation begins.

import { go, href } from '../router'

/** Goes to where a new conversation begins. */
export function write(): void {
  go(href('chat'))
  requestAnimationFrame(() => document.getElementById('composer')?.focus())
}
