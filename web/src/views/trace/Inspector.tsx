// One span: what was asked, what came back, what it took. It can be copied whole.

import { type ReactNode, useState } from 'react'
import { t } from '../../i18n'
import { href } from '../../router'
import { turnStatus } from '../../store/derive'
import type { EffectState, State, Turn } from '../../store/state'
import { Badge } from '../../ui/Badge'
import { duration, money, moment, number } from '../../ui/format'
import { copy } from '../../ui/Copy'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import type { Role } from '../../types'
import { useAgent } from '../../ui/useAgent'
import { type Prompt, promptOf } from './prompt'
import { useView } from '../../store/store'
import { shortName, told } from './spans'

/** Messages that are shown; of a long conversation the newest. */
const MOST = 40

export function Inspector({ state, id, close }: { state: State; id: string; close: () => void }) {
  const effect = state.effects.get(id)
  const turn = state.turns.get(effect?.turn ?? Number(id))
  useView(turn && `turn/${turn.id}?context=true`, 'turn')
  const agent = useAgent(turn?.agent ?? '', 0, turn !== undefined && effect !== undefined && 'model' in effect.effect)
  if (!turn) return null
  const whole = effect ?? turn
  return (
    <aside className="agent-page inspector" aria-labelledby="span-title">
      <header className="agent-head">
        <h2 id="span-title">
          {effect ? titleOf(effect) : shortName(state, turn)} <code>{id}</code>
        </h2>
        <span>
          <Copy text={JSON.stringify(whole, (_, value) => (value instanceof Set ? [...value] : value), 2)} />
          <button type="button" className="quiet" aria-label={t('close')} onClick={close}>
            <Icon name="close" />
          </button>
        </span>
      </header>
      {effect ? <EffectFacts state={state} effect={effect} turn={turn} role={agent?.role ?? undefined} /> : <TurnFacts state={state} turn={turn} />}
    </aside>
  )
}

/** What kind of span it is; a tool by its name. */
function titleOf(effect: EffectState): string {
  const [kind, name] = told(effect)
  return kind === 'tool' || kind === 'ask' ? name : t(`trace.kind.${kind}`)
}

function Copy({ text }: { text: string }) {
  const [isDone, setDone] = useState(false)
  return (
    <button type="button" className="small" onClick={() => void copy(text).then(setDone)}>
      <Icon name="copy" size={14} />
      {t(isDone ? 'copied' : 'copy')}
    </button>
  )
}

function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Text({ title, text }: { title: string; text: string | undefined }) {
  if (!text) return null
  return (
    <section className="part">
      <h3>{title}</h3>
      <pre className="prompt" tabIndex={0}>{text}</pre>
    </section>
  )
}

function TurnFacts({ state, turn }: { state: State; turn: Turn }) {
  const answer = turn.answer === undefined ? undefined : state.threads.get(turn.thread)?.messages[turn.answer]?.text
  return (
    <>
      <Facts
        rows={[
          [t('trace.who'), <Link href={href('organisation', [turn.agent])}>{shortName(state, turn)}</Link>],
          [t('trace.state'), <Badge status={turnStatus(state, turn)} />],
          [t('trace.thread'), <code>{turn.thread}</code>],
          [t('trace.when'), moment(turn.startedAt)],
          [t('trace.took'), turn.settledAt ? duration(turn.settledAt - turn.startedAt) : '…'],
          [t('trace.tokens'), number(turn.spent.tokens)],
          [t('trace.cost'), money(turn.spent.costNanos)],
        ]}
      />
      <Text title={t('trace.asked')} text={turn.task.message} />
      <Text title={t('trace.answered')} text={answer} />
      {turn.settlement && turn.settlement !== 'done' && <Text title={t('trace.failure')} text={JSON.stringify(turn.settlement, null, 2)} />}
    </>
  )
}

