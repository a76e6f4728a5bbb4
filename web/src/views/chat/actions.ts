// What a person does in a conversation, as requests to the server.

import { Problem, ask, get, post } from '../../api'
import { t } from '../../i18n'
import { go, href, place, prefix, prefixOf } from '../../router'
import { isConversation } from '../../store/derive'
import type { Request } from '../../store/state'
import { knownSocieties, refreshSocieties } from '../../store/societies'
import { store } from '../../store/store'
import type { Accepted, Artifact, Recorded } from '../../types'
import { alarm, announce } from '../../ui/announce'

export const STRATEGIES = ['auto', 'simple', 'template', 'workflow'] as const
export type Strategy = (typeof STRATEGIES)[number]

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

/** Says what went wrong, for eyes and ears. */
export function complain(error: unknown): string {
  const text = error instanceof Problem && error.code !== 'unreachable' ? error.message : t('chat.unreachable')
  alarm(text)
  return text
}

interface Options {
  /** The request that it joins. */
  task?: string
  strategy?: Strategy
  model?: string
  artifacts?: Artifact[]
  /** Its name: what is sent twice under one name happens once. */
  key?: string
}

/** Says something in a conversation, to another agent, or to nobody yet: that starts a conversation. */
export async function say(to: string | undefined, text: string, { task, strategy, model, artifacts = [], key }: Options = {}, at = prefix()): Promise<Accepted> {
  const files = artifacts.length > 0 ? { artifacts: artifacts.map(({ id, name, mediaType }) => ({ id, name, mediaType })) } : {}
  if (to !== undefined && (task || !isConversation(store.state, to))) return post('/api/send', { agentId: to, text, ...(task && { taskId: task }), ...files }, at, key)
  const how = { ...(to && { conversation: to }), ...(model && { model }), ...(strategy && strategy !== 'auto' && { strategy }) }
  return post('/api/submit', { text, ...how, ...files }, at, key)
}

/** A key that no other request has. */
export const newKey = (): string => crypto.getRandomValues(new Uint8Array(16)).join('-')

/** Renames, pins or archives a conversation, or changes its model or strategy. */
export function change(id: string, what: { title?: string; pinned?: boolean; archived?: boolean; model?: string; strategy?: Strategy }): Promise<unknown> {
  return post(`/api/conversations/${encodeURIComponent(id)}`, what).catch(complain)
}

export async function upload(file: File): Promise<Artifact> {
  const headers = { 'content-type': file.type || 'application/octet-stream' }
  const response = await ask(`/api/artifacts?name=${encodeURIComponent(file.name)}`, { method: 'POST', headers, body: file })
  return response.json()
}

export async function stop(task: string): Promise<void> {
  await post(`/api/tasks/${encodeURIComponent(task)}/cancel`, {})
  announce(t('chat.stopped'))
}

/** Stops one turn with what it started; the request itself goes on. */
export async function stopTurn(task: string, turn: number): Promise<void> {
  await post(`/api/tasks/${encodeURIComponent(task)}/cancel`, { turn })
  announce(t('chat.stopped'))
}

/** Has a request done once more. */
export async function retry(request: Request): Promise<void> {
  const sent = await post<Accepted>(`/api/tasks/${encodeURIComponent(request.id)}/retry`, {}).catch((error: unknown) => {
    if (error instanceof Problem && (error.status === 404 || error.status === 405)) return say(request.to, request.text)
    throw error
  })
  go(href('chat', [request.to, sent.taskId ?? request.id]))
}

/** Where the log parts when a request is asked differently: just before it, and before the conversation that it starts. */
export async function branchPoint(request: Request): Promise<number> {
  const { events } = await get<{ events: Recorded[] }>(`/api/log?after=${Math.max(0, request.seq - 3)}&limit=2`)
  let at = request.seq - 1
  for (const kind of ['conversationStarted', 'societyForked']) {
    const before = events.find((one) => one.seq === at)?.event
    if (typeof before === 'object' && kind in before) at -= 1
  }
  return at
}

/** The beginning of a text, as a title. */
const titleOf = (text: string): string => text.trim().split('\n', 1)[0]?.slice(0, 60) ?? ''

/** Goes on from before a request with other words, in a fork; what was stays as it is. What went with it goes along. */
export async function branch(request: Request, text: string): Promise<void> {
  const made = await post<{ society: string }>('/api/fork', { at: await branchPoint(request) })
  const { strategy, artifacts } = request.meta as unknown as { strategy?: Strategy; artifacts?: Artifact[] }
  const at = prefixOf(made.society)
  const again = () => say(request.to, text, { ...(strategy && { strategy }), ...(artifacts && { artifacts }) }, at)
  const sent = await again().catch(async (error: unknown) => {
    if (!(error instanceof Problem) || error.code !== 'unknown_conversation') throw error
    // The request was the first one: the conversation starts anew in the fork, under the same id.
    const { roleId, model } = store.state.conversations.get(request.to) ?? {}
    await post('/api/conversations', { id: request.to, title: titleOf(text), roleId, model }, at)
    return again()
  })
  await refreshSocieties()
  visit(made.society, request.to, sent.taskId)
}

/** The conversation that was shown when somebody went to another society, which need not have it. */
let carried: string | undefined

export const isCarried = (id: string): boolean => id === carried

/** Goes to another society of the server: to a conversation there, or to the one that is shown here. */
export function visit(name: string, ...rest: string[]): void {
  const { view, rest: shown } = place()
  carried = rest.length === 0 && view === 'chat' ? shown[0] : undefined
  if (carried) rest = [carried]
  const isFirst = knownSocieties().some((one) => one.first && one.name === name)
  go(href('chat', rest, {}, prefixOf(isFirst ? '' : name)))
  store.restart()
  void refreshSocieties()
}
