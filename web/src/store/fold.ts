// Applies live events to the state, one by one and in their order. Records that no view has read are not here: what happens to
// them is passed over.

import type { Artifact, ConversationSettings, Effect, EventName, Events, JsonObject, Message, Recorded, Spent, Wanted } from '../types'
import { type Agent, type Chat, type EffectState, type Item, type Request, type State, type Thread, type Turn, type Waiting, isEnvironment, nothing } from './state'

/** The name and the body of an event. */
export function named(recorded: Recorded): [EventName, unknown] {
  if (typeof recorded.event === 'string') return [recorded.event as EventName, null]
  const [name] = Object.keys(recorded.event)
  return [name as EventName, Object.values(recorded.event)[0]]
}

/** What a person said, as they saw it: of an operation its label, not what stands for it. */
function worded(text: string, meta: Record<string, unknown> | undefined): string {
  return typeof meta?._operation === 'string' ? meta._operation : text
}

/** Marks a record as changed. */
export function touch(state: State, record: { rev: number } | undefined): void {
  if (record) record.rev = ++state.rev
}

/** Events that are kept for views that come late. */
const RECENT = 1000

export function fold(state: State, recorded: Recorded): void {
  if (recorded.seq <= state.seq) return
  state.seq = recorded.seq
  state.recent.push(recorded)
  if (state.recent.length > 2 * RECENT) state.recent.splice(0, RECENT)
  const [name, body] = named(recorded)
  const step = steps[name] as ((state: State, body: unknown, recorded: Recorded) => void) | undefined
  step?.(state, body, recorded)
  state.rev += 1
}

type Steps = { [Name in EventName]?: (state: State, body: Events[Name], recorded: Recorded) => void }

