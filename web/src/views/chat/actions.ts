// What a person does in a conversation, as requests to the server.

import { Problem, ask, get, post } from '../../api'
import { t } from '../../i18n'
import { go, href, prefix, prefixOf } from '../../router'
import { isConversation } from '../../store/derive'
import type { Request } from '../../store/state'
import { knownSocieties, refreshSocieties } from '../../store/societies'
import { store } from '../../store/store'
import type { Accepted, Artifact, Recorded } from '../../types'
import { alarm, announce } from '../../ui/announce'

export const STRATEGIES = ['auto', 'simple', 'template', 'workflow'] as const
export type Strategy = (typeof STRATEGIES)[number]

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
}

/** Says something in a conversation, to another agent, or to nobody yet: that starts a conversation. */
export async function say(to: string | undefined, text: string, { task, strategy, model, artifacts = [] }: Options = {}, at = prefix()): Promise<Accepted> {
  const files = artifacts.length > 0 ? { artifacts: artifacts.map(({ id, name, mediaType }) => ({ id, name, mediaType })) } : {}
  if (to !== undefined && (task || !isConversation(store.state, to))) return post('/api/send', { agentId: to, text, ...(task && { taskId: task }), ...files }, at)
  const how = { ...(to && { conversation: to }), ...(model && { model }), ...(strategy && strategy !== 'auto' && { strategy }) }
  return post('/api/submit', { text, ...how, ...files }, at)
}

/** Renames, pins or archives a conversation, or changes its settings. */
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

/** Where the log parts when a request is asked differently: just before it. */
export async function branchPoint(request: Request): Promise<number> {
  const { events } = await get<{ events: Recorded[] }>(`/api/log?after=${Math.max(0, request.seq - 2)}&limit=1`)
  const before = events[0]
  const isFork = typeof before?.event === 'object' && 'societyForked' in before.event
  return request.seq - (isFork ? 2 : 1)
}

/** Goes on from before a request with other words, in a fork; what was stays as it is. What went with it goes along. */
export async function branch(request: Request, text: string): Promise<void> {
  const made = await post<{ society: string }>('/api/fork', { at: await branchPoint(request) })
  const { strategy, artifacts } = request.meta as unknown as { strategy?: Strategy; artifacts?: Artifact[] }
  const sent = await say(request.to, text, { ...(strategy && { strategy }), ...(artifacts && { artifacts }) }, prefixOf(made.society))
  await refreshSocieties()
  visit(made.society, request.to, sent.taskId)
}

/** Goes to another society of the server. */
export function visit(name: string, ...rest: string[]): void {
  const isFirst = knownSocieties().some((one) => one.first && one.name === name)
  go(href('chat', rest, {}, prefixOf(isFirst ? '' : name)))
  store.restart()
  void refreshSocieties()
}
