// A list of todos: what is done, what is at work, what is left.

import { t } from '../../i18n'
import { StatusIcon, type Status } from '../../ui/Badge'
import { plainText } from '../../ui/format'
import { act } from '../actions'

export interface Todo {
  id: string
  title?: string
  description?: string
  status?: string
  priority?: number
  dependencies?: string[]
  result?: string
}

/** What the words of a status mean. */
export const STATUS: Record<string, Status> = {
  pending: 'pending',
  in_progress: 'running',
  executing: 'running',
  completed: 'done',
  failed: 'failed',
  skipped: 'skipped',
}

export function Todos({ todos, onClick, isGrowing }: { todos: Todo[]; onClick?: string | undefined; isGrowing?: boolean | undefined }) {
  return (
    <ol className="component-todos">
      {todos.map((todo, place) => {
        const status = STATUS[todo.status ?? 'pending'] ?? 'pending'
        const words = (
          <>
            <span className="component-todo-text">{todo.title || todo.description || todo.id}</span>
            <span className="unseen">{t(`status.${status}`)}</span>
          </>
        )
        return (
          <li key={todo.id ?? place} className={`component-todo ${status}`}>
            <StatusIcon status={status} size={15} />
            <div className="component-todo-body">
              {onClick ? (
                <button type="button" className="link" onClick={() => act(onClick, todo)}>{words}</button>
              ) : (
                words
              )}
              {todo.dependencies && todo.dependencies.length > 0 && <span className="faint todo-after">{t('component.after', { ids: todo.dependencies.join(', ') })}</span>}
              {todo.result && <p className="todo-result faint">{plainText(todo.result)}</p>}
            </div>
          </li>
        )
      })}
      {isGrowing && (
        <li className="component-todo">
          <span className="ai-cursor" aria-hidden="true" />
        </li>
      )}
    </ol>
  )
}
