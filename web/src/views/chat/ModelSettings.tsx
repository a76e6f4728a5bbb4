// How models are called in a conversation: a field for each setting, the usual two first. What a field has is sent when it is left
// or chosen; an empty one is not set. A refused value stays in its field, with the reason.

import { useId, useReducer, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { Problem, post } from '../../api'
import { t } from '../../i18n'
import type { Chat } from '../../store/state'
import type { Conversation, ModelSettings } from '../../types'
import { useTools } from '../inbox/tools'
import { EFFORTS } from './actions'

type Name = keyof ModelSettings

interface How {
  settings: ModelSettings
  faults: { [name in Name]?: string }
  set: <N extends Name>(name: N, value: ModelSettings[N]) => void
  /** Tells of a value that cannot be sent. */
  refuse: (name: Name, why: string) => void
  /** Resolves when everything has been answered, to whether all of it was taken. */
  settled: () => Promise<boolean>
}

/** The settings of a conversation. A request has all of them, so each waits for the answer to the one before. */
export function useModelSettings(chat: Chat): How {
  const now = useRef<Pick<How, 'settings' | 'faults'>>({ settings: chat.settings ?? {}, faults: {} })
  const sent = useRef(Promise.resolve())
  const [, draw] = useReducer((n: number) => n + 1, 0)
  const refuse = (name: Name, why?: string) => {
    now.current.faults = { ...now.current.faults, [name]: why }
    // After `settled`, the fields that are wrong are marked.
    flushSync(draw)
  }
  const set: How['set'] = (name, value) => {
    sent.current = sent.current.then(async () => {
      try {
        if (JSON.stringify(value) !== JSON.stringify(now.current.settings[name])) {
          const { settings = {} } = await post<Conversation>(`/api/conversations/${encodeURIComponent(chat.id)}`, { settings: { ...now.current.settings, [name]: value } })
          now.current.settings = settings
        }
        refuse(name)
      } catch (error) {
        refuse(name, error instanceof Problem && error.code !== 'unreachable' ? error.message : t('chat.unreachable'))
      }
    })
  }
  const settled = async () => {
    await sent.current
    return Object.values(now.current.faults).every((fault) => fault === undefined)
  }
  return { ...now.current, set, refuse, settled }
}

/** The largest number of the server's 32 bits, and of JSON. */
const U32 = 4_294_967_295
const LIMITS = {
  temperature: { min: 0, max: 2, step: 0.1 },
  thinkingBudget: { min: 0, max: U32, step: 1 },
  topP: { min: 0, max: 1, step: 0.05 },
  maxTokens: { min: 1, max: U32, step: 1 },
  seed: { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, step: 1 },
}

export function ModelFields(how: How) {
  const { settings, set } = how
  const { effort: _, temperature: __, ...others } = settings
  const n = Object.keys(others).length
  return (
    <>
      <Choice {...how} name="effort" options={EFFORTS.map((one) => [one, t(`effort.${one}`)])} />
      <NumberField {...how} name="temperature" />
      <details>
        <summary>{n > 0 ? t('setting.more.set', { n }) : t('setting.more')}</summary>
        <div className="more-settings">
          <NumberField {...how} name="thinkingBudget" hint={t('setting.thinkingBudget.hint')} />
          <NumberField {...how} name="topP" />
          <NumberField {...how} name="maxTokens" />
          <NumberField {...how} name="seed" />
          <Stops {...how} />
          <ToolChoice {...how} />
          <Choice {...how} name="parallelCalls" options={[['true', t('setting.yes')], ['false', t('setting.no')]]} read={(text) => text === 'true'} />
          <Choice {...how} name="cache" options={(['off', 'on', 'long'] as const).map((one) => [one, t(`cache.${one}`)])} />
          <Field name="serviceTier" fault={how.faults.serviceTier} hint={t('setting.serviceTier.hint')}>
            {(common) => <input {...common} defaultValue={settings.serviceTier ?? ''} onBlur={({ target }) => set('serviceTier', target.value.trim() || undefined)} />}
          </Field>
        </div>
      </details>
    </>
  )
}

interface Common {
  'aria-invalid': true | undefined
  'aria-describedby': string | undefined
  placeholder: string
  spellCheck: false
  autoComplete: 'off'
}

/** A labelled field with a hint and what is wrong with it. */
function Field({ name, fault, hint, isList = false, children }: { name: Name; fault: string | undefined; hint?: string; isList?: boolean; children: (common: Common) => React.ReactNode }) {
  const id = useId()
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ') || undefined
  const label = <span id={`${id}-label`}>{t(`setting.${name}`)}</span>
  const input = children({ 'aria-invalid': fault ? true : undefined, 'aria-describedby': described, placeholder: t('setting.usual'), spellCheck: false, autoComplete: 'off' })
  return (
    <div className="setting">
      {isList ? <div className="pick" role="group" aria-labelledby={`${id}-label`}>{label}{input}</div> : <label className="pick">{label}{input}</label>}
      {hint && <p className="hint" id={`${id}-hint`}>{hint}</p>}
      {fault && <p className="bad form-bad" id={`${id}-fault`} role="alert">{fault}</p>}
    </div>
  )
}

/** One of several words; `read` makes the value of a word that is none. */
function Choice<N extends 'effort' | 'cache' | 'parallelCalls'>({ settings, faults, set, name, options, read = (text) => text as ModelSettings[N] }: How & { name: N; options: (readonly [word: string, text: string])[]; read?: (word: string) => ModelSettings[N] }) {
  return (
    <Field name={name} fault={faults[name]}>
      {({ 'aria-invalid': invalid, 'aria-describedby': described }) => (
        <select aria-invalid={invalid} aria-describedby={described} defaultValue={settings[name]?.toString() ?? ''} onChange={({ target }) => set(name, target.value === '' ? undefined : read(target.value))}>
          <option value="">{t('setting.usual')}</option>
          {options.map(([word, text]) => (
            <option key={word} value={word}>{text}</option>
          ))}
        </select>
      )}
    </Field>
  )
}

function NumberField({ settings, faults, set, refuse, name, hint }: How & { name: keyof typeof LIMITS; hint?: string }) {
  const { min, max, step } = LIMITS[name]
  const keep = ({ value, validity }: HTMLInputElement) => {
    const number = Number(value)
    if (validity.badInput) refuse(name, t('form.bad.number'))
    else if (step === 1 && !Number.isInteger(number)) refuse(name, t('form.bad.whole'))
    else if (value !== '' && (number < min || number > max)) refuse(name, t('setting.range', { min, max }))
    else set(name, value === '' ? undefined : number)
  }
  return (
    <Field name={name} fault={faults[name]} hint={hint}>
      {(common) => <input {...common} type="number" min={min} max={max} step={step} defaultValue={settings[name] ?? ''} onBlur={({ target }) => keep(target)} />}
    </Field>
  )
}

/** The three words, or the name of a tool. */
function ToolChoice({ settings, faults, set }: How) {
  const id = useId()
  const tools = useTools()?.tools ?? []
  return (
    <>
      <Field name="toolChoice" fault={faults.toolChoice} hint={t('setting.toolChoice.hint')}>
        {(common) => <input {...common} list={id} defaultValue={settings.toolChoice ?? ''} onBlur={({ target }) => set('toolChoice', target.value.trim() || undefined)} />}
      </Field>
      <datalist id={id}>
        {(['auto', 'none', 'required'] as const).map((one) => (
          <option key={one} value={one}>{t(`toolChoice.${one}`)}</option>
        ))}
        {tools.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

const ESCAPES: { [escaped: string]: string } = { '\\n': '\n', '\\t': '\t', '\\\\': '\\' }
/** A stop text in one line, and what such a line means. */
const shown = (stop: string) => stop.replace(/[\n\t\\]/g, (sign) => Object.keys(ESCAPES).find((escaped) => ESCAPES[escaped] === sign) ?? sign)
const meant = (line: string) => line.replace(/\\[nt\\]/g, (escaped) => ESCAPES[escaped] ?? escaped)

/** A field for each stop text, and one for a further one. */
function Stops({ settings, faults, set }: How) {
  const [lines, setLines] = useState(() => [settings.stop ?? []].flat().map(shown))
  const keep = () => {
    const stops = lines.filter((line) => line !== '').map(meant)
    const [first, second] = stops
    // The server writes a single one without a list.
    set('stop', second === undefined ? first : stops)
  }
  return (
    <Field name="stop" fault={faults.stop} hint={t('setting.stop.hint')} isList>
      {(common) => (
        <div className="stops">
          {[...lines, ''].map((line, at) => (
            <input key={at} {...common} aria-label={t('setting.stop.one', { n: at + 1 })} value={line} placeholder={at === 0 ? common.placeholder : t('setting.stop.next')} onChange={({ target }) => setLines(lines.toSpliced(at, 1, target.value))} onBlur={keep} />
          ))}
        </div>
      )}
    </Field>
  )
}