const steps: Steps = {
  toolAllowed(state, { allowed }) {
    state.allowed.push(allowed)
  },
  roleCreated(state, { role }) {
    state.roles.set(role.id, role)
  },
  roleChanged(state, { role }) {
    state.roles.set(role.id, role)
  },
  agentSpawned(state, { agent, role, parent }, { at }) {
    const spawned: Agent = { rev: 0, id: agent, role, createdAt: at, inbox: [], unlisted: 0, spent: nothing() }
    if (parent) spawned.parent = parent
    // Root is the first conversation.
    else begin(state, agent, role, 'owner', agent, at)
    state.agentCount += 1
    state.agents.set(agent, spawned)
    touch(state, spawned)
    threadOf(state, agent, agent)
  },
  conversationStarted(state, { agent, role, person, title, settings, messages }, { at, seq }) {
    const made: Agent = { rev: 0, id: agent, role, createdAt: at, inbox: [], unlisted: 0, spent: nothing() }
    state.agents.set(agent, made)
    touch(state, made)
    const thread = threadOf(state, agent, agent)
    for (const [index, message] of (messages ?? []).entries()) {
      thread.messages[index] = message
      append(thread, { kind: 'message', index, seq, at })
    }
    Object.assign(begin(state, agent, role, person, title, at), picked(settings), { active: seq, messages: messages?.length ?? 0 })
  },
  conversationChanged(state, { agent, change }) {
    const chat = state.conversations.get(agent)
    if (!chat) return void state.strangers.add(agent)
    const { settings, ...rest } = change
    if (settings) {
      delete chat.model
      delete chat.strategy
      delete chat.settings
    }
    Object.assign(chat, rest, picked(settings))
  },
  agentDismissed(state, { agent, caller, reason }) {
    const found = state.agents.get(agent)
    if (!found) return
    found.dismissed = reason ? { caller, reason } : { caller }
    touch(state, found)
  },
  agentTerminated(state, { agent }, { at }) {
    state.strangers.delete(agent)
    state.conversations.delete(agent)
    const found = state.agents.get(agent)
    if (!found) return
    found.terminatedAt = at
    if (found.parent) state.agentCount -= 1
    touch(state, found)
  },
  messageSent(state, { envelope }, { at, seq }) {
    receive(state, envelope, at, seq)
  },
  messagesTaken(state, { agent, envelopes, by }, { at, seq }) {
    const found = state.agents.get(agent)
    if (!found) return
    const ids = new Set(envelopes.map((envelope) => envelope.id))
    const written = new Map(found.inbox.map((entry) => [entry.envelope?.id, entry.at]))
    found.inbox = found.inbox.filter((entry) => !entry.envelope || !ids.has(entry.envelope.id))
    touch(state, found)
    const turn = state.turns.get(turnOf(by))
    const thread = turn && state.threads.get(turn.thread)
    if (!turn || !thread) return
    for (const envelope of envelopes) {
      const message: Message = { id: envelope.id, sender: 'user', text: envelope.payload.text, timestamp: written.get(envelope.id) ?? at }
      // It is no message of the thread: it is shown where it was heard.
      append(thread, { kind: 'heard', message, seq, at })
    }
    touch(state, thread)
  },
  inboxCleared(state, { agent, of }) {
    const found = state.agents.get(agent)
    if (!found) return
    if (of === 'everything') {
      found.inbox = []
      found.unlisted = 0
    }
    else if ('task' in of) found.inbox = found.inbox.filter((entry) => entry.task !== of.task)
    else {
      const turns = new Set(of.askedBy)
      found.inbox = found.inbox.filter(({ envelope }) => {
        const waiter = envelope?.replyTo
        return !(waiter && typeof waiter === 'object' && turns.has(turnOf(waiter.effect)))
      })
    }
    touch(state, found)
  },
  turnStarted(state, body, { seq, at, thread: name }) {
    const { agent, behaviour, task, origin, replyTo, message, index } = body
    const thread = threadOf(state, name ?? agent, agent)
    const turn: Turn = {
      rev: 0,
      id: seq,
      thread: thread.id,
      agent,
      behaviour,
      task: { ...task, message: worded(task.message, task.meta) },
      origin,
      startedAt: at,
      effects: [],
      omitted: 0,
      brief: false,
      steps: 0,
      spent: nothing(),
      tools: 0,
    }
    if (replyTo) turn.replyTo = replyTo
    const parent = typeof origin === 'object' ? origin.unit : typeof replyTo === 'object' ? replyTo.effect : undefined
    if (parent) {
      turn.parent = parent
      const effect = state.effects.get(parent)
      effect?.children.push(seq)
      touchEffect(state, effect)
    }
    state.turns.set(seq, turn)
    let written = at
    if (origin === 'inbox') {
      const owner = state.agents.get(agent)
      const taken = owner?.inbox.shift()
      // A message has the time at which it was written, not at which it was read.
      const own = state.requests.get(task.id)
      if (own && own.message === message) written = own.at
      else if (taken?.at !== undefined && taken.envelope?.id === message) written = taken.at
      if (owner) owner.turn = seq
      touch(state, owner)
      const chat = state.conversations.get(agent)
      if (chat) Object.assign(chat, { status: 'running', taskId: task.id })
    }
    if (message) {
      grow(state, thread.id, index)
      const meta: JsonObject = {}
      const { artifacts, from } = (task.meta ?? {}) as JsonObject
      if (artifacts) meta.artifacts = artifacts
      if (from) meta.from = from
      thread.messages[index] = { id: message, sender: 'user', text: worded(task.message, task.meta), timestamp: written, meta }
      append(thread, { kind: 'message', index, turn: seq, seq, at })
    }
    append(thread, { kind: 'turn', turn: seq })
    thread.turn = seq
    touch(state, thread)
    touch(state, turn)
    const request = state.requests.get(task.id)
    request?.open.add(seq)
    touch(state, request)
  },
  effectStarted(state, { id, effect }, { at, seq, thread }) {
    const turn = state.turns.get(turnOf(id))
    if (!turn) return
    const started: EffectState = {
      rev: 0,
      id,
      turn: turn.id,
      thread: thread ?? turn.thread,
      effect,
      startedAt: at,
      startedSeq: seq,
      retries: [],
      stage: 'open',
      children: [],
      inquiries: [],
    }
    state.effects.set(id, started)
    turn.effects.push(id)
    if ('ask' in effect) receive(state, effect.ask.envelope, at, seq)
    wait(state, started)
    touchEffect(state, started)
  },
  effectRetried(state, { id, attempt, spent }) {
    const effect = state.effects.get(id)
    if (!effect) return
    effect.retries.push(attempt)
    delete effect.live
    const thread = state.threads.get(effect.thread)
    if (thread) delete thread.step
    if (spent) spend(state, effect, spent)
    touchEffect(state, effect)
  },
  effectEnded(state, { id, outcome, spent }, { at }) {
    state.waiting.delete(id)
    const effect = state.effects.get(id)
    if (!effect) return
    effect.stage = 'ended'
    effect.outcome = outcome
    if ('tool' in effect.effect && effect.effect.tool.class !== 'read') state.writes += 1
    effect.endedAt = at
    delete effect.live
    dropInquiries(state, effect)
    if (spent) {
      effect.spent = spent
      spend(state, effect, spent)
    }
    const turn = state.turns.get(effect.turn)
    if (turn && spent) state.costs.push({ task: turn.task.id, agent: turn.agent, name: spender(effect.effect), at, spent })
    if (turn && 'tool' in effect.effect && !isEnvironment(effect.effect)) for (const above of upwards(state, turn)) above.tools += 1
    if (typeof outcome === 'object') {
      const kept = 'kept' in outcome ? [outcome.kept] : 'result' in outcome ? (outcome.result.artifacts ?? []) : []
      list(state, kept, at, turn)
    }
    climb(state, effect)
  },
  effectDoubted(state, { id }) {
    const effect = state.effects.get(id)
    if (!effect) return
    effect.stage = 'doubted'
    dropInquiries(state, effect)
    wait(state, effect)
    touchEffect(state, effect)
  },
  effectCleared(state, { id }) {
    state.waiting.delete(id)
    const effect = state.effects.get(id)
    if (!effect) return
    effect.stage = 'cleared'
    touchEffect(state, effect)
  },
  effectRestarted(state, { id }) {
    const effect = state.effects.get(id)
    if (!effect) return
    effect.stage = 'open'
    delete effect.live
    touchEffect(state, effect)
  },
  effectRefused(state, { id, failure }, { at }) {
    state.waiting.delete(id)
    const effect = state.effects.get(id)
    if (!effect) return
    effect.stage = 'ended'
    effect.refused = failure
    effect.endedAt = at
    climb(state, effect)
  },
  callInquired(state, { id, by, inquiry }, { seq, at }) {
    const effect = state.effects.get(id)
    const turn = effect && state.turns.get(effect.turn)
    if (!effect || !turn) return
    const name = `${id}.${seq}`
    effect.inquiries.push({ id: name, by, inquiry, at })
    if ('person' in inquiry) {
      const call = 'tool' in effect.effect ? effect.effect.tool : undefined
      const { question, details } = inquiry.person
      state.waiting.set(name, {
        id: name,
        at,
        agent: turn.agent,
        task: turn.task.id,
        thread: turn.thread,
        what: { kind: 'question', question: question.text, details, wanted: question.wanted ?? 'agreement', server: by, ...(call && { call }) },
      })
    }
    touchEffect(state, effect)
  },
  callAnswered(state, { id, answer, spent }) {
    state.waiting.delete(id)
    const effect = state.effects.get(id.slice(0, id.lastIndexOf('.')))
    const inquiry = effect?.inquiries.find((one) => one.id === id)
    if (inquiry) inquiry.answer = answer
    if (effect && spent) spend(state, effect, spent)
    touchEffect(state, effect)
  },
  messageAdded(state, { by, index, message }, { seq, at, thread: name }) {
    const turn = state.turns.get(turnOf(by))
    const thread = name ? threadOf(state, name, turn?.agent ?? name) : undefined
    if (!thread) return
    thread.messages[index] = { ...message }
    grow(state, thread.id, index)
    append(thread, { kind: 'message', index, seq, at, ...(turn && { turn: turn.id }) }, turn)
    touch(state, thread)
  },
  messageUpdated(state, { index, patch }, { thread: name }) {
    const thread = name ? state.threads.get(name) : undefined
    const message = thread?.messages[index]
    if (!thread || !message) return
    const meta = { ...message.meta }
    for (const [key, value] of Object.entries(patch.meta ?? {})) {
      if (value === null) delete meta[key]
      else meta[key] = value
    }
    thread.messages[index] = { ...message, text: patch.text ?? message.text, meta }
    touch(state, thread)
  },
  planSet(state, { plan, by }, { thread: name }) {
    const thread = name ? state.threads.get(name) : undefined
    if (!thread) return
    thread.plan = plan
    thread.planTurn = turnOf(by)
    touch(state, thread)
  },
  threadOpened(state, { agent, meta }, { thread: name }) {
    if (!name) return
    const thread = threadOf(state, name, agent)
    thread.meta = (meta ?? {}) as JsonObject
    touch(state, thread)
  },
  threadLinked(state, { index, slot, child }, { thread: name }) {
    if (!name) return
    const holder = state.threads.get(name)
    const thread = threadOf(state, child, holder?.agent ?? name)
    thread.parent = { thread: name, index, slot: slot || '_thread' }
    holder?.holds.set(index, child)
    touch(state, thread)
    touch(state, holder)
  },
  turnParked(state, { turn, reason }, { at }) {
    const found = state.turns.get(turn)
    if (!found) return
    found.parked = reason
    state.waiting.set(String(turn), {
      id: String(turn),
      at,
      agent: found.agent,
      task: found.task.id,
      thread: found.thread,
      what: { kind: 'parked', failure: reason },
    })
    climbTurn(state, found)
  },
  turnResumed(state, { turn }) {
    const found = state.turns.get(turn)
    if (!found) return
    delete found.parked
    state.waiting.delete(String(turn))
    climbTurn(state, found)
  },
  messageDeadLettered(state, { agent, task, failure }) {
    const request = state.requests.get(task)
    if (!request) return
    request.failedPart = { ...failure, message: `\`${agent}\` failed: ${failure.message}` }
    touch(state, request)
  },

  turnSettled(state, { turn: id, settlement, message, index, next }, { at, seq, thread: name }) {
    const turn = state.turns.get(id)
    const chat = state.conversations.get(name ?? turn?.thread ?? '')
    if (chat && (!turn || turn.origin === 'inbox')) {
      chat.status = 'idle'
      delete chat.taskId
    }
    if (chat && message) grow(state, chat.id, index)
    if (!turn) return
    turn.settledAt = at
    turn.settlement = settlement
    delete turn.parked
    state.waiting.delete(String(id))
    for (const name of turn.effects) {
      const effect = state.effects.get(name)
      if (!effect || effect.stage === 'ended') continue
      effect.stage = 'void'
      effect.endedAt = at
      delete effect.live
      state.waiting.delete(name)
      dropInquiries(state, effect)
      touch(state, effect)
    }
    const thread = state.threads.get(turn.thread)
    if (thread) {
      if (thread.turn === id) delete thread.turn
      delete thread.step
      if (message) {
        thread.messages[index] = message
        turn.answer = index
        append(thread, { kind: 'message', index, turn: id, seq, at }, turn)
      }
      touch(state, thread)
    }
    const agent = state.agents.get(turn.agent)
    if (agent?.turn === id) {
      delete agent.turn
      agent.inbox.unshift(...(next ?? []).map((task) => ({ task: task.id, at })))
      touch(state, agent)
    }
    const request = state.requests.get(turn.task.id)
    request?.open.delete(id)
    touch(state, request)
    climbTurn(state, turn)
  },
}

