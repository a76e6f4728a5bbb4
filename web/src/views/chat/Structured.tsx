// What the roles of a workflow answer, shown as what it means. It grows while it is written.

import { ComponentRenderer } from '../../components/ComponentRenderer'
import { t } from '../../i18n'
import { parsePartialJson } from '../../json/partial'
import type { Json, JsonObject, Step } from '../../types'
import { Icon } from '../../ui/Icon'
import { Markdown } from '../../ui/Markdown'
import { TodoList } from './TodoList'

/** Whether a text is meant for programs. */
export const isStructured = (text: string): boolean => /^\s*(?:```(?:json)?\s*)?\{/.test(text)

export function StructuredText({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const { data } = parsePartialJson<JsonObject>(text)
  return data && typeof data === 'object' ? <Structured data={data} isGrowing={isGrowing} /> : null
}

/** A component by its name where one is named; else what is known of such answers. */
export function Structured({ data, isGrowing = false }: { data: JsonObject; isGrowing?: boolean }) {
  const { component, type: _, props, ...rest } = data
  if (typeof component !== 'string') return <Plain data={data} isGrowing={isGrowing} />
  return <ComponentRenderer component={component} props={(props as JsonObject | undefined) ?? rest} isGrowing={isGrowing} />
}

function Plain({ data, isGrowing }: { data: JsonObject; isGrowing: boolean }) {
  const props = (data.props as JsonObject | undefined) ?? data
  const text = (key: string) => (typeof props[key] === 'string' ? (props[key] as string) : '')
  const list = (key: string) => (Array.isArray(props[key]) ? (props[key] as Json[]).filter(Boolean) : [])
  const steps = list('todos').map((todo) => {
    const { id, title, description, status } = todo as { id?: string; title?: string; description?: string; status?: Step['status'] }
    return { text: title || description || id || '', status: status ?? 'pending', ...(id && { id }) } satisfies Step
  })
  const judged = list('tasks') as { id?: string; completed?: boolean; feedback?: string }[]
  return (
    <div className="structured">
      {text('overallFeedback') && <Markdown text={text('overallFeedback')} />}
      {text('summary') && <Markdown text={text('summary')} isGrowing={isGrowing && steps.length === 0} />}
      {steps.some((step) => step.text) && <TodoList steps={steps} isGrowing={isGrowing} />}
      {judged.length > 0 && (
        <ul className="judged">
          {judged.map((task, place) => (
            <li key={task.id ?? place}>
              <span className={task.completed ? 'status-icon done' : 'status-icon failed'}>
                <Icon name={task.completed ? 'check' : 'cross'} size={15} />
              </span>
              <span className="unseen">{t(task.completed ? 'status.done' : 'status.failed')}</span>
              <span>{task.feedback}</span>
            </li>
          ))}
        </ul>
      )}
      {list('improvements').length > 0 && (
        <ul className="improvements">
          {list('improvements').map((one, place) => (
            <li key={place}>{String(one)}</li>
          ))}
        </ul>
      )}
    </div>
  )
}
