// What comes over the wire, as the server writes it. Only the fields that the page reads.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export interface Failure {
  code: string
  message: string
}

export interface Spent {
  tokens: number
  costNanos: number
  requests: number
  timeMs: number
}

export interface Usage {
  inputTokens: number
  outputTokens: number
  cachedTokens: number
  reasoningTokens: number
  cacheWriteTokens?: number
  costNanos?: number
}

export interface Message {
  id: string
  sender: 'bot' | 'user'
  text: string
  timestamp: number
  meta?: JsonObject
}

export interface Task {
  id: string
  name: string
  type: 'message' | 'action'
  message: string
  meta?: JsonObject
  skipUserMessage?: boolean
}

export interface Letter {
  id: string
  from: string
  to: string
  taskId: string
  kind: 'message' | 'answer' | { failure: Failure }
  payload: { text: string; meta?: JsonObject }
  replyTo?: ReplyTo
  hops?: number
}

export type ReplyTo = 'nobody' | 'user' | { effect: string }
export type Origin = 'inbox' | { unit: string }

export type Ruling =
  | 'allow'
  | 'approved'
  | { ask: string }
  | { askEach: string }
  | { deny: string }
  | { stop: string }
  | { person: Question }
  | { refuse: Failure }

export interface Call {
  callId: string
  tool: string
  wrote?: string
  arguments: string
  class: 'read' | 'idempotent' | 'write'
  ruling?: Ruling
  fresh?: string
  from?: Json
  own?: boolean
}

export interface Question {
  text: string
  wanted?: Wanted
}

export type Wanted = 'agreement' | { text: { options?: string[] } } | { form: { schema: JsonObject } } | { visit: { url: string } }

export interface Level {
  scope: string
  of: 'tokens' | 'cost' | 'requests' | 'time'
  used: number
  limit: number
}

export interface Artifact {
  id: string
  name: string
  mediaType: string
  bytes: number
}

export type Effect =
  | { model: { model: string; request: string; tools?: { digest: string; names?: string[] } } }
  | { grant: { lacking: Level[] } }
  | { tool: Call }
  | { ask: { letter: Letter; deadline?: number } }
  | { approval: { question: string; details?: Json; call?: Call; deadline?: number; wanted?: Wanted } }
  | { terminate: { agent: string; reason?: string; deadline: number } }
  | { sleep: { until: number } }
  | { unit: { thread: string; behaviour: string; task: Task } }
  | { keep: Artifact }

export interface Reply {
  text: string
  reasoning?: string
  toolCalls?: { id: string; name: string; arguments: string }[]
  finish?: Json
  usage?: Usage
  model?: string
}

export interface CallResult {
  content: string
  isError?: boolean
  artifacts?: Artifact[]
  from?: string
}

export interface Verdict {
  approved: boolean
  reason?: string
  arguments?: string
  always?: 'agent' | 'task' | 'tool'
  answer?: Json
}

export type Outcome =
  | 'slept'
  | { reply: Reply }
  | { result: CallResult }
  | { answer: string }
  | { verdict: Verdict }
  | { kept: Artifact }
  | { failed: Failure }

export interface Attempt {
  model: string
  attempt: number
  maxRetries: number
  failure: Failure
  delayMs: number
  next: string
}

export interface Role {
  id: string
  name: string
  rolePrompt?: string
  behaviour?: string
  tools?: string[] | null
  [key: string]: unknown
}

export interface Step {
  id?: string
  text: string
  status: StepStatus
  result?: string
}

export type StepStatus = 'pending' | 'in_progress' | 'executing' | 'completed' | 'failed' | 'skipped'

export interface Plan {
  id?: string
  strategy?: { name: string; reason: string }
  steps: Step[]
}

export interface Settings {
  briefStatus?: { phase?: string; [key: string]: Json | undefined }
  plan?: Plan
  [key: string]: unknown
}

export type Inquiry =
  | { person: { question: Question; details?: Json } }
  | { model: { model: string; prompt: string; about: string } }