/** The turn of an effect's id. */
export function turnOf(effect: string): number {
  return Number(effect.slice(0, effect.indexOf('.')))
}

function threadOf(state: State, id: string, agent: string): Thread {
  let thread = state.threads.get(id)
  if (!thread) {
    thread = { rev: 0, id, agent, messages: {}, items: [], holds: new Map(), meta: {} }
    state.threads.set(id, thread)
    touch(state, thread)
  }
  return thread
}

/** Lists a conversation. */
/** The settings of a conversation as its view names them. */
function picked(settings: ConversationSettings | null | undefined): Partial<Chat> {
  const { modelSettings, ...rest } = settings ?? {}
  return { ...rest, ...(modelSettings && { settings: modelSettings }) }
}

function begin(state: State, id: string, roleId: string, person: string, title: string, at: number): Chat {
  const chat: Chat = { id, title, person, roleId, createdAt: at, activeAt: at, status: 'idle', messages: 0 }
  state.conversations.set(id, chat)
  return chat
}

/** Notes how many messages a conversation has. */
function grow(state: State, id: string, index: number): void {
  const chat = state.conversations.get(id)
  if (chat) chat.messages = Math.max(chat.messages, index + 1)
}

/** Moves a conversation up. A person who writes in an archived one takes it up again. */
function stir(state: State, id: string, isPerson: boolean, at: number, seq: number): void {
  const chat = state.conversations.get(id)
  if (chat) {
    Object.assign(chat, { activeAt: at, active: seq })
    if (isPerson) chat.archived = false
  } else if (isPerson && !state.agents.get(id)?.parent) state.strangers.add(id)
}

