// A plan that waits for a word: its todos can be put in another order, changed, left out and added to.

import { t } from '../../i18n'
import type { JsonObject } from '../../types'
import { Icon } from '../../ui/Icon'

export function PlanEditor({ todos, onChange }: { todos: JsonObject[]; onChange: (todos: JsonObject[]) => void }) {
  const text = (todo: JsonObject) => String(todo.title || todo.description || '')
  const put = (place: number, words: string) => onChange(todos.map((todo, at) => (at === place ? { ...todo, title: words, description: words } : todo)))
  const move = (place: number, step: number) => {
    const next = [...todos]
    const [one] = next.splice(place, 1)
    if (one) next.splice(place + step, 0, one)
    onChange(next.map((todo, at) => ({ ...todo, priority: at + 1 })))
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
    onChange([...todos, { id: `task-${n}`, title: '', description: '', priority: n, dependencies: [], status: 'pending' }])
  }
  return (
    <div className="plan-editor">
      <ol>
        {todos.map((todo, place) => (
          <li key={String(todo.id)}>
            <span className="numbers faint">{place + 1}</span>
            <input type="text" value={text(todo)} aria-label={t('plan.todo', { n: place + 1 })} onChange={(event) => put(place, event.target.value)} />
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
