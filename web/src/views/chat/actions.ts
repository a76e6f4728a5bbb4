// What a person does in a conversation, as requests to the server.

import { Problem, ask, get, post } from '../../api'
import { t } from '../../i18n'
import { go, href, prefixOf } from '../../router'
import type { Request } from '../../store/state'
import { knownSocieties, refreshSocieties } from '../../store/societies'
import { store } from '../../store/store'
import type { Accepted, Artifact, Recorded } from '../../types'
import { alarm, announce } from '../../ui/announce'

export type Strategy = 'auto' | 'simple' | 'workflow'

/** Says what went wrong, for eyes and ears. */
export function complain(error: unknown): string {
  const text = error instanceof Problem && error.code !== 'unreachable' ? error.message : t('chat.unreachable')
  alarm(text)
  return text
}

export async function say(to: string, text: string, options: { task?: string; strategy?: Strategy; artifacts?: Artifact[] } = {}): Promise<Accepted> {
  const { task, strategy, artifacts } = options
  const files = artifacts?.length ? { artifacts: artifacts.map(({ id, name, mediaType }) => ({ id, name, mediaType })) } : {}
  if (to === 'root' && !task) {
    const how = strategy && strategy !== 'auto' ? { strategy } : {}
    return post('/api/submit', { text, ...how, ...files })
  }
  return post('/api/send', { agentId: to, text, ...(task && { taskId: task }), ...files })
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
  const { strategy, artifacts = [] } = request.meta as unknown as { strategy?: string; artifacts?: Artifact[] }
  const files = { artifacts: artifacts.map(({ id, name, mediaType }) => ({ id, name, mediaType })) }
  const body = request.to === 'root' ? { text, ...(strategy && { strategy }), ...files } : { agentId: request.to, text, ...files }
  const sent = await post<Accepted>(`/api/${request.to === 'root' ? 'submit' : 'send'}`, body, prefixOf(made.society))
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