export type Answer = 'cancelled' | { verdict: Verdict } | { reply: Reply } | { failed: Failure }
export type Settlement = 'done' | { failed: Failure } | { cancelled: Failure }

/** The body of each kind of event that the page knows. */
export interface Events {
  societyFounded: { seed: string; limits: JsonObject }
  societyForked: { from: string; seed: string }
  toolAllowed: { allowed: { tool: string; agent?: string; task?: string } }
  budgetsSet: { budgets: JsonObject }
  budgetGranted: { scope: string; more: Spent }
  roleCreated: { role: Role; by?: string }
  roleChanged: { role: Role }
  agentSpawned: { agent: string; role: string; parent?: string; by?: string }
  agentDismissed: { agent: string; caller: string; reason?: string; detach?: boolean }
  agentTerminated: { agent: string }
  letterSent: { letter: Letter; by?: string }
  lettersTaken: { by: string; agent: string; letters: Letter[] }
  inboxCleared: { agent: string; of: 'everything' | { task: string } | { askedBy: number[] } }
  turnStarted: {
    agent: string
    behaviour: string
    phase: string
    task: Task
    origin: Origin
    replyTo?: ReplyTo
    message?: string
    index: number
  }
  effectStarted: { id: string; effect: Effect }
  effectRetried: { id: string; attempt: Attempt; spent?: Spent }
  effectEnded: { id: string; outcome: Outcome; spent?: Spent }
  effectDoubted: { id: string }
  effectCleared: { id: string }
  effectRestarted: { id: string }
  callInquired: { id: string; by: string; inquiry: Inquiry }
  callAnswered: { id: string; answer: Answer; spent?: Spent }
  effectRefused: { id: string; failure: Failure }
  acted: { id: string }
  messageAdded: { by: string; index: number; message: Message }
  messageUpdated: { by: string; index: number; patch: { text?: string; meta?: JsonObject } }
  settingsUpdated: { by: string; settings: Settings }
  planSet: { by: string; plan: Plan }
  phaseSuggested: { by: string; phase: string }
  phaseApplied: { phase: string }
  suggestionDropped: null
  contextCompressed: { by: string; from: number; summaries: string[] }
  contextRestored: { by?: string; to?: number }
  contextKept: { by: string; failure: Failure }
  threadOpened: { by: string; agent: string; parent: string; settings: Settings; meta?: JsonObject }
  threadLinked: { by: string; index: number; slot: string; child: string }
  turnParked: { turn: number; reason: Failure }
  turnResumed: { turn: number }
  turnSettled: { turn: number; settlement: Settlement; message?: Message; index: number; next?: Task[] }
}

export type EventName = keyof Events

/** One event of the log. */
export interface Recorded {
  seq: number
  at: number
  thread?: string
  event: string | { [name: string]: unknown }
}

/** A piece of a reply that is being written. It is not in the log. */
export interface StreamedDelta {
  effect: string
  thread: string
  delta:
    | 'stopped'
    | { content: string }
    | { reasoning: string }
    | { tool_call: { index: number; id?: string | null; name?: string | null; arguments: string } }
    | { usage: Usage }
    | { model: string }
    | { done: Json }
    | { error: Failure }
    | { echo: Json }
}

/** What somebody in a workflow is seen doing. It is not in the log. */
export interface StreamedPiece {
  thread: string
  path: string
  agentType: string
  action: string
  component?: string
  piece?:
    | 'again'
    | { text: { field: string; text: string } }
    | { item: { field: string; index: number; value: Json } }
    | { field: { field: string; value: Json } }
}

export interface Health {
  status: string
  version: string
  model: { name: string; offline: boolean }
  store: { ok: boolean; seq?: number }
}

export interface ToolListed {
  name: string
  server: string | null
  effect: 'read' | 'idempotent' | 'write'
  volatile: boolean
  description: string
  parameters: JsonObject
}

export interface ServerListed {
  name: string
  reach: string
  state: 'off' | 'starting' | 'connected' | 'down'
  detail: string
  trusted: boolean
  tools: number
}

export interface Models {
  default: string
  offline: boolean
  vendors: { name: string; ready: boolean; needs?: string }[]
}
