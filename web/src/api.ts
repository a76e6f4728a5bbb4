// Asks the server. The token comes with the address (`#token=…`) and stays in this tab; where a cookie opens the door, none is
// needed. Nothing else in the page calls `fetch`.

import { prefix } from './router'

const KEY = 'polis.token'

/** A refusal of the server, or of the network. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail)
  }
}

/** Takes the token out of the address, so that it is not copied along with it. */
export function takeToken(): void {
  const query = new URLSearchParams(location.search)
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? query.get('token')
  if (!token) return
  setToken(token)
  query.delete('token')
  history.replaceState(history.state, '', location.pathname + (query.size > 0 ? `?${query}` : ''))
}

export function setToken(token: string): void {
  sessionStorage.setItem(KEY, token)
}

/** Trades a token for the cookie that other tabs need none with; where there is no cookie to be had, the token stays in this tab. */
export async function signIn(secret: string): Promise<void> {
  setToken(secret)
  await fetch(`/?token=${encodeURIComponent(secret)}`, { credentials: 'same-origin', cache: 'no-store' }).catch(() => undefined)
}

export function token(): string | null {
  return sessionStorage.getItem(KEY)
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY)
}

/** One request, to the society that the address names or to the one at another address. */
export async function ask(path: string, init: RequestInit = {}, at = prefix()): Promise<Response> {
  const headers = new Headers(init.headers)
  const secret = token()
  if (secret) headers.set('authorization', `Bearer ${secret}`)
  let response: Response
  try {
    response = await fetch(at + path, { ...init, headers, credentials: 'same-origin', cache: 'no-store' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new Problem(0, 'unreachable', String(error))
  }
  if (response.ok) return response
  const body = await response.json().catch(() => ({}))
  throw new Problem(response.status, body.code ?? 'http_error', body.detail ?? response.statusText)
}

export async function get<T>(path: string, at = prefix()): Promise<T> {
  return (await ask(path, {}, at)).json()
}

/** With a key, the same request happens once, however often it is sent. */
export async function post<T>(path: string, body: unknown = {}, at = prefix(), key?: string): Promise<T> {
  const headers = { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) }
  return (await ask(path, { method: 'POST', headers, body: JSON.stringify(body) }, at)).json()
}
