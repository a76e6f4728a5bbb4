// What planner, executor and verifier answer, and the answer of a whole workflow; each also while it is still being written.

import { t } from '../../i18n'
import { Badge, StatusIcon } from '../../ui/Badge'
import { Markdown } from '../../ui/Markdown'
import type { ReactNode } from 'react'
import { type Todo, Todos } from './Todos'

export interface PlannerResponse {
  summary?: string
  needsMorePlanning?: boolean
  todos?: Todo[]
}

export interface ExecutorResponse {
  summary?: string
  taskCompleted?: boolean
  shouldContinue?: boolean
  nextAction?: string
  todos?: Todo[]
}

export interface VerifierResponse {
  allCompleted?: boolean
  userNeedsSatisfied?: boolean
  overallFeedback?: string
  summary?: string
  improvements?: string[]
  tasks?: { id: string; completed?: boolean; feedback?: string; evidence?: string[] }[]
}

export interface SummaryResponse {
  summary?: string
  verified?: boolean
  missing?: string[]
}

type Growing = { isGrowing?: boolean | undefined }

function Card({ title, badge, children }: { title: string; badge?: ReactNode; children: ReactNode }) {
  return (
    <section className="component-card">
      <header>
        <p className="card-title">{title}</p>
        {badge}
      </header>
      {children}
    </section>
  )
}

export function PlannerResponseDisplay({ summary, needsMorePlanning, todos = [], isGrowing }: PlannerResponse & Growing) {
  const isWriting = isGrowing && todos.length === 0
  return (
    <Card title={t('component.plan')} badge={needsMorePlanning ? <span className="badge">{t('component.more_planning')}</span> : undefined}>
      {summary && <Markdown text={summary} isGrowing={isWriting ?? false} />}
      {(todos.length > 0 || (isGrowing && !isWriting)) && <Todos todos={todos} isGrowing={isGrowing} />}
    </Card>
  )
}

export function ExecutorResponseDisplay({ summary, taskCompleted, nextAction, todos = [], isGrowing }: ExecutorResponse & Growing) {
  const known = taskCompleted ?? (nextAction === 'complete' ? true : undefined)
  const badge = known === undefined ? undefined : <Badge status={known ? 'done' : nextAction === 'skip' ? 'skipped' : 'running'} />
  return (
    <Card title={t('component.work')} badge={badge}>
      {summary && <Markdown text={summary} isGrowing={isGrowing ?? false} />}
      {todos.length > 0 && <Todos todos={todos} />}
    </Card>
  )
}

export function VerifierResponseDisplay(props: VerifierResponse & Growing) {
  const { allCompleted, userNeedsSatisfied, overallFeedback, summary, improvements = [], tasks = [], isGrowing } = props
  const isKnown = allCompleted !== undefined && userNeedsSatisfied !== undefined
  return (
    <Card title={t('component.verdict')} badge={isKnown && <Badge status={allCompleted && userNeedsSatisfied ? 'done' : 'failed'} />}>
      {overallFeedback && <Markdown text={overallFeedback} />}
      {tasks.length > 0 && (
        <ul className="component-todos">
          {tasks.map((task) => (
            <li key={task.id} className="component-todo">
              <StatusIcon status={task.completed ? 'done' : 'failed'} size={15} />
              <span className="component-todo-text">{task.feedback || task.id}</span>
              {task.evidence && task.evidence.length > 0 && <span className="faint todo-after mono">{task.evidence.join(', ')}</span>}
            </li>
          ))}
        </ul>
      )}
      {improvements.length > 0 && (
        <>
          <p className="card-title">{t('component.improvements')}</p>
          <ul className="bullets">
            {improvements.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
      {summary && <Markdown text={summary} isGrowing={isGrowing ?? false} />}
    </Card>
  )
}

export function SummaryResponseDisplay({ summary, verified, missing = [], isGrowing }: SummaryResponse & Growing) {
  return (
    <Card title={t('component.answer')} badge={verified === undefined ? undefined : <span className={`badge ${verified ? 'done' : 'needs_you'}`}>{t(verified ? 'component.verified' : 'component.unverified')}</span>}>
      {summary && <Markdown text={summary} isGrowing={isGrowing ?? false} />}
      {missing.length > 0 && (
        <>
          <p className="card-title">{t('component.missing')}</p>
          <ul className="bullets">
            {missing.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
    </Card>
  )
}
