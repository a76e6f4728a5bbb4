// What comes over the wire, as the server writes it: `wire.ts` is made from its types, and here are only the names and shapes
// that the page adds.

import type { Event, Step as PlannedStep } from './wire'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export type {
  Accepted,
  AgentOperation,
  Allowed,
  Answer,
  Artifact,
  Attempt,
  Call,
  CallResult,
  Conversation,
  ConversationSettings,
  Conversations,
  Effect,
  Failure,
  Health,
  Inquiry,
  Envelope,
  Excerpt,
  Level,
  LiveDelta,
  Message,
  ModelSettings,
  Models,
  Origin,
  Outcome,
  Question,
  Recorded,
  Reply,
  ReplyTo,
  Review,
  Role,
  Ruling,
  Settings,
  Settlement,
  Societies,
  CallCost,
  Spent,
  StreamedStep,
  Task,
  Tool,
  ToolServer,
  Tools,
  Usage,
  Verdict,
  View,
  Wanted,
} from './wire'

/** A step of a plan; what a workflow is at just now is `executing`. */
export type Step = Omit<PlannedStep, 'status'> & { status: PlannedStep['status'] | 'executing' }

type Bodied = Exclude<Event, string>
export type EventName = Bodied extends infer E ? (E extends unknown ? keyof E : never) : never

/** The body of each kind of event. */
export type Events = { [K in EventName]: Extract<Bodied, Record<K, unknown>>[K] }
