// A form for an object, made from its JSON schema; what the schema does not describe is edited as JSON.

import { useId } from 'react'
import { t } from '../../i18n'
import type { Json, JsonObject } from '../../types'

interface Props {
  schema: JsonObject | undefined
  value: JsonObject
  onChange: (value: JsonObject) => void
}

export function Fields({ schema, value, onChange }: Props) {
  const described = (schema?.properties ?? {}) as { [name: string]: JsonObject }
  const needed = (schema?.required ?? []) as string[]
  const first = needed.filter((name) => name in described)
  const names = [...new Set([...first, ...Object.keys(value), ...Object.keys(described)])]
  const set = (name: string, next: Json | undefined) => {
    const changed = { ...value }
    if (next === undefined) delete changed[name]
    else changed[name] = next
    onChange(changed)
  }
  return (
    <div className="fields">
      {names.map((name) => (
        <Field key={name} name={name} schema={described[name] ?? {}} isNeeded={needed.includes(name)} value={value[name]} onChange={(next) => set(name, next)} />
      ))}
    </div>
  )
}

interface FieldProps {
  name: string
  schema: JsonObject
  isNeeded: boolean
  value: Json | undefined
  onChange: (value: Json | undefined) => void
}

/** The values that a field may have, where they are named. */
function choices(schema: JsonObject): { value: string; title: string }[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => ({ value: String(one), title: String(one) }))
  const titled = (schema.oneOf ?? schema.anyOf) as JsonObject[] | undefined
  return titled?.every((one) => typeof one.const === 'string') ? titled.map((one) => ({ value: String(one.const), title: String(one.title ?? one.const) })) : undefined
}

function Field({ name, schema, isNeeded, value, onChange }: FieldProps) {
  const id = useId()
  const title = typeof schema.title === 'string' ? schema.title : name
  const hint = typeof schema.description === 'string' ? schema.description : undefined
  const options = choices(schema)
  const kind = schema.type
  const common = { id, 'aria-describedby': hint ? `${id}-hint` : undefined }
  const text = typeof value === 'string' ? value : ''
  let input: React.ReactNode
  if (options) {
    input = (
      <select {...common} value={text} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">{'—'}</option>
        {options.map((one) => (
          <option key={one.value} value={one.value}>{one.title}</option>
        ))}
      </select>
    )
  } else if (kind === 'boolean' || typeof value === 'boolean') {
    input = <input {...common} type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />
  } else if (kind === 'integer' || kind === 'number' || typeof value === 'number') {
    input = <input {...common} type="number" step={kind === 'integer' ? 1 : 'any'} value={typeof value === 'number' ? value : ''} onChange={(event) => onChange(event.target.value === '' ? undefined : Number(event.target.value))} />
  } else if (typeof value === 'string' || (value === undefined && (kind === 'string' || kind === undefined))) {
    const rows = Math.min(12, text.split('\n').length)
    input =
      rows > 1 || text.length > 70 ? (
        <textarea {...common} rows={Math.max(3, rows)} value={text} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...common} type="text" value={text} onChange={(event) => onChange(event.target.value === '' && !isNeeded ? undefined : event.target.value)} />
      )
  } else input = <Raw id={id} value={value} onChange={onChange} />
  return (
    <div className="field">
      <label htmlFor={id}>
        {title}
        {!isNeeded && <span className="faint"> {t('form.optional')}</span>}
      </label>
      {input}
      {hint && <p className="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  )
}

/** A value as JSON text. What cannot be read changes nothing. */
export function Raw({ id, value, onChange, label }: { id?: string; value: Json | undefined; onChange: (value: Json | undefined) => void; label?: string }) {
  const text = value === undefined ? '' : JSON.stringify(value, null, 2)
  const change = (event: React.ChangeEvent<HTMLTextAreaElement>) => {
    const area = event.target
    try {
      onChange(area.value.trim() ? (JSON.parse(area.value) as Json) : undefined)
      area.setCustomValidity('')
      area.removeAttribute('aria-invalid')
    } catch {
      area.setCustomValidity(t('form.bad'))
      area.setAttribute('aria-invalid', 'true')
    }
  }
  return <textarea id={id} aria-label={label} className="mono raw" defaultValue={text} rows={Math.min(16, text.split('\n').length + 1)} onChange={change} spellCheck={false} />
}
