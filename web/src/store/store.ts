// The one store: reads the view that the address names, then follows the log live, and notifies components at most once a
// frame. Further views are read when they are shown. The cursor is the last event that was applied; a connection that broke
// goes on there, so no event is missed or applied twice. The windows of one browser share a connection: one of them leads, the
// others receive its frames (`share.ts`).

import { useEffect, useSyncExternalStore } from 'react'
import { Problem, ask } from '../api'
import type { Conversation, Conversations, Excerpt, Recorded, LiveDelta, StreamedStep, View } from '../types'
import { type Place, place, prefix } from '../router'
import { Batch } from './batch'
import { fold } from './fold'
import { catchUpLive, forget, hear, see, soFar } from './live'
import { type Word, attend, canShare, nameOfLine } from './share'
import { type EffectState, type State, type Thread, type Turn, empty } from './state'
import { type Part, adopt, adoptConversations, reaches } from './view'

/** How the line to the server stands. */
export type Line = 'loading' | 'live' | 'lost' | 'asleep' | 'closed_door' | 'nowhere'

const PAGE = 1000
/** Who has missed more events than this reads the view again. */
const MOST_MISSED = 3000
/** A hidden tab keeps its line this long. */
const HIDDEN_MS = 500
const RETRY_MS = [250, 500, 1000, 2000, 4000, 8000]

class Store {
  state: State = empty()
  line: Line = 'loading'
  /** Views that were read, or are being read, by their addresses. */
  private views = new Map<string, Promise<void>>()
  /** Views that are ahead of the state: they wait for its events. */
  private ahead: { view: View; part: Part; about: string | undefined; done: () => void }[] = []
  /** The name of the place that the state is at. */
  private cursor = ''
  private listeners = new Set<() => void>()
  private isDue = false
  private readonly erasures = new Batch(() => this.restart())
  private abort: AbortController | undefined
  private hiding: ReturnType<typeof setTimeout> | undefined
  /** What begins the address of the society that is shown. */
  private at = prefix()
  private tellOthers: (word: Word) => void = () => undefined

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Begins; called once. */
  start(): void {
    document.addEventListener('visibilitychange', () => this.look())
    addEventListener('online', () => this.connect())
    // Back and forward may lead into another society.
    addEventListener('popstate', () => prefix() !== this.at && this.restart())
    this.connect()
  }

  /** Begins anew, for example with another token. */
  restart(): void {
    this.clear()
    this.stand('loading')
    this.connect()
  }

  private clear(): void {
    this.erasures.drop()
    this.state = empty()
    this.views.clear()
    this.ahead = []
    this.cursor = ''
  }

  /** Reads a view, once; its records are in the state when this is done. */
  load(path: string, part: Part, about?: string): Promise<void> {
    const known = this.views.get(path)
    if (known) return known
    const loading = this.read(path, part, about).catch((error: unknown) => {
      this.views.delete(path)
      throw error
    })
    this.views.set(path, loading)
    return loading
  }

  /** Reads a view again the next time that it is wanted. */
  drop(path: string): void {
    this.views.delete(path)
  }

  private async read(path: string, part: Part, about: string | undefined): Promise<void> {
    for (;;) {
      const { state } = this
      const view = (await (await ask(`/api/views/${path}`)).json()) as View
      if (this.state !== state) return
      if (view.seq > state.seq) return new Promise((done) => this.ahead.push({ view, part, about, done }))
      if (!reaches(state, view.seq)) continue
      adopt(state, view, part, about)
      this.tell()
      return
    }
  }

  /** Asks for conversations, and takes them in. Gives what was found, and the cursor of the next ones. */
  async find(query: string): Promise<{ ids: string[]; excerpts: Excerpt[]; next: string | undefined }> {
    const { state } = this
    const { seq } = state
    const { conversations, excerpts, next } = (await (await ask(`/api/conversations${query}`)).json()) as Conversations
    this.learn(state, conversations, seq)
    return { ids: conversations.map(({ id }) => id), excerpts: excerpts ?? [], next: next ?? undefined }
  }

  /** Asks for one conversation; there need not be one of that id. */
  async meet(id: string): Promise<void> {
    const { state } = this
    const { seq } = state
    state.strangers.delete(id)
    const response = await ask(`/api/conversations/${encodeURIComponent(id)}`).catch(() => undefined)
    if (response) this.learn(state, [(await response.json()) as Conversation], seq)
  }

  private learn(state: State, found: Conversation[], since: number): void {
    adoptConversations(state, found, since)
    this.tell()
  }

  /** Takes in the views that waited for the events up to them. */
  private settle(): void {
    const due = this.ahead.filter(({ view }) => view.seq <= this.state.seq)
    if (due.length === 0) return
    this.ahead = this.ahead.filter((one) => !due.includes(one))
    for (const { view, part, about, done } of due) {
      adopt(this.state, view, part, about)
      done()
    }
  }

