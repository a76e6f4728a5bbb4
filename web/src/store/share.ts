// One line for all windows of a browser that show the same society: browsers open only six connections to a host. The window
// that holds the lock leads; the others hear from it what it hears, and ask the log themselves for what they missed.

import type { LiveReply } from './state'

/** What windows say to each other. */
export type Word =
  | { hello: string }
  | { welcome: string; seq: number; live: [string, LiveReply][] }
  | { frames: string[] }
  | { live: true }
  | { lost: true }

/** A leader that does not answer within this time is none. */
const PATIENCE_MS = 6000
/** How often it is asked whether it is still there. */
const CHECK_MS = 20_000

/** Without a lock nobody can lead: then every window has a line of its own. */
export const canShare = (): boolean => 'locks' in navigator && typeof BroadcastChannel === 'function'

export const nameOfLine = (prefix: string): string => `polis.line:${prefix}`

interface Listener {
  /** Takes one frame of the line. */
  take: (frame: string) => void
  /** Whether nothing was missed before this event. */
  isNext: (seq: number) => boolean
  catchUp: () => Promise<void>
  welcome: (live: [string, LiveReply][]) => void
  lose: () => void
  tell: () => void
  /** Nobody leads. */
  alone: () => void
}

/** Is told by the window that leads. */
export function attend(channel: BroadcastChannel, signal: AbortSignal, listener: Listener): void {
  const me = crypto.randomUUID()
  let isWelcome = false
  let patience: ReturnType<typeof setTimeout> | undefined
  const hello = () => {
    clearTimeout(patience)
    patience = setTimeout(listener.alone, PATIENCE_MS)
    channel.postMessage({ hello: me } satisfies Word)
  }
  const check = setInterval(hello, CHECK_MS)
  signal.addEventListener('abort', () => {
    clearTimeout(patience)
    clearInterval(check)
  })
  const hear = async (word: Word) => {
    if (signal.aborted) return
    if ('live' in word && !('welcome' in word)) {
      isWelcome = false
      hello()
    } else if ('lost' in word) {
      isWelcome = false
      clearTimeout(patience)
      listener.lose()
    } else if ('welcome' in word && word.welcome === me) {
      clearTimeout(patience)
      if (!listener.isNext(word.seq + 1)) await listener.catchUp()
      isWelcome = true
      listener.welcome(word.live)
    } else if ('frames' in word) {
      for (const frame of word.frames) {
        const seq = Number(/^id: ?(\d+)/m.exec(frame)?.[1] ?? Number.NaN)
        if (Number.isNaN(seq)) {
          // Of a reply that was not heard from its beginning, the rest would make no sense.
          if (isWelcome) listener.take(frame)
          continue
        }
        if (!listener.isNext(seq)) await listener.catchUp()
        listener.take(frame)
      }
      listener.tell()
    }
  }
  // One word after the other, in their order.
  let queue: Promise<void> = Promise.resolve()
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    queue = queue.then(() => hear(data)).catch(() => hello())
  }
  hello()
}
