// One agent: what it is, what it is told to be, what it may use, what waits for it, how full its conversation is, what it cost.

import { type ReactNode, useState } from 'react'
import { Problem, post } from '../../api'
import { count, t } from '../../i18n'
import { href } from '../../router'
import { agentStatus, nameOf, turnStatus } from '../../store/derive'
import type { Agent, State, Turn } from '../../store/state'
import { alarm, announce } from '../../ui/announce'
import { Badge } from '../../ui/Badge'
import { duration, moment, money, number } from '../../ui/format'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { Operations } from '../../ui/Operations'
import type { Reply, Role } from '../../types'
import { useAgent } from '../../ui/useAgent'
import { useView } from '../../store/store'
import type { AgentContext, AgentOperation } from '../../wire'
import { useTools } from '../inbox/tools'
import { useModels } from '../settings/FirstRun'
import { Now } from './Now'

/** Messages of a conversation before it is compressed, where a role sets none. */
const USUAL_MOST = 50

export function AgentPage({ state, id, isPast, close }: { state: State; id: string; isPast: boolean; close: () => void }) {
  const agent = state.agents.get(id)
  const detail = useAgent(id, agent?.rev ?? 0, agent !== undefined && !isPast && id !== 'user')
  const usual = useModels()
  const newest = agent?.turn ?? newestTurn(state, id)
  useView(agent && !isPast && id !== 'user' ? `conversation/${encodeURIComponent(id)}?limit=8` : undefined, 'tree')
  useView(newest !== undefined && !isPast ? `turn/${newest}` : undefined, 'turn')
  if (!agent) {
    return (
      <aside className="agent-page" aria-label={id}>
        <Head id={id} close={close} />
        <p className="empty">{t('org.unknown', { id })}</p>
      </aside>
    )
  }
  const known = state.roles.get(agent.role)
  const role = known && detail?.role ? { ...known, ...detail.role } : known
  const last = lastReply(state, id)
  return (
    <aside className="agent-page" aria-labelledby="agent-title">
      <Head id={id} close={close} />
      <p className="agent-line">
        <Badge status={agentStatus(state, id)} /> <Now state={state} agent={agent} />
      </p>
      {!isPast && !agent.terminatedAt && id !== 'user' && <Deeds agent={agent} operations={detail?.operations ?? []} />}
      <dl className="facts">
        <Fact name={t('org.role')}>{role?.name ?? agent.role}</Fact>
        <Fact name={t('org.parent')}>
          {agent.parent ? <Link href={href('organisation', [agent.parent])}>{agent.parent}</Link> : t('org.no_parent')}
        </Fact>
        <Fact name={t('org.model')}>
          {[models(role, usual?.default ?? ''), last?.model && last.model !== (role?.model ?? usual?.default) && t('org.model.last', { name: last.model })].filter(Boolean).join(' · ')}
        </Fact>
        <Fact name={t('org.since')}>{moment(agent.createdAt)}</Fact>
        <Fact name={t('org.spent')}>
          <span className="numbers">
            {t('unit.tokens', { n: number(agent.spent.tokens) })} · {money(agent.spent.costNanos)} · {count('org.calls', agent.spent.requests)}
          </span>
        </Fact>
        {agent.dismissed && <Fact name={t('org.dismissed')}>{[agent.dismissed.caller, agent.dismissed.reason].filter(Boolean).join(': ')}</Fact>}
      </dl>
      {detail && <ContextGauge context={detail.context} most={role?.limits?.contextMessages ?? USUAL_MOST} tokens={last?.usage.inputTokens} />}
      <Part title={t('org.inbox')} n={agent.inbox.length + agent.unlisted}>
        {agent.inbox.length === 0 ? (
          <p className="faint">{t('org.inbox.empty')}</p>
        ) : (
          <ol className="envelopes">
            {agent.inbox.slice(0, 50).map(({ task, envelope }, place) => (
              <li key={envelope?.id ?? `${task}-${place}`}>
                <strong>{envelope?.from ?? id}</strong> <span>{envelope?.payload.text ?? state.requests.get(task)?.text ?? task}</span>
              </li>
            ))}
          </ol>
        )}
      </Part>
      <Turns state={state} agent={agent} />
      <Part title={t('org.prompt')}>
        <pre className="prompt" tabIndex={0}>{role?.rolePrompt || t('org.no_prompt')}</pre>
      </Part>
      <Tools state={state} agent={agent} />
    </aside>
  )
}