  private look(): void {
    clearTimeout(this.hiding)
    if (document.hidden) {
      this.hiding = setTimeout(() => {
        this.abort?.abort()
        this.abort = undefined
        this.stand('asleep')
      }, HIDDEN_MS)
    } else if (this.line === 'asleep') this.connect()
  }

  private connect(): void {
    this.abort?.abort()
    const abort = new AbortController()
    this.abort = abort
    this.at = prefix()
    this.tellOthers = () => undefined
    if (canShare()) void this.share(abort.signal)
    else void this.follow(abort.signal)
  }

  /** Leads, or is told by the window that does until it goes. */
  private async share(signal: AbortSignal): Promise<void> {
    const name = nameOfLine(prefix())
    const channel = new BroadcastChannel(name)
    signal.addEventListener('abort', () => channel.close())
    const following = new AbortController()
    signal.addEventListener('abort', () => following.abort())
    let isAlone = false
    const lead = async () => {
      if (signal.aborted || isAlone) return
      following.abort()
      this.tellOthers = (word) => !signal.aborted && channel.postMessage(word)
      channel.onmessage = ({ data }: MessageEvent<Word>) => {
        if ('hello' in data && this.line === 'live') this.tellOthers({ welcome: data.hello, seq: this.state.seq, live: soFar(this.state) })
      }
      await this.follow(signal)
    }
    let isLed = false
    await navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      isLed = lock !== null
      return lock && lead()
    })
    if (isLed || signal.aborted) return
    navigator.locks.request(name, { signal }, lead).catch(() => undefined)
    await this.prepare(following.signal)
    if (following.signal.aborted) return
    attend(channel, following.signal, {
      take: (frame) => this.take(frame),
      isNext: (seq) => seq <= this.state.seq + 1,
      catchUp: () => this.catchUp(following.signal),
      welcome: (live) => {
        catchUpLive(this.state, live)
        this.stand('live')
      },
      lose: () => this.stand('lost'),
      tell: () => this.tell(),
      alone: () => {
        isAlone = true
        following.abort()
        void this.follow(signal)
      },
    })
  }

  /** Reads what there is to be shown; tries until it can. */
  private async prepare(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; ) {
      try {
        return await this.catchUp(signal)
      } catch (error) {
        if (signal.aborted || !(await this.mayRetry(error, attempt++))) return
      }
    }
  }

  /** Whether it is worth another try, after a while. */
  private async mayRetry(error: unknown, attempt: number): Promise<boolean> {
    if (error instanceof Problem && error.status === 401) return this.stand('closed_door'), false
    if (error instanceof Problem && error.code === 'unknown_society') return this.stand('nowhere'), false
    if (error instanceof Problem && (error.code === 'ahead_of_log' || error.code === 'other_history')) this.clear()
    this.stand('lost')
    const wait = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] as number
    await new Promise((resolve) => setTimeout(resolve, wait))
    return true
  }

  private async follow(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; ) {
      try {
        await this.catchUp(signal)
        attempt = 0
        await this.listen(signal)
        if (signal.aborted) return
        this.tellOthers({ lost: true })
        await this.mayRetry(undefined, attempt++)
      } catch (error) {
        if (signal.aborted) return
        this.tellOthers({ lost: true })
        if (!(await this.mayRetry(error, attempt++))) return
      }
    }
  }

  private async page(after: number, limit: number, signal: AbortSignal): Promise<{ events: Recorded[]; last: number }> {
    return (await ask(`/api/log?after=${after}&limit=${limit}`, { signal })).json()
  }

  /** Reads the first view; later, the events that were missed, or the view again where they are too many. */
  private async catchUp(signal: AbortSignal): Promise<void> {
    while (this.state.seq > 0) {
      const { events, last } = await this.page(this.state.seq, PAGE, signal)
      if (signal.aborted) return
      if (last < this.state.seq || last - this.state.seq > MOST_MISSED) {
        this.clear()
        break
      }
      for (const event of events) this.apply(event)
      this.tell()
      if (this.state.seq >= last) return
    }
    let [path, part, about] = firstView(place())
    const response = await ask(`/api/views/${path}`, { signal }).catch((error: unknown) => {
      // What the address names does not exist; the view says so.
      if (!(error instanceof Problem) || error.status !== 404 || error.code === 'unknown_society') throw error
      path = 'inbox'
      part = 'frame'
      return ask(`/api/views/${path}`, { signal })
    })
    const view = (await response.json()) as View
    if (signal.aborted) return
    const state = empty()
    state.seq = view.seq
    adopt(state, view, part, about)
    this.state = state
    this.cursor = view.place
    this.views.set(path, Promise.resolve())
    this.tell()
  }

  private apply(event: Recorded): void {
    fold(this.state, event)
    if (this.ahead.length > 0) this.settle()
    // No window keeps what was erased.
    if (typeof event.event === 'object' && 'erasureDone' in event.event) this.erasures.add()
  }

  /** Follows the log until the line breaks. */
  private async listen(signal: AbortSignal): Promise<void> {
    const headers: Record<string, string> = this.cursor ? { 'last-event-id': this.cursor } : {}
    const response = await ask(`/api/events?after=${this.state.seq}`, { signal, headers })
    // Replies under way are told again from their beginning, by whichever process is there now.
    forget(this.state)
    this.stand('live')
    this.tellOthers({ live: true })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    if (!reader) return
    let rest = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += value
      const frames = rest.split('\n\n')
      rest = frames.pop() ?? ''
      this.tellOthers({ frames })
      for (const frame of frames) if (!this.take(frame)) return
      this.tell()
    }
  }

  /** Takes one frame; false when it was the last one. */
  private take(frame: string): boolean {
    let name = ''
    let data = ''
    for (const line of frame.split('\n')) {
      if (line.startsWith('event:')) name = line.slice(6).trim()
      else if (line.startsWith('id:')) this.cursor = line.slice(3).trim()
      else if (line.startsWith('data:')) data += line.slice(line[5] === ' ' ? 6 : 5)
    }
    if (!data) return true
    if (name === 'delta') hear(this.state, JSON.parse(data) as LiveDelta)
    else if (name === 'step') see(this.state, JSON.parse(data) as StreamedStep)
    else if (name === 'resync') forget(this.state)
    else if (name === 'stopping' || name === 'problem') return false
    else this.apply(JSON.parse(data) as Recorded)
    return true
  }

  private stand(line: Line): void {
    this.line = line
    this.tell()
  }

  /** Tells everybody, with the next frame. */
  private tell(): void {
    if (this.isDue) return
    this.isDue = true
    const now = () => {
      this.isDue = false
      for (const listener of this.listeners) listener()
    }
    // A hidden tab draws no frames.
    if (document.hidden) setTimeout(now, 100)
    else requestAnimationFrame(now)
  }
}