function EffectFacts({ state, effect, turn, role }: { state: State; effect: EffectState; turn: Turn; role: Role | undefined }) {
  const { effect: asked, outcome } = effect
  const reply = typeof outcome === 'object' && 'reply' in outcome ? outcome.reply : undefined
  const result = typeof outcome === 'object' && 'result' in outcome ? outcome.result : undefined
  const usage = reply?.usage
  const failure = effect.refused ?? (typeof outcome === 'object' && 'failed' in outcome ? outcome.failed : undefined)
  const rows: [string, ReactNode][] = [
    [t('trace.who'), <Link href={href('organisation', [turn.agent])}>{shortName(state, turn)}</Link>],
    [t('trace.when'), moment(effect.startedAt)],
    [t('trace.took'), effect.endedAt ? duration(effect.endedAt - effect.startedAt) : '…'],
  ]
  if ('model' in asked) rows.push([t('trace.model'), reply?.model ?? asked.model.model])
  if ('tool' in asked) rows.push([t('trace.tool'), <code>{asked.tool.tool}</code>], [t('trace.class'), asked.tool.class])
  if (usage) {
    rows.push([
      t('trace.usage'),
      t('trace.usage.text', { input: number(usage.inputTokens), cached: number(usage.cachedTokens ?? 0), output: number(usage.outputTokens), reasoning: number(usage.reasoningTokens ?? 0) }),
    ])
  }
  if (effect.spent) rows.push([t('trace.cost'), money(effect.spent.costNanos ?? 0)])
  const prompt = 'model' in asked ? promptOf(state, effect, role) : undefined
  return (
    <>
      <Facts rows={rows} />
      {failure && <Text title={t('trace.failure')} text={`${failure.code}: ${failure.message}`} />}
      {effect.retries.map((attempt) => (
        <Text key={attempt.attempt} title={t('trace.attempt', { n: attempt.attempt })} text={`${attempt.model}: ${attempt.failure.code}: ${attempt.failure.message}`} />
      ))}
      {prompt && <Asked prompt={prompt} />}
      {'model' in asked && asked.model.tools?.names && <Text title={t('trace.offered')} text={asked.model.tools.names.join('\n')} />}
      {'tool' in asked && <Text title={t('trace.arguments')} text={pretty(asked.tool.arguments)} />}
      {'ask' in asked && <Text title={t('trace.asked')} text={asked.ask.envelope.payload.text} />}
      {'unit' in asked && <Text title={t('trace.asked')} text={asked.unit.task.message} />}
      {'approval' in asked && <Text title={t('trace.asked')} text={asked.approval.question} />}
      <Text title={t('trace.reasoning')} text={reply?.reasoning} />
      <Text title={t('trace.answered')} text={reply?.text || result?.content || (typeof outcome === 'object' && 'answer' in outcome ? outcome.answer : undefined)} />
      {reply?.toolCalls && reply.toolCalls.length > 0 && <Text title={t('trace.wished')} text={reply.toolCalls.map((call) => `${call.name} ${pretty(call.arguments)}`).join('\n\n')} />}
      {typeof outcome === 'object' && 'verdict' in outcome && <Text title={t('trace.answered')} text={JSON.stringify(outcome.verdict, null, 2)} />}
    </>
  )
}

/** What the model was asked, and what of it the log does not tell. */
function Asked({ prompt }: { prompt: Prompt }) {
  return (
    <>
      <Text title={t('trace.system')} text={prompt.system || t('trace.system.none')} />
      <section className="part">
        <h3>
          {t('trace.messages')} <span className="faint numbers">{prompt.messages.length}</span>
        </h3>
        <ol className="said-list">
          {prompt.messages.slice(-MOST).map((message, place) => (
            <li key={place}>
              <span className="said-role">{t(`trace.said.${message.role}`)}</span>
              <pre className="prompt" tabIndex={0}>{message.text}</pre>
            </li>
          ))}
        </ol>
      </section>
      <p className="faint">
        {t(`trace.lacks.${prompt.lacks}`)} <code>{prompt.digest.slice(0, 16)}</code>
      </p>
    </>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
