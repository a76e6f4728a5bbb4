// The work of one turn: open while it goes on, one line when it is done. Each delegation keeps a line of its own either way.

import { memo, useState } from 'react'
import { t, count } from '../../i18n'
import { turnStatus } from '../../store/derive'
import { type EffectState, type Turn, isEnvironment } from '../../store/state'
import { store, useTurn, useView } from '../../store/store'
import type { Attempt } from '../../types'
import { Icon } from '../../ui/Icon'
import { StatusIcon } from '../../ui/Badge'
import { Markdown } from '../../ui/Markdown'
import { duration, money, number } from '../../ui/format'
import { useNow } from '../../ui/useNow'
import { Delegation } from './Delegation'
import { StructuredText, isStructured } from './Structured'
import { AskedStep, GrowingCall, Reasoning, Said, ToolCard } from './Steps'

export const TurnBlock = memo(function TurnBlock({ id, depth }: { id: number; depth: number }) {
  const turn = useTurn(id)
  const [choice, setChoice] = useState<boolean>()
  const isRunning = turn?.settledAt === undefined
  const now = useNow(isRunning && turn !== undefined)
  const isWanted = choice ?? (isRunning || depth > 0)
  useView(turn?.brief && isWanted ? `turn/${id}` : undefined, 'turn')
  if (!turn) return null
  const effects = turn.effects.map((one) => store.state.effects.get(one)).filter((effect): effect is EffectState => effect !== undefined)
  const isOpen = isWanted
  const steps = effects.filter((effect) => !isDelegation(effect))
  const hasSteps = (turn.brief && turn.steps > 0) || steps.some((effect) => isShown(effect, turn, effects))
  if (effects.length === 0 && isRunning) return <Starting />
  return (
    <div className="turn" data-turn={id}>
      {hasSteps && (
        <button type="button" className="turn-head" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
          <StatusIcon status={turnStatus(store.state, turn)} size={15} />
          <span>{summary(turn, isRunning ? now : undefined)}</span>
          <Icon name={isOpen ? 'up' : 'down'} size={14} />
        </button>
      )}
      {(isOpen || effects.some(isDelegation)) && (
        <div className="steps">
          {isOpen && !turn.brief && turn.omitted > 0 && <EarlierSteps turn={turn} />}
          {effects.map((effect) => (
            <Step key={effect.id} effect={effect} turn={turn} effects={effects} isOpen={isOpen} depth={depth} />
          ))}
        </div>
      )}
      {depth === 0 && <Answering effect={effects.at(-1)} />}
      <Ending turn={turn} />
    </div>
  )
})

/** The steps of a long turn before those that are here. */
function EarlierSteps({ turn }: { turn: Turn }) {
  const first = turn.effects[0]
  const before = first === undefined ? 0 : Number(first.slice(first.indexOf('.') + 1))
  return (
    <button type="button" className="quiet earlier" onClick={() => void store.load(`turn/${turn.id}?before=${before}`, 'turn').catch(() => undefined)}>
      {t('turn.earlier', { n: turn.omitted })}
    </button>
  )
}

/** Whether a model is saying what may well be the answer. */
const isAnswering = (effect: EffectState | undefined): boolean => Boolean(effect?.live?.text) && effect?.live?.calls.length === 0

function Answering({ effect }: { effect: EffectState | undefined }) {
  const text = effect?.live?.text
  if (!text || !isAnswering(effect)) return null
  return <div className="said message bot">{isStructured(text) ? <StructuredText text={text} isGrowing /> : <Markdown text={text} isGrowing />}</div>
}

const isDelegation = (effect: EffectState): boolean => 'unit' in effect.effect || 'ask' in effect.effect

function replyOf(effect: EffectState) {
  return typeof effect.outcome === 'object' && 'reply' in effect.outcome ? effect.outcome.reply : undefined
}

/** The last words of a turn that is done stand below as its answer; those of a role in a workflow are shown as what they mean. */
function isAnswer(effect: EffectState, turn: Turn, effects: EffectState[]): boolean {
  const models = effects.filter((one) => 'model' in one.effect)
  const reply = replyOf(effect)
  return turn.settlement === 'done' && models.at(-1) === effect && !reply?.toolCalls?.length && !isStructured(reply?.text ?? '')
}

function isShown(effect: EffectState, turn: Turn, effects: EffectState[]): boolean {
  if (isEnvironment(effect.effect)) return false
  if (!('model' in effect.effect)) return 'tool' in effect.effect || 'approval' in effect.effect || 'grant' in effect.effect
  const reply = replyOf(effect)
  if (effect.live || effect.retries.length > 0 || reply?.reasoning) return true
  return Boolean(reply?.text.trim()) && !isAnswer(effect, turn, effects)
}

