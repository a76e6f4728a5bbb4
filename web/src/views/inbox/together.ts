// Which calls that wait can be decided together, and the decision about them.

import type { Problem } from '../../api'
import type { Waiting } from '../../store/state'
import type { Review } from '../../types'

/** Whether something speaks for caution, which a person must have seen: outside content, or a tool that its server has changed. */
function isCautioned({ what }: Waiting): boolean {
  if (what.kind !== 'approval') return false
  const { outside = [], changed } = (what.details as Partial<Review> | null | undefined) ?? {}
  return outside.length > 0 || (changed ?? undefined) !== undefined
}

/** Those that can be decided without a look at each. */
export const together = (all: readonly Waiting[]): Waiting[] => all.filter((waiting) => waiting.what.kind === 'approval' && waiting.what.call && !isCautioned(waiting))

export interface Undecided {
  waiting: Waiting
  error: unknown
}

/** Decides one after the other. One that waits no more does not keep the others from it; another error ends it. */
export async function decideEach(all: readonly Waiting[], decide: (id: string) => Promise<unknown>): Promise<Undecided[]> {
  const left: Undecided[] = []
  for (const [place, waiting] of all.entries()) {
    try {
      await decide(waiting.id)
    } catch (error) {
      if ((error as Partial<Problem>).status !== 409) return [...left, ...all.slice(place).map((one) => ({ waiting: one, error }))]
      left.push({ waiting, error })
    }
  }
  return left
}
