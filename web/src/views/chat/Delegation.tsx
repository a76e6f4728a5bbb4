// One live line for work that was given to somebody else. It opens in place, to any depth; with Shift it opens beside.

import { memo, useState } from 'react'
import { count, t } from '../../i18n'
import { go, href, usePlace } from '../../router'
import { addressOf, agentName, lineage, nameOf, openEffects, turnStatus, unitName } from '../../store/derive'
import type { EffectState, Turn } from '../../store/state'
import { store, useEffectState, useRecord, useView } from '../../store/store'
import { StatusIcon } from '../../ui/Badge'
import { Copy } from '../../ui/Copy'
import { Icon } from '../../ui/Icon'
import { duration, money, number } from '../../ui/format'
import { useNow } from '../../ui/useNow'
import { complain, stopTurn } from './actions'
import { Timeline } from './Timeline'

/** What somebody is at just now, from the deepest open step. */
function doing(turn: Turn): string {
  const open = openEffects(store.state, turn).at(-1)
  if (!open) return ''
  if ('tool' in open.effect) return open.effect.tool.tool
  const child = store.state.turns.get(open.children.at(-1) ?? -1)
  if (child) return `${nameOf(store.state, child)} ${doing(child)}`.trim()
  if ('model' in open.effect) return open.live?.text ? t('doing.writing') : t('doing.thinking')
  return ''
}

function whoAndWhat(effect: EffectState): { who: string; what: string; thread: string } {
  const kind = effect.effect
  if ('unit' in kind) return { who: unitName(kind.unit.behaviour), what: kind.unit.task.message, thread: kind.unit.thread }
  if ('ask' in kind) return { who: kind.ask.envelope.to, what: kind.ask.envelope.payload.text, thread: kind.ask.envelope.to }
  return { who: '', what: '', thread: '' }
}

export const Delegation = memo(function Delegation({ id, depth }: { id: string; depth: number }) {
  const effect = useEffectState(id)
  const turnId = effect?.children.at(-1)
  const turn = useRecord((state) => state.turns.get(turnId ?? -1))
  useRecord((state) => state.threads.get(turn?.thread ?? ''))
  const place = usePlace()
  const [isOpen, setOpen] = useState(false)
  const isRunning = effect?.stage === 'open'
  useView(isOpen && turn?.brief ? `turn/${turn.id}` : undefined, 'turn')
  const now = useNow(isRunning)
  if (!effect) return null
  const { who, what, thread } = whoAndWhat(effect)
  const caller = store.state.turns.get(effect.turn)
  const status = turn ? turnStatus(store.state, turn) : isRunning ? 'queued' : effect.stage === 'void' ? 'cancelled' : 'done'
  const facts: string[] = []
  if (turn && turn.tools > 0) facts.push(count('turn.tools', turn.tools))
  facts.push(duration((effect.endedAt ?? now) - effect.startedAt))
  if (turn && turn.spent.tokens > 0) facts.push(t('unit.tokens', { n: number(turn.spent.tokens) }))
  if (turn && turn.spent.costNanos > 0) facts.push(money(turn.spent.costNanos))
  const beside = () => go(href(place.view, place.rest, { thread, ...(turn && { turn: String(turn.id) }) }))
  const toggle = (event: React.MouseEvent) => (event.shiftKey ? beside() : setOpen(!isOpen))
  return (
    <div className={`delegation ${status}`}>
      <button type="button" className="delegation-line" aria-expanded={isOpen} onClick={toggle}>
        <Icon name={isOpen ? 'down' : 'right'} size={14} />
        <StatusIcon status={status} size={15} />
        <span className="line-who">
          {caller && depth === 0 && <span className="caller">{nameOf(store.state, caller)}</span>}
          {caller && depth === 0 && <Icon name="arrow" size={13} />}
          <strong>{who}</strong>
        </span>
        <span className="what">{isRunning && turn ? doing(turn) || what : what}</span>
        <span className="line-facts numbers">{facts.join(' · ')}</span>
      </button>
      {isOpen && (
        <div className="below">
          <div className="below-head">
            <Path thread={thread} />
            <span className="below-tools">
              <button type="button" className="quiet small" onClick={beside} title={t('delegation.beside')} aria-label={t('delegation.beside')}>
                <Icon name="panel" size={15} />
              </button>
              {isRunning && turn && (
                <button type="button" className="quiet small danger" onClick={() => stopTurn(turn.task.id, turn.id).catch(complain)}>
                  <Icon name="stop" size={14} />
                  {t('delegation.stop')}
                </button>
              )}
            </span>
          </div>
          {'ask' in effect.effect && <p className="order">{what}</p>}
          <Timeline thread={thread} {...('ask' in effect.effect && { only: effect.children })} depth={depth + 1} />
        </div>
      )}
    </div>
  )
})

/** Where a thread lies: the names on the way, and its address. */
export function Path({ thread: id }: { thread: string }) {
  const thread = useRecord((state) => state.threads.get(id))
  if (!thread) return null
  // Of another agent's main thread: those that made it.
  const makers: string[] = []
  for (let agent = store.state.agents.get(lineage(store.state, thread)[0]?.agent ?? ''); agent?.parent; agent = store.state.agents.get(agent.parent)) makers.unshift(agentName(store.state, agent.parent))
  const names = lineage(store.state, thread).map((one) => {
    const turn = one.items.find((item) => item.kind === 'turn')
    const first = turn && store.state.turns.get(turn.turn)
    return one.parent && first ? nameOf(store.state, first) : agentName(store.state, one.id)
  })
  const address = addressOf(store.state, thread)
  return (
    <div className="path">
      <ol className="path-crumbs" aria-label={t('path.label')}>
        {[...makers, ...names].map((name, place) => (
          <li key={place}>{name}</li>
        ))}
      </ol>
      <span className="path-address">
        {address !== names.at(-1) && <code className="address">{address}</code>}
        <Copy text={address} label={t('path.copy')} />
      </span>
    </div>
  )
}