function Step({ effect, turn, effects, isOpen, depth }: { effect: EffectState; turn: Turn; effects: EffectState[]; isOpen: boolean; depth: number }) {
  if (isDelegation(effect)) return <Delegation id={effect.id} depth={depth} />
  if (!isOpen || isEnvironment(effect.effect)) return null
  if ('tool' in effect.effect) return <ToolCard effect={effect} rev={effect.rev} />
  if ('approval' in effect.effect || 'grant' in effect.effect) return <AskedStep effect={effect} rev={effect.rev} />
  if ('model' in effect.effect) return <ModelStep effect={effect} isAnswered={isAnswer(effect, turn, effects)} isShownBelow={depth === 0 && isAnswering(effect)} />
  return null
}

function ModelStep({ effect, isAnswered, isShownBelow }: { effect: EffectState; isAnswered: boolean; isShownBelow: boolean }) {
  const reply = replyOf(effect)
  const live = effect.live
  const failure = typeof effect.outcome === 'object' && 'failed' in effect.outcome ? effect.outcome.failed : undefined
  return (
    <>
      <Retried attempts={effect.retries} />
      {effect.stage === 'open' && !live && <Starting since={effect.startedAt} />}
      {live && (
        <>
          {live.reasoning && <Reasoning text={live.reasoning} isLive={!live.text && live.calls.length === 0} />}
          {!isShownBelow && <Said text={live.text} isLive={live.calls.length === 0} />}
          {live.calls.map((call, place) => (
            <GrowingCall key={place} name={call.name} text={call.arguments} />
          ))}
        </>
      )}
      {reply?.reasoning && <Reasoning text={reply.reasoning} />}
      {reply && !isAnswered && <Said text={reply.text} />}
      {failure && <p className="bad">{failure.message}</p>}
    </>
  )
}

/** What went wrong before: the last failure of each model, and how often it failed. */
function Retried({ attempts }: { attempts: Attempt[] }) {
  const byModel = new Map<string, Attempt[]>()
  for (const attempt of attempts) byModel.set(attempt.model, [...(byModel.get(attempt.model) ?? []), attempt])
  return [...byModel].map(([model, all]) => (
    <p key={model} className="retry-note">
      <Icon name="retry" size={15} />
      {t(all.length === 1 ? 'step.retried' : 'step.retried.times', { model, n: all.length, why: all.at(-1)?.failure.message ?? '' })}
    </p>
  ))
}

/** So long nothing is said about a model that has not begun to answer. */
const PATIENCE_MS = 3000

/** Somebody is at it, and nothing is to be seen yet; of a model that was asked, how long it has been. */
export function Starting({ since }: { since?: number }) {
  const now = useNow(since !== undefined)
  const waited = since === undefined ? 0 : now - since
  return (
    <p className="starting">
      <span className="cursor" aria-hidden="true" />
      {waited >= PATIENCE_MS ? <span className="faint numbers">{t('turn.waits', { time: waited < 60_000 ? t('time.s', { n: Math.floor(waited / 1000) }) : duration(waited) })}</span> : <span className="unseen">{t('status.running')}</span>}
    </p>
  )
}

function summary(turn: Turn, now: number | undefined): string {
  const parts = [t(now === undefined ? 'turn.worked' : 'turn.works', { time: duration((turn.settledAt ?? now ?? turn.startedAt) - turn.startedAt) })]
  if (turn.tools > 0) parts.push(count('turn.tools', turn.tools))
  if (turn.spent.tokens > 0) parts.push(t('unit.tokens', { n: number(turn.spent.tokens) }))
  if (turn.spent.costNanos > 0) parts.push(money(turn.spent.costNanos))
  return parts.join(' · ')
}

function Ending({ turn }: { turn: Turn }) {
  if (turn.parked) return <p className="ending warn">{turn.parked.message}</p>
  if (!turn.settlement || turn.settlement === 'done') return null
  const [failure, isStopped] = 'failed' in turn.settlement ? [turn.settlement.failed, false] : [turn.settlement.cancelled, true]
  return (
    <p className={isStopped ? 'ending' : 'ending bad'}>
      <Icon name={isStopped ? 'stop' : 'alert'} size={15} />
      {isStopped ? t('turn.stopped') : failure.message}
      {!isStopped && <code className="faint">{failure.code}</code>}
    </p>
  )
}
