// What a model was asked, as far as the log can tell it. The log keeps a digest of each request, not its words: they are put
// together again from the role, the order, the conversation and what happened in the turn before.

import type { EffectState, State, Turn } from '../../store/state'
import type { Role } from '../../types'

export interface Said {
  role: 'user' | 'assistant' | 'tool'
  text: string
}

export interface Prompt {
  system: string
  messages: Said[]
  /** What the log cannot tell about it. */
  lacks: 'nothing' | 'notes' | 'instructions'
  digest: string
}

interface Order {
  prompt?: { Ok?: string }
  messages?: { role?: string; content?: unknown; text?: unknown }[]
}

/** A text wherever it stands in a message of an order. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(textOf).filter(Boolean).join('\n')
  if (value !== null && typeof value === 'object') {
    const { text, content } = value as { text?: unknown; content?: unknown }
    return textOf(text ?? content)
  }
  return ''
}

const isChinese = (text: string): boolean => /\p{Script=Han}/u.test(text) && !/[\u3040-\u30ff]/.test(text)

/** What happened in a turn before an effect, as the model is told it. */
function within(state: State, turn: Turn, until: EffectState): Said[] {
  const all: { seq: number; said: Said[] }[] = []
  for (const id of turn.effects) {
    const effect = state.effects.get(id)
    if (!effect || effect.startedSeq >= until.startedSeq || typeof effect.outcome !== 'object') continue
    const said: Said[] = []
    if ('reply' in effect.outcome) {
      const { text, toolCalls = [] } = effect.outcome.reply
      said.push({ role: 'assistant', text: [text, ...toolCalls.map((call) => `${call.name} ${call.arguments}`)].filter(Boolean).join('\n') })
    } else if ('result' in effect.outcome) said.push({ role: 'tool', text: effect.outcome.result.content })
    all.push({ seq: effect.startedSeq, said })
  }
  const thread = state.threads.get(until.thread)
  for (const item of turn.items ?? thread?.items ?? []) {
    if (item.kind === 'turn' || item.seq <= turn.id || item.seq >= until.startedSeq) continue
    const message = item.kind === 'heard' ? item.message : thread?.messages[item.index]
    if (message?.sender === 'user') all.push({ seq: item.seq, said: [{ role: 'user', text: message.text }] })
  }
  return all.sort((a, b) => a.seq - b.seq).flatMap((one) => one.said)
}

/** The prompt of a call; `role` is that of the agent as it is now. */
export function promptOf(state: State, effect: EffectState, role?: Role): Prompt | undefined {
  const turn = state.turns.get(effect.turn)
  const thread = state.threads.get(effect.thread)
  if (!turn || !thread || !('model' in effect.effect)) return undefined
  const digest = String(effect.effect.model.request)
  const order = thread.meta.workflow as Order | undefined
  if (order?.prompt?.Ok !== undefined) {
    const given = (order.messages ?? []).map((message): Said => ({ role: message.role === 'assistant' ? 'assistant' : 'user', text: textOf(message) }))
    return { system: order.prompt.Ok, messages: [...given, ...within(state, turn, effect)], lacks: 'nothing', digest }
  }
  const own = turn.agent === 'root' ? '' : `Your name here is \`${turn.agent}\`.`
  const prompt = (isChinese(turn.task.message) && role?.translations?.zh) || role?.rolePrompt || ''
  const before: Said[] = []
  for (const item of turn.items ?? thread.items) {
    if (item.kind !== 'message' || item.seq > turn.id) continue
    const message = thread.messages[item.index]
    if (message) before.push({ role: message.sender === 'user' ? 'user' : 'assistant', text: message.text })
  }
  // Only a plain conversation is asked with nothing but this.
  const isPlain = turn.behaviour.split('/')[0] === 'converse' && turn.origin === 'inbox'
  return { system: [prompt, own].filter(Boolean).join('\n\n'), messages: [...before, ...within(state, turn, effect)], lacks: isPlain ? 'notes' : 'instructions', digest }
}
