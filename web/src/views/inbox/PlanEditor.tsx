// A plan that waits for a word: its todos can be put in another order, changed, left out and added to.

import { useState } from 'react'
import { t } from '../../i18n'
import type { JsonObject } from '../../types'
import { Icon } from '../../ui/Icon'

/** What a todo is called: its title, or its description where it has none. */
export function todoText(todo: JsonObject): string {
  return String(todo.title ?? todo.description ?? '')
}

export function PlanEditor({ todos, onChange }: { todos: JsonObject[]; onChange: (todos: JsonObject[]) => void }) {
  const text = todoText
  const [added, setAdded] = useState('')
  const put = (place: number, more: JsonObject) => onChange(todos.map((todo, at) => (at === place ? { ...todo, ...more } : todo)))
  /** Whether there is more to say about a todo than its title. */
  const hasDetails = (todo: JsonObject) => Boolean(todo.description) && todo.description !== text(todo)
  const rename = (place: number, todo: JsonObject, title: string) => put(place, detailed.has(String(todo.id)) ? { title } : { title, description: title })
  const [detailed] = useState(() => new Set(todos.filter(hasDetails).map((todo) => String(todo.id))))
  const move = (place: number, step: number) => {
    const next = [...todos]
    const [one] = next.splice(place, 1)
    if (one) next.splice(place + step, 0, one)
    // The person's order counts: nothing waits for what now comes after it.
    const after = (at: number) => next.slice(at).map((todo) => todo.id)
    const waitsFor = (todo: JsonObject, at: number) => ((todo.dependencies ?? []) as string[]).filter((id) => !after(at).includes(id))
    onChange(next.map((todo, at) => ({ ...todo, priority: at + 1, dependencies: waitsFor(todo, at) })))
  }
  const drop = (place: number) => {
    const gone = todos[place]?.id
    onChange(
      todos.filter((_, at) => at !== place).map((todo) => ({ ...todo, dependencies: ((todo.dependencies ?? []) as string[]).filter((id) => id !== gone) })),
    )
  }
  const add = () => {
    const taken = new Set(todos.map((todo) => todo.id))
    let n = todos.length + 1
    while (taken.has(`task-${n}`)) n += 1
    setAdded(`task-${n}`)
    onChange([...todos, { id: `task-${n}`, title: '', description: '', priority: n, dependencies: [], status: 'pending' }])
  }
  return (
    <div className="plan-editor">
      <ol>
        {todos.map((todo, place) => (
          <li key={String(todo.id)}>
            <span className="numbers faint">{place + 1}</span>
            <input type="text" value={text(todo)} autoFocus={todo.id === added} aria-invalid={text(todo).trim() ? undefined : true} aria-label={t('plan.todo', { n: place + 1 })} onChange={(event) => rename(place, todo, event.target.value)} />
            {detailed.has(String(todo.id)) && (
              <textarea rows={1} value={String(todo.description ?? '')} aria-label={t('plan.details', { n: place + 1 })} onChange={(event) => put(place, { description: event.target.value })} />
            )}
            <button type="button" className="quiet small" disabled={place === 0} onClick={() => move(place, -1)} aria-label={t('plan.up', { n: place + 1 })}>
              <Icon name="up" size={15} />
            </button>
            <button type="button" className="quiet small" disabled={place === todos.length - 1} onClick={() => move(place, 1)} aria-label={t('plan.down', { n: place + 1 })}>
              <Icon name="down" size={15} />
            </button>
            <button type="button" className="quiet small" onClick={() => drop(place)} aria-label={t('plan.drop', { n: place + 1 })}>
              <Icon name="trash" size={15} />
            </button>
          </li>
        ))}
      </ol>
      <button type="button" className="small" onClick={add}>
        <Icon name="plus" size={14} />
        {t('plan.add')}
      </button>
    </div>
  )
}
