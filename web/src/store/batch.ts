// Does something once for many occasions that come close together.

const QUIET_MS = 200
/** An occasion waits no longer than this, however many follow. */
const MOST_MS = 2000

export class Batch {
  private timer: ReturnType<typeof setTimeout> | undefined
  private since: number | undefined

  constructor(private readonly act: () => void) {}

  /** An occasion. */
  add(): void {
    const now = Date.now()
    this.since ??= now
    clearTimeout(this.timer)
    this.timer = setTimeout(
      () => {
        this.drop()
        this.act()
      },
      Math.max(0, Math.min(QUIET_MS, this.since + MOST_MS - now)),
    )
  }

  /** What there was is done already. */
  drop(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.since = undefined
  }
}
