// A form for an object, made from its JSON schema; what the schema does not describe is edited as JSON.

import { useEffect, useId, useState } from 'react'
import { t } from '../../i18n'
import { faultOf } from '../../json/fault'
import type { Json, JsonObject } from '../../types'

interface Props {
  schema: JsonObject | undefined
  value: JsonObject
  onChange: (value: JsonObject) => void
  /** What cannot be read stands in no value: told with the name of its field, and with nothing when it can be read again. */
  onTrouble: (name: string, what?: string) => void
}

export function Fields({ schema, value, onChange, onTrouble }: Props) {
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
        <Field key={name} name={name} schema={described[name] ?? {}} isNeeded={needed.includes(name)} value={value[name]} onChange={(next) => set(name, next)} onTrouble={(what) => onTrouble(name, what)} />
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
  onTrouble: (what?: string) => void
}

/** The values that a field may have, where they are named. */
function choices(schema: JsonObject): { value: string; title: string }[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => ({ value: String(one), title: String(one) }))
  const titled = (schema.oneOf ?? schema.anyOf) as JsonObject[] | undefined
  return titled?.every((one) => typeof one.const === 'string') ? titled.map((one) => ({ value: String(one.const), title: String(one.title ?? one.const) })) : undefined
}

function Field({ name, schema, isNeeded, value, onChange, onTrouble }: FieldProps) {
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
    input = <NumberField {...common} isWhole={kind === 'integer'} value={value} onChange={onChange} onTrouble={onTrouble} />
  } else if (typeof value === 'string' || (value === undefined && (kind === 'string' || kind === undefined))) {
    const rows = Math.min(12, text.split('\n').length)
    input =
      rows > 1 || text.length > 70 ? (
        <textarea {...common} rows={Math.max(3, rows)} value={text} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...common} type="text" value={text} onChange={(event) => onChange(event.target.value === '' && !isNeeded ? undefined : event.target.value)} />
      )
  } else input = <Raw id={id} value={value} onChange={onChange} onTrouble={onTrouble} />
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

/** A number as it is typed: half of one is none. */
function NumberField({ isWhole, value, onChange, onTrouble, ...rest }: { id: string; 'aria-describedby': string | undefined; isWhole: boolean; value: Json | undefined; onChange: FieldProps['onChange']; onTrouble: FieldProps['onTrouble'] }) {
  const [trouble, setTrouble] = useState('')
  useEffect(() => () => onTrouble(), [])
  const tell = (what: string) => {
    setTrouble(what)
    onTrouble(what || undefined)
  }
  return (
    <>
      <input
        {...rest}
        type="number"
        step={isWhole ? 1 : 'any'}
        aria-invalid={trouble ? true : undefined}
        defaultValue={typeof value === 'number' ? value : ''}
        onChange={({ target }) => {
          const { badInput, stepMismatch } = target.validity
          tell(badInput || stepMismatch ? t(isWhole ? 'form.bad.whole' : 'form.bad.number') : '')
          if (!badInput && !stepMismatch) onChange(target.value === '' ? undefined : Number(target.value))
        }}
      />
      {trouble && <p className="bad form-bad">{trouble}</p>}
    </>
  )
}

/** Where a text stops being JSON, in words. */
function whyNotJson(text: string): string {
  const before = text.slice(0, faultOf(text) ?? text.length).split('\n')
  return t('form.bad.at', { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 })
}

interface RawProps {
  id?: string
  value: Json | undefined
  onChange: (value: Json | undefined) => void
  onTrouble: (what?: string) => void
  label?: string
  /** Whether only an object will do. */
  isObject?: boolean
}

/** A value as JSON text. What cannot be read is said, and nothing can be done with it meanwhile. */
export function Raw({ id, value, onChange, onTrouble, label, isObject = false }: RawProps) {
  const own = useId()
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)))
  const [trouble, setTrouble] = useState('')
  // With the field its trouble is gone.
  useEffect(() => () => onTrouble(), [])
  const tell = (what: string) => {
    setTrouble(what)
    onTrouble(what || undefined)
  }
  const change = (next: string) => {
    setText(next)
    let read: Json | undefined
    try {
      read = next.trim() ? (JSON.parse(next) as Json) : undefined
    } catch {
      return tell(whyNotJson(next))
    }
    if (isObject && (read === null || typeof read !== 'object' || Array.isArray(read))) return tell(t('form.bad.object'))
    tell('')
    onChange(read)
  }
  return (
    <>
      <textarea
        id={id}
        aria-label={label}
        aria-invalid={trouble ? true : undefined}
        aria-describedby={trouble ? own : undefined}
        className="mono raw"
        value={text}
        rows={Math.min(16, text.split('\n').length + 1)}
        onChange={(event) => change(event.target.value)}
        spellCheck={false}
      />
      {trouble && <p className="bad form-bad" id={own} role="alert">{trouble}</p>}
    </>
  )
}
