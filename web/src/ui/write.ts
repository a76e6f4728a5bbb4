// Where a new request is written.

import { go, href } from '../router'

/** Goes to where a new request is written. */
export function write(): void {
  go(href('chat'))
  requestAnimationFrame(() => document.getElementById('composer')?.focus())
}
