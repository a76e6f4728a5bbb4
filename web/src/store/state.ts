// What the page knows of the society, folded from its log. Records are changed in place; `rev` grows with each change, so
// that whoever shows one can tell whether it is still what was shown.

import type {
  Allowed,
  Artifact,
  Attempt,
  Call,
  Effect,
  Failure,
  Inquiry,
  Answer,
  Envelope,
  Level,
  Message,
  Origin,
  Outcome,
  Recorded,
  ReplyTo,
  Role,
  Settlement,
  Spent,
  Step,
  Task,
  JsonObject,
  Wanted,
  CallCost,
  AgentOperation,
  Conversation,
} from '../types'

export interface Agent {
  rev: number
  id: string
  role: string
  parent?: string
  createdAt: number
  /** The first entries of its inbox, oldest first. */
  inbox: { task: string; envelope?: Envelope; at?: number }[]
  /** How many more entries its inbox has. */
  unlisted: number
  /** The turn of its main thread that is under way. */
  turn?: number
  dismissed?: { caller: string; reason?: string }
  terminatedAt?: number
  /** What its own turns have spent. */
  spent: Spent
}

export interface Thread {
  rev: number
  id: string
  agent: string
  /** The thread that holds it, and where. */
  parent?: { thread: string; index: number; slot: string }
  /** The messages that were read, by their index. */
  messages: Record<number, Message>
  /** Messages and turns in the order in which they came, without a gap. */
  items: Item[]
  /** Messages that hold a sub-thread, and which. */
  holds: Map<number, string>
  plan?: { steps: Step[] }
  planTurn?: number
  meta: JsonObject
  turn?: number
  /** The first turn that was read, if there are earlier ones. */
  earlier?: number
  /** The next turn, if the newest were not read. */
  later?: number
  /** What is seen to be done in it, while it is done. */
  step?: LiveStep
}

export type Item =
  | { kind: 'message'; index: number; turn?: number; seq: number; at: number }
  | { kind: 'turn'; turn: number }
  /** What the person said while a turn was under way, where the turn took it in. */
  | { kind: 'heard'; message: Message; seq: number; at: number }

export interface Turn {
  rev: number
  id: number
  thread: string
  agent: string
  behaviour: string
  task: Task
  origin: Origin
  replyTo?: ReplyTo
  /** The effect of another turn that this one works for. */
  parent?: string
  startedAt: number
  settledAt?: number
  settlement?: Settlement
  parked?: Failure
  effects: string[]
  /** How many of its effects were not read. */
  omitted: number
  /** Whether steps were not read, or with cut texts. */
  brief: boolean
  /** How many of its effects are steps, as far as the server said. */
  steps: number
  /** The part of its thread that belongs to it, where it was read by itself. */
  items?: Item[]
  /** The message that it answered with. */
  answer?: number
  /** With everything that it had others do. */
  spent: Spent
  tools: number
}

export interface EffectState {
  rev: number
  id: string
  turn: number
  thread: string
  effect: Effect
  startedAt: number
  startedSeq: number
  endedAt?: number
  outcome?: Outcome
  refused?: Failure
  spent?: Spent
  retries: Attempt[]
  stage: 'open' | 'ended' | 'doubted' | 'cleared' | 'void'
  /** Turns that others did for it. */
  children: number[]
  inquiries: InquiryState[]
  /** What of the reply has come so far. */
  live?: LiveReply
}

export interface InquiryState {
  id: string
  by: string
  inquiry: Inquiry
  at: number
  answer?: Answer
}

export interface LiveReply {
  text: string
  reasoning: string
  calls: { name: string; arguments: string }[]
}

/** A component that is being written. */
export interface LiveStep {
  agentType: string
  action: string
  component?: string
  props: JsonObject
}

/** A request of the person. */
export interface Request {
  rev: number
  id: string
  to: string
  text: string
  at: number
  seq: number
  /** The id and the meta of its first message. */
  message: string
  meta: JsonObject
  /** Turns for it that are not settled. */
  open: Set<number>
  spent: Spent
  failure?: Failure
  endedAt?: number
  /** The failure of a part of it that nobody waited for. */
  failedPart?: Failure
}

/** Something that waits for a person. */
export interface Waiting {
  id: string
  at: number
  agent: string
  task: string
  thread: string
  /** Whose work it is, where it is that of another person. */
  person?: string
  what:
    | { kind: 'approval'; question: string; details?: unknown; call?: Call; deadline?: number }
    | { kind: 'question'; question: string; details?: unknown; wanted: Wanted; server?: string; call?: Call; deadline?: number }
    | { kind: 'grant'; lacking: Level[]; calls: Record<string, number> }
    | { kind: 'in_doubt'; call: Call }
    | { kind: 'parked'; failure: Failure }
}

/** A conversation as the list shows it; `active` is the event that moved it up, if that came live. */
export type Chat = Conversation & { active?: number }

export interface State {
  rev: number
  /** The last event that was folded. */
  seq: number
  /** How often something was read beside the log. */
  reads: number
  /** The newest events, oldest first. */
  recent: Recorded[]
  /** How many agents there are; not all of them need be here. */
  agentCount: number
  /** How many decisions wait that are not here. */
  unlistedWaiting: number
  /** The cursor of the requests before those that are here. */
  nextRequests?: string
  /** The cursor of the conversations after those that are here: not read yet, or none. */
  nextConversations?: string | null
  /** Conversations that something happened in and that are not here. */
  strangers: Set<string>
  conversations: Map<string, Chat>
  /** The cursor of the agents after those that are here. */
  nextAgents?: string
  roles: Map<string, Role>
  agents: Map<string, Agent>
  threads: Map<string, Thread>
  turns: Map<number, Turn>
  effects: Map<string, EffectState>
  requests: Map<string, Request>
  waiting: Map<string, Waiting>
  /** How many calls that may change something have ended since this was read. */
  writes: number
  artifacts: Map<string, Artifact & { at: number; agent?: string; task?: string }>
  spent: Spent
  /** Tools that need not be asked about any more. */
  allowed: Allowed[]
  /** What the agents of conversations offer. */
  operations: Map<string, AgentOperation[]>
  /** Whether the default model is the offline one. */
  isOffline: boolean
  /** What calls cost: those of the requests that the trace lists, and those since. */
  costs: CallCost[]
}

export const nothing = (): Spent => ({ tokens: 0, costNanos: 0, requests: 0, timeMs: 0 })

export function empty(): State {
  return {
    rev: 0,
    seq: 0,
    reads: 0,
    recent: [],
    agentCount: 0,
    unlistedWaiting: 0,
    strangers: new Set(),
    conversations: new Map(),
    roles: new Map(),
    agents: new Map(),
    threads: new Map(),
    turns: new Map(),
    effects: new Map(),
    requests: new Map(),
    waiting: new Map(),
    writes: 0,
    artifacts: new Map(),
    spent: nothing(),
    allowed: [],
    operations: new Map(),
    isOffline: false,
    costs: [],
  }
}

/** Whether an effect logs what the model is told about its environment: no tool is called, and no step is shown for it. */
export function isEnvironment(effect: Effect): boolean {
  return 'tool' in effect && effect.tool.own === true && effect.tool.tool === '_environment'
}