function Head({ id, close }: { id: string; close: () => void }) {
  return (
    <header className="agent-head">
      <h1 id="agent-title">{id}</h1>
      <button type="button" className="quiet" aria-label={t('close')} onClick={close}>
        <Icon name="close" />
      </button>
    </header>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Part({ title, n, children }: { title: string; n?: number; children: ReactNode }) {
  return (
    <section className="part">
      <h2>
        {title}
        {n !== undefined && <span className="faint numbers"> {n}</span>}
      </h2>
      {children}
    </section>
  )
}

function Deeds({ agent, operations }: { agent: Agent; operations: AgentOperation[] }) {
  const [isSure, setSure] = useState(false)
  const [reason, setReason] = useState('')
  const complain = (error: unknown) => alarm(error instanceof Problem ? error.message : String(error))
  const terminate = async () => {
    try {
      await post(`/api/agents/${encodeURIComponent(agent.id)}/terminate`, { reason })
      announce(t('org.terminating', { id: agent.id }))
      setSure(false)
    } catch (error) {
      complain(error)
    }
  }
  return (
    <div className="deeds">
      <Link className="button" href={href('chat', [agent.id])}>
        <Icon name="chat" size={15} />
        {t('org.talk')}
      </Link>
      <Operations agent={agent.id} operations={operations} onSent={() => undefined} onTrouble={complain} />
      {agent.parent && !isSure && (
        <button type="button" className="danger" onClick={() => setSure(true)}>{t('org.terminate')}</button>
      )}
      {isSure && (
        <form
          className="sure"
          onSubmit={(event) => {
            event.preventDefault()
            void terminate()
          }}
        >
          <label>
            {t('org.reason')}
            <input value={reason} onChange={(event) => setReason(event.target.value)} autoFocus />
          </label>
          <button type="submit" className="danger">{t('org.terminate.sure')}</button>
          <button type="button" onClick={() => setSure(false)}>{t('cancel')}</button>
        </form>
      )}
    </div>
  )
}

/** How near a conversation is to being compressed. */
function ContextGauge({ context, most, tokens }: { context: AgentContext; most: number; tokens: number | undefined }) {
  return (
    <Part title={t('org.context')}>
      <meter min={0} max={most} high={most * 0.8} value={Math.min(most, context.shown)} aria-label={t('org.context')} />
      <p className="faint numbers">{t('org.context.text', { shown: context.shown, messages: context.messages, most, n: context.compressions })}</p>
      {tokens !== undefined && <p className="faint numbers">{t('org.context.tokens', { n: number(tokens) })}</p>}
    </Part>
  )
}

/** The turns of an agent's own conversation that were read, the newest first. */
function turnsOf(state: State, agent: string): Turn[] {
  return [...state.turns.values()].filter((turn) => turn.thread === agent).sort((a, b) => b.id - a.id)
}

function newestTurn(state: State, agent: string): number | undefined {
  return turnsOf(state, agent)[0]?.id
}

/** The last reply that a model gave in an agent's own conversation. */
function lastReply(state: State, agent: string): Reply | undefined {
  for (const turn of turnsOf(state, agent)) {
    for (const id of turn.effects.toReversed()) {
      const outcome = state.effects.get(id)?.outcome
      if (typeof outcome === 'object' && 'reply' in outcome) return outcome.reply
    }
  }
  return undefined
}

function models(role: Role | undefined, usual: string): string {
  const own = role?.model
  if (own) return (Array.isArray(own) ? own : [own]).join(', ')
  return usual ? t('org.model.default', { name: usual }) : ''
}

/** The tools of an agent: its role's, or those of the nearest above whose role names some. */
function Tools({ state, agent }: { state: State; agent: Agent }) {
  const all = useTools()
  let holder: Agent | undefined = agent
  while (holder && !state.roles.get(holder.role)?.tools) holder = holder.parent ? state.agents.get(holder.parent) : undefined
  const patterns = holder && state.roles.get(holder.role)?.tools
  const fits = (name: string) => !patterns || patterns.some((pattern) => pattern === name || (pattern.includes('*') && new RegExp(`^${pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`).test(name)))
  const known = (all?.tools ?? []).map((tool) => tool.name).filter(fits)
  const names = known.length > 0 ? known : (patterns ?? [])
  return (
    <Part title={t('org.tools')} n={names.length}>
      {holder !== agent && <p className="faint">{holder ? t('org.all_tools', { name: holder.id }) : t('org.every_tool')}</p>}
      <ul className="chips">
        {names.map((tool) => (
          <li key={tool} className="mono">{tool}</li>
        ))}
      </ul>
    </Part>
  )
}

function Turns({ state, agent }: { state: State; agent: Agent }) {
  const turns = turnsOf(state, agent.id).slice(0, 8)
  return (
    <Part title={t('org.turns')}>
      {turns.length === 0 && <p className="faint">{t('org.no_turns')}</p>}
      <ul className="turn-list">
        {turns.map((turn) => (
          <li key={turn.id}>
            <Link href={href('trace', [turn.task.id], { turn: String(turn.id) })}>{turn.task.message.slice(0, 80) || nameOf(state, turn)}</Link>
            <Badge status={turnStatus(state, turn)} />
            {turn.settledAt && <span className="faint numbers">{duration(turn.settledAt - turn.startedAt)}</span>}
          </li>
        ))}
      </ul>
    </Part>
  )
}
