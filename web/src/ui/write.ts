// Where a new request is written.

import { go, href } from '../router'

/** Goes to where a new request is written; it is a new one also while another is under way. */
export function write(): void {
  go(href('chat', [], { new: '1' }))
  requestAnimationFrame(() => document.getElementById('composer')?.focus())
}
