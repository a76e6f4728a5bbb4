// The plan of what is under way, pinned above the conversation: how far, at what, for how long. It opens to the whole list.

import { useState } from 'react'
import { t } from '../../i18n'
import { planOf } from '../../store/derive'
import type { Turn } from '../../store/state'
import { store, useStore } from '../../store/store'
import { Icon } from '../../ui/Icon'
import { duration } from '../../ui/format'
import { useNow } from '../../ui/useNow'
import { TodoList, stateOf } from './TodoList'

export function PlanBar({ turn }: { turn: Turn }) {
  useStore((state) => state.rev)
  const isRunning = turn.settledAt === undefined
  const [choice, setOpen] = useState<boolean>()
  // While the plan waits for a word it stands in that decision, to be changed.
  const isAsked = useStore((state) => [...state.waiting.values()].some(({ task, what }) => task === turn.task.id && what.kind === 'approval' && !what.call))
  const isOpen = choice ?? (isRunning && !isAsked)
  const now = useNow(isRunning)
  const plan = planOf(store.state, turn)
  if (!plan || plan.steps.length === 0) return null
  const done = plan.steps.filter((step) => stateOf(step) === 'done').length
  const current = plan.steps.find((step) => stateOf(step) === 'running')
  const elapsed = duration((turn.settledAt ?? now) - turn.startedAt)
  return (
    <section className="plan-bar" aria-label={t('plan.title')}>
      <button type="button" className="plan-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="plan" size={17} />
        <span className="plan-count numbers">{t('plan.progress', { done, all: plan.steps.length })}</span>
        <span className="plan-now">{plan.isGrowing ? t('plan.growing') : (current?.text ?? '')}</span>
        <span className="numbers faint">{elapsed}</span>
        <Icon name={isOpen ? 'up' : 'down'} size={15} />
      </button>
      <div className="plan-meter" aria-hidden="true">
        <span style={{ width: `${(100 * done) / plan.steps.length}%` }} />
      </div>
      {isOpen && <TodoList steps={plan.steps} isGrowing={plan.isGrowing} />}
    </section>
  )
}
