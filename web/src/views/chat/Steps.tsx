// The steps of a turn: what was thought, said along the way, called and asked.

import { memo, useState } from 'react'
import { ToolResultDisplay } from '../../components/ToolResultDisplay'
import { parseToolResultContent } from '../../components/parse'
import { t } from '../../i18n'
import { parsePartialJson } from '../../json/partial'
import type { EffectState } from '../../store/state'
import { store } from '../../store/store'
import type { Call, CallResult, Json } from '../../types'
import { Files } from '../../ui/Files'
import { Icon, type IconName } from '../../ui/Icon'
import { JsonView, readJson } from '../../ui/JsonView'
import { Markdown } from '../../ui/Markdown'
import { duration } from '../../ui/format'
import { useNow } from '../../ui/useNow'
import { asked } from '../inbox/asked'
import { StructuredText, isStructured } from './Structured'

/** What a model thought, apart from what it said. */
export function Reasoning({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const [isOpen, setOpen] = useState(false)
  const isShown = isOpen || isLive
  return (
    <div className={isLive ? 'reasoning live' : 'reasoning'}>
      <button type="button" className="step-head" aria-expanded={isShown} onClick={() => setOpen(!isOpen)}>
        <Icon name="think" size={16} />
        <span className="step-name">{t(isLive ? 'step.thinking' : 'step.thought')}</span>
        {!isShown && <span className="step-brief">{text.split('\n')[0]}</span>}
      </button>
      {isShown && (
        <div className="reasoning-text">
          {text}
          {isLive && <span className="cursor" aria-hidden="true" />}
        </div>
      )}
    </div>
  )
}

/** One line for the arguments of a call: what stands in them, at any depth, without the marks of JSON. */
export function brief(value: Json): string {
  const values = (one: Json): string[] => (one === null ? [] : typeof one === 'object' ? Object.values(one).flatMap((inner) => values(inner as Json)) : [String(one)])
  return values(value).join(' · ').replace(/\s+/g, ' ').slice(0, 160)
}

interface CardProps {
  icon: IconName
  name: string
  brief: string
  state: 'running' | 'good' | 'bad' | 'asked' | 'stopped'
  note?: string
  time?: string
  children?: React.ReactNode
}

function Card({ icon, name, brief: short, state, note, time, children }: CardProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className={`card ${state}`}>
      <button type="button" className="step-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={icon} size={16} />
        <span className="step-name mono">{name}</span>
        <span className="step-brief">{short}</span>
        {note && <span className={`step-note ${state}`}>{note}</span>}
        {time && <span className="step-time numbers">{time}</span>}
        <Icon name={isOpen ? 'up' : 'down'} size={14} />
      </button>
      {isOpen && <div className="card-body">{children}</div>}
    </div>
  )
}

export const ToolCard = memo(function ToolCard({ effect }: { effect: EffectState; rev: number }) {
  const call = 'tool' in effect.effect ? effect.effect.tool : undefined
  const isOpen = effect.stage === 'open'
  const now = useNow(isOpen)
  if (!call) return null
  const outcome = effect.outcome
  const result = typeof outcome === 'object' && 'result' in outcome ? outcome.result : undefined
  const failed = typeof outcome === 'object' && 'failed' in outcome ? outcome.failed : effect.refused
  const isBad = Boolean(result?.isError || failed)
  const state = effect.stage === 'doubted' ? 'asked' : isOpen ? 'running' : effect.stage === 'void' ? 'stopped' : isBad ? 'bad' : 'good'
  const note = effect.stage === 'doubted' ? t('status.in_doubt') : isBad ? t('status.failed') : effect.stage === 'void' ? t('status.cancelled') : result?.from ? t('step.reused') : undefined
  const args = readJson(call.arguments)
  return (
    <Card
      icon="tool"
      name={call.tool}
      brief={brief(args)}
      state={state}
      time={duration((effect.endedAt ?? now) - effect.startedAt)}
      {...(note && { note })}
    >
      <CallDetails call={call} result={result} failure={failed?.message} />
    </Card>
  )
})

function CallDetails({ call, result, failure }: { call: Call; result: CallResult | undefined; failure: string | undefined }) {
  return (
    <>
      <p className="label">{t('step.arguments')}</p>
      <JsonView value={readJson(call.arguments)} />
      {result && (
        <>
          <p className="label">{t(result.isError ? 'step.error' : 'step.result')}</p>
          <Result content={result.content} />
          <Files artifacts={[...(result.artifacts ?? []), ...(result.media ?? []).filter((one) => !result.artifacts?.some((kept) => kept.id === one.id))]} />
        </>
      )}
      {failure && <p className="bad">{failure}</p>}
    </>
  )
}

/** A result as text, or as the pieces that it says it is. */
function Result({ content }: { content: string }) {
  const isPieces = /^\s*[[{]/.test(content) && parseToolResultContent(content).some((item) => item.type === 'component' || item.type === 'webcomponent')
  return isPieces ? <ToolResultDisplay content={content} /> : <pre className="long" tabIndex={0}>{content}</pre>
}

/** A call that the model is still writing. */
export function GrowingCall({ name, text }: { name: string; text: string }) {
  const { data } = parsePartialJson(text)
  return (
    <div className="card running">
      <div className="step-head">
        <Icon name="tool" size={16} />
        <span className="step-name mono">{name || '…'}</span>
        <span className="step-brief">{data === undefined ? '' : brief(data)}</span>
        <span className="cursor" aria-hidden="true" />
      </div>
    </div>
  )
}

/** A question to the person, and what was said. The card to answer it is elsewhere. */
export const AskedStep = memo(function AskedStep({ effect }: { effect: EffectState; rev: number }) {
  const { question, call } = 'approval' in effect.effect ? effect.effect.approval : { question: t('approval.budget'), call: undefined }
  const words = asked(store.state.turns.get(effect.turn)?.agent ?? '', question, call ?? undefined)
  const verdict = typeof effect.outcome === 'object' && 'verdict' in effect.outcome ? effect.outcome.verdict : undefined
  const isOpen = store.state.waiting.has(effect.id)
  const state = isOpen ? 'asked' : verdict?.approved ? 'good' : effect.stage === 'void' ? 'stopped' : 'bad'
  const answer = verdict?.answer
  const note = isOpen
    ? t('status.needs_you')
    : verdict
      ? answer !== undefined
        ? t('approval.answered')
        : t(verdict.approved ? 'approval.approved' : 'approval.denied')
      : t('status.cancelled')
  return (
    <Card icon="inbox" name={call?.tool ?? t('step.question')} brief={words.split('\n')[0] ?? ''} state={state} note={note}>
      <p className="asked">{words}</p>
      {call && <JsonView value={readJson(verdict?.arguments ?? call.arguments)} />}
      {answer !== undefined && <JsonView value={answer} />}
      {verdict?.reason && <p className="faint">{verdict.reason}</p>}
    </Card>
  )
})

/** What a model said along the way. */
export function Said({ text, isLive = false }: { text: string; isLive?: boolean }) {
  if (!text.trim()) return null
  return <div className="said">{isStructured(text) ? <StructuredText text={text} isGrowing={isLive} /> : <Markdown text={text} isGrowing={isLive} />}</div>
}