/** The view that a place needs first. */
function firstView({ view, rest }: Place): [string, Part, string?] {
  const [first] = rest.map(encodeURIComponent)
  if (view === 'chat') return rest[0] ? [conversationPath(rest[0], rest[1]), 'conversation', rest[0]] : [LIST, 'list']
  if (view === 'organisation') return [ORGANISATION, 'organisation']
  if (view === 'trace') return first ? [`task/${first}`, 'tree'] : ['trace', 'trace']
  return ['inbox', 'frame']
}

/** The view that has the list of conversations and hardly more. */
export const LIST = 'conversation/root?limit=1'

/** The view that has the agents. */
export const ORGANISATION = 'organisation?limit=2000'

/** The view of a conversation, at one of its requests. */
export function conversationPath(agent: string, task?: string): string {
  return `conversation/${encodeURIComponent(agent)}${task ? `?task=${encodeURIComponent(task)}` : ''}`
}

export const store = new Store()

/** Has a view read, if one is wanted; what it brings is in the state. */
export function useView(path: string | undefined, part: Part): void {
  const line = useLine()
  useEffect(() => {
    if (path && line === 'live') store.load(path, part).catch(() => undefined)
  }, [path, part, line])
}

/** Has all agents read, page by page, while that is wanted. */
export function useAllAgents(isWanted: boolean): void {
  const next = useStore((state) => state.nextAgents)
  useView(isWanted ? ORGANISATION : undefined, 'organisation')
  useView(isWanted && next ? `${ORGANISATION}&after=${encodeURIComponent(next)}` : undefined, 'organisation')
}

/** A value of the state; it must be plain, or the same as long as it has not changed. */
export function useStore<T>(select: (state: State) => T): T {
  return useSyncExternalStore(store.subscribe, () => select(store.state))
}

/** A record of the state, shown anew whenever it changes. */
export function useRecord<T extends { rev: number }>(find: (state: State) => T | undefined): T | undefined {
  useStore((state) => find(state)?.rev ?? -1)
  return find(store.state)
}

export const useThread = (id: string): Thread | undefined => useRecord((state) => state.threads.get(id))
export const useTurn = (id: number): Turn | undefined => useRecord((state) => state.turns.get(id))
export const useEffectState = (id: string): EffectState | undefined => useRecord((state) => state.effects.get(id))

/** The whole state, shown anew with every event of the log and every view that was read, and not with chunks of replies. */
export function useLog(): State {
  useStore((state) => state.seq + state.reads)
  return store.state
}

/** The whole state, shown anew with every change. */
export function useAll(): State {
  useStore((state) => state.rev)
  return store.state
}

export function useLine(): Line {
  return useSyncExternalStore(store.subscribe, () => store.line)
}

