// What a person does in a conversation, as requests to the server.

import { Problem, ask, get, post, token } from '../../api'
import { t } from '../../i18n'
import { go, href, society } from '../../router'
import type { Request } from '../../store/state'
import { store } from '../../store/store'
import type { Accepted, Artifact, Societies } from '../../types'
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
export function branchPoint(request: Request): number {
  const before = store.state.events[request.seq - 2]
  const isFork = typeof before?.event === 'object' && 'societyForked' in before.event
  return request.seq - (isFork ? 2 : 1)
}

interface Branches {
  [point: string]: string[]
}

const KEPT = 'polis.branches'
const FIRST = ''

function branches(): Branches {
  return JSON.parse(localStorage.getItem(KEPT) ?? '{}') as Branches
}

/** The societies in which a request was asked in one way or another; the first one has no name. */
export function waysOf(request: Request): string[] {
  return branches()[`${store.state.events[0]?.at}:${branchPoint(request)}`] ?? []
}

/** Goes on from before a request with other words, in a fork; what was stays as it is. */
export async function branch(request: Request, text: string): Promise<void> {
  const point = branchPoint(request)
  const made = await post<{ society: string }>('/api/fork', { at: point })
  const at = `/s/${encodeURIComponent(made.society)}`
  const response = await fetch(`${at}/api/${request.to === 'root' ? 'submit' : 'send'}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token() && { authorization: `Bearer ${token()}` }) },
    body: JSON.stringify(request.to === 'root' ? { text } : { agentId: request.to, text }),
  })
  if (!response.ok) throw new Problem(response.status, 'http_error', response.statusText)
  const sent = (await response.json()) as Accepted
  const all = branches()
  const key = `${store.state.events[0]?.at}:${point}`
  all[key] = [...(all[key] ?? [society() ?? FIRST]), made.society]
  localStorage.setItem(KEPT, JSON.stringify(all))
  visit(made.society, request.to, sent.taskId)
}

/** Goes to another society of the server. */
export function visit(name: string, ...rest: string[]): void {
  const at = name === FIRST ? '' : `/s/${encodeURIComponent(name)}`
  go(href('chat', rest, {}, at))
  store.restart()
}

export const societies = (): Promise<Societies> => get('/api/societies')
