// The ways in which a request was asked, from where societies part.

import type { Societies } from '../types'
import type { Request } from './state'

export type Society = Societies['societies'][number]

/** The societies in which a request was asked in one way or another, the first wording first. Forks that part at the same place
 * part before the same request. */
export function waysOf(societies: Society[], name: string | undefined, requests: Iterable<Request>, request: Request): string[] {
  const asked = [...requests].sort((a, b) => a.seq - b.seq)
  const byName = new Map(societies.map((one) => [one.name, one]))
  const ways: string[] = []
  let through = Number.POSITIVE_INFINITY
  let via = name
  for (let owner = name; owner !== undefined; ) {
    const places = new Set(societies.filter((one) => one.forkedFrom === owner && (one.forkedAt ?? 0) <= through).map((one) => one.forkedAt ?? 0))
    for (const place of places) {
      if (asked.find((one) => one.seq > place)?.id !== request.id) continue
      const forks = societies.filter((one) => one.forkedFrom === owner && one.forkedAt === place && (one.events > place + 1 || one.name === via))
      const group = [owner, ...forks.map((one) => one.name).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))]
      // Whoever is on the way to here stands for it.
      const standIn = place === through ? via : owner
      for (const one of group) {
        const way = one === standIn ? (name as string) : one
        if (!ways.includes(way)) ways.push(way)
      }
    }
    const above = byName.get(owner)
    if (!above?.forkedFrom) break
    through = above.forkedAt ?? 0
    via = owner
    owner = above.forkedFrom
  }
  return ways.length > 1 ? ways : []
}