function receive(state: State, envelope: Events['messageSent']['envelope'], at: number, seq: number): void {
  const { from, to, taskId, kind, payload } = envelope
  const agent = state.agents.get(to)
  if (agent) {
    if (agent.unlisted > 0) agent.unlisted += 1
    else agent.inbox.push({ task: taskId, envelope, at })
    touch(state, agent)
  }
  list(state, (payload.meta?.artifacts ?? []) as unknown as Artifact[], at)
  if (from !== 'user' && to !== 'user') return
  stir(state, from === 'user' ? to : from, from === 'user', at, seq)
  let request = state.requests.get(taskId)
  if (!request) {
    if (from !== 'user') return
    const meta = (payload.meta ?? {}) as JsonObject
    request = { rev: 0, id: taskId, to, text: worded(payload.text, payload.meta), at, seq, message: envelope.id, meta, open: new Set(), spent: nothing() } satisfies Request
    state.requests.set(taskId, request)
  }
  if (from === 'user') {
    delete request.failure
    delete request.failedPart
    delete request.endedAt
  } else if (kind === 'answer') {
    request.endedAt = at
  } else if (typeof kind === 'object') {
    request.failure = kind.failure
    request.endedAt = at
  }
  touch(state, request)
}

function list(state: State, artifacts: Artifact[], at: number, turn?: Turn): void {
  for (const artifact of artifacts) {
    if (!artifact?.id || state.artifacts.has(artifact.id)) continue
    state.artifacts.set(artifact.id, { ...artifact, at, ...(turn && { agent: turn.agent, task: turn.task.id }) })
  }
}

