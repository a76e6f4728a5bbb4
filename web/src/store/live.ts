// Takes in what is told beside the log: chunks of replies and of components that are still being written. None of it is
// kept: the log brings the whole.

import type { Json, LiveDelta, StreamedStep } from '../types'
import { touch, touchEffect } from './fold'
import type { LiveReply, State } from './state'

export function hear(state: State, { effect: id, delta }: LiveDelta): void {
  const effect = state.effects.get(id)
  if (!effect || effect.stage !== 'open') return
  const live = (effect.live ??= { text: '', reasoning: '', calls: [] })
  if (delta === 'stopped') delete effect.live
  else if ('content' in delta) live.text += delta.content
  else if ('reasoning' in delta) live.reasoning += delta.reasoning
  else if ('tool_call' in delta) {
    const { index, name, arguments: more } = delta.tool_call
    const call = (live.calls[index] ??= { name: '', arguments: '' })
    if (name) call.name = name
    call.arguments += more
  } else if ('error' in delta) delete effect.live
  else return
  state.rev += 1
  touchEffect(state, effect)
}

/** Chunks were lost, or the line is a new one: those of replies under way are told again from their beginning. */
export function forget(state: State): void {
  for (const effect of state.effects.values()) {
    if (!effect.live) continue
    delete effect.live
    touchEffect(state, effect)
  }
  for (const thread of state.threads.values()) {
    if (!thread.step) continue
    delete thread.step
    touch(state, thread)
  }
  state.rev += 1
}

/** What of the replies under way has come so far, for whoever comes late. */
export function soFar(state: State): [string, LiveReply][] {
  return [...state.effects.values()].flatMap((effect) => (effect.live && effect.stage === 'open' ? [[effect.id, effect.live] as [string, LiveReply]] : []))
}

/** Takes over what another has heard so far. */
export function catchUpLive(state: State, told: [string, LiveReply][]): void {
  forget(state)
  for (const [id, live] of told) {
    const effect = state.effects.get(id)
    if (!effect || effect.stage !== 'open') continue
    effect.live = live
    touchEffect(state, effect)
  }
}

export function see(state: State, step: StreamedStep): void {
  const thread = state.threads.get(step.thread)
  // What says only how long a step took is in the log as well.
  if (!thread || (step.durationMs !== undefined && !step.chunk)) return
  const { agentType, action, component } = step
  const before = thread.step
  const isSame = before?.component === component && step.chunk !== 'again'
  const props = isSame && before ? before.props : {}
  thread.step = { agentType, action, props, ...(component && { component }) }
  const more = step.chunk
  if (more && more !== 'again') {
    if ('text' in more) props[more.text.field] = String(props[more.text.field] ?? '') + more.text.text
    else if ('field' in more) props[more.field.field] = more.field.value as Json
    else {
      const list = (props[more.item.field] ??= []) as Json[]
      list[more.item.index] = more.item.value as Json
    }
  }
  state.rev += 1
  touch(state, thread)
  // Whoever shows the plan from above looks there.
  for (let above = thread.parent; above; ) {
    const holder = state.threads.get(above.thread)
    touch(state, holder)
    above = holder?.parent
  }
}
