// The society as it was: the log folded again up to a place. Going on from a place is cheap; going back begins at the nearest
// earlier one that was kept.

import type { Recorded } from '../types'
import { fold } from './fold'
import { type State, empty } from './state'

/** Follows a slider: keeps the state of the place where it stood last. */
export class Past {
  private state: State = empty()

  at(events: readonly Recorded[], seq: number): State {
    if (seq < this.state.seq) this.state = empty()
    let low = 0
    let high = events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((events[middle] as Recorded).seq <= this.state.seq) low = middle + 1
      else high = middle
    }
    for (let place = low; place < events.length; place += 1) {
      const recorded = events[place] as Recorded
      if (recorded.seq > seq) break
      fold(this.state, recorded)
    }
    return this.state
  }
}
