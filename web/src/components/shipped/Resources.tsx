// Things of the world: one, a list of them, and a task.

import type { ReactNode } from 'react'
import { t } from '../../i18n'
import { Badge } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { act } from '../actions'
import type { ComponentProps } from '../contract'
import { STATUS } from './Todos'

export interface Resource {
  id: string
  name?: string
  kind?: string
  type?: string
  description?: string
  url?: string
  status?: string
}

/** A link only where it leads to a page or a mailbox. */
export function safeUrl(url: string | undefined): string | undefined {
  return url && /^(?:https?|mailto):/i.test(url) ? url : undefined
}

function Rows({ rows }: { rows: [string, ReactNode][] }) {
  const given = rows.filter(([, value]) => value !== undefined && value !== '')
  if (given.length === 0) return null
  return (
    <dl className="facts">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A status that the page knows in its own words, any other in those that were given. */
function State({ status }: { status: string | undefined }) {
  if (!status) return null
  const known = STATUS[status === 'running' ? 'executing' : status === 'done' ? 'completed' : status]
  return known ? <Badge status={known} /> : <span className="badge">{status}</span>
}

export function ResourceInfo({ props }: ComponentProps<Resource & { resource?: Resource }>) {
  const { id, name, kind, type, description, url, status } = props.resource ?? props
  const to = safeUrl(url)
  return (
    <section className="component-card">
      <header>
        <p className="card-title">
          <Icon name="file" size={15} /> {name || id}
        </p>
        <State status={status} />
      </header>
      {description && <p>{description}</p>}
      <Rows
        rows={[
          [t('component.id'), <code>{id}</code>],
          [t('component.kind'), kind ?? type],
          [t('component.link'), to && <a href={to} target="_blank" rel="noopener noreferrer" title={to}>{to}</a>],
        ]}
      />
    </section>
  )
}

export function ResourceList({ props: { resources = [], onClick } }: ComponentProps<{ resources?: Resource[]; onClick?: string }>) {
  return (
    <ul className="resources component-card">
      {resources.map((resource) => {
        const words = (
          <>
            <Icon name="file" size={15} />
            <span>{resource.name || resource.id}</span>
            {resource.description && <span className="faint">{resource.description}</span>}
          </>
        )
        return <li key={resource.id}>{onClick ? <button type="button" className="link" onClick={() => act(onClick, resource)}>{words}</button> : words}</li>
      })}
      {resources.length === 0 && <li className="faint">{t('component.nothing')}</li>}
    </ul>
  )
}

interface TaskProps {
  id?: string
  name?: string
  description?: string
  status?: string
  assignee?: string
  due?: string
  progress?: number
}

export function TaskInfo({ props: { id, name, description, status, assignee, due, progress } }: ComponentProps<TaskProps>) {
  return (
    <section className="component-card">
      <header>
        <p className="card-title">{name || id || t('component.task')}</p>
        <State status={status} />
      </header>
      {description && <p>{description}</p>}
      {progress !== undefined && <progress max={1} value={Math.max(0, Math.min(1, progress))} aria-label={t('component.progress')} />}
      <Rows
        rows={[
          [t('component.assignee'), assignee],
          [t('component.due'), due],
        ]}
      />
    </section>
  )
}