/** What waits for a person, if this effect does. */
function wait(state: State, started: EffectState): void {
  const turn = state.turns.get(started.turn)
  if (!turn) return
  const { id, startedAt: at, effect } = started
  const common = { id, at, agent: turn.agent, task: turn.task.id, thread: turn.thread }
  const what = asked(effect, started.stage)
  if (what) state.waiting.set(id, { ...common, what })
}

function asked(effect: Effect, stage: EffectState['stage']): Waiting['what'] | undefined {
  if (stage === 'doubted' && 'tool' in effect) return { kind: 'in_doubt', call: effect.tool }
  if ('grant' in effect) return { kind: 'grant', lacking: effect.grant.lacking, calls: effect.grant.calls ?? {} }
  if (!('approval' in effect)) return undefined
  const { question, details, call, deadline, wanted } = effect.approval
  const rest = { question, details, ...(call && { call }), ...(deadline && { deadline }) }
  const more: Wanted = wanted ?? 'agreement'
  return more === 'agreement' ? { kind: 'approval', ...rest } : { kind: 'question', wanted: more, ...rest }
}

/** The model or tool of a call. */
function spender(effect: Effect): string {
  return 'model' in effect ? effect.model.model : 'tool' in effect ? effect.tool.tool : ''
}

/** Adds an item at the end of a thread; where the end was not read, only to its turn. */
function append(thread: Thread, item: Item, turn?: Turn): void {
  if (thread.later === undefined) thread.items.push(item)
  turn?.items?.push(item)
}

function dropInquiries(state: State, effect: EffectState): void {
  for (const inquiry of effect.inquiries) state.waiting.delete(inquiry.id)
}

function add(to: Spent, more: Spent): void {
  to.tokens += more.tokens ?? 0
  to.costNanos += more.costNanos ?? 0
  to.requests += more.requests ?? 0
  to.timeMs += more.timeMs ?? 0
  if (more.inputTokens) to.inputTokens = (to.inputTokens ?? 0) + more.inputTokens
  if (more.cachedTokens) to.cachedTokens = (to.cachedTokens ?? 0) + more.cachedTokens
}

function spend(state: State, effect: EffectState, more: Spent): void {
  add(state.spent, more)
  const turn = state.turns.get(effect.turn)
  if (!turn) return
  for (const above of upwards(state, turn)) add(above.spent, more)
  const agent = state.agents.get(turn.agent)
  if (agent) add(agent.spent, more)
  const request = state.requests.get(turn.task.id)
  if (request) add(request.spent, more)
  touch(state, agent)
  touch(state, request)
}

/** The turn and those that wait for it, the nearest first. */
export function* upwards(state: State, turn: Turn): Generator<Turn> {
  for (let here: Turn | undefined = turn; here; ) {
    yield here
    here = here.parent ? state.turns.get(turnOf(here.parent)) : undefined
  }
}

/** Marks an effect, its turn and its thread as changed. */
export function touchEffect(state: State, effect: EffectState | undefined): void {
  if (!effect) return
  touch(state, effect)
  touch(state, state.turns.get(effect.turn))
  touch(state, state.threads.get(effect.thread))
}

/** The same, and everybody above. */
function climb(state: State, effect: EffectState): void {
  touch(state, effect)
  const turn = state.turns.get(effect.turn)
  if (turn) climbTurn(state, turn)
}

function climbTurn(state: State, turn: Turn): void {
  for (const above of upwards(state, turn)) {
    touch(state, above)
    touch(state, state.threads.get(above.thread))
  }
}
