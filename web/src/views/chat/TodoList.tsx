// A plan as a list: an icon and a word for each state.

import { type Key, t } from '../../i18n'
import type { Step } from '../../types'
import { type Status, StatusIcon } from '../../ui/Badge'

const STATES: Record<Step['status'], Status> = {
  pending: 'pending',
  in_progress: 'running',
  executing: 'running',
  completed: 'done',
  failed: 'failed',
  skipped: 'skipped',
}

export const stateOf = (step: Step): Status => STATES[step.status] ?? 'pending'

export function TodoList({ steps, isGrowing = false }: { steps: Step[]; isGrowing?: boolean }) {
  return (
    <ol className="todos">
      {steps.map((step, place) => {
        const state = stateOf(step)
        return (
          <li key={step.id ?? place} className={`todo ${state}`}>
            <StatusIcon status={state} size={16} />
            <span className="todo-text">{step.text}</span>
            <span className="todo-state">{t(`status.${state}` as Key)}</span>
          </li>
        )
      })}
      {isGrowing && (
        <li className="todo growing" aria-hidden="true">
          <span className="cursor" />
        </li>
      )}
    </ol>
  )
}
