// The choice of a model, of a strategy and of an effort. Models are loaded when the field gets the focus.

import { useId, useState } from 'react'
import { t } from '../../i18n'
import { useLog } from '../../store/store'
import { useModels } from '../settings/FirstRun'
import { EFFORTS, STRATEGIES, type Effort, type Strategy } from './actions'

/** A model's name; those that are known are offered, others can be written. */
export function ModelPick({ value, onChange, onBlur }: { value: string; onChange: (model: string) => void; onBlur?: () => void }) {
  const id = useId()
  const { conversations } = useLog()
  const [isNear, setNear] = useState(false)
  const models = useModels(isNear)
  const used = [...conversations.values()].flatMap(({ model }) => model ?? [])
  const vendors = models?.vendors.filter((one) => one.ready && one.answers !== false).map((one) => `${one.name}/`) ?? []
  return (
    <label className="pick">
      <span>{t('composer.model')}</span>
      <input list={id} value={value} placeholder={models?.default ?? t('composer.model.usual')} onChange={(event) => onChange(event.target.value)} onBlur={onBlur} onFocus={() => setNear(true)} onPointerEnter={() => setNear(true)} spellCheck={false} autoComplete="off" />
      <datalist id={id}>
        {[...new Set([...(models ? [models.default] : []), ...used, ...vendors])].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  )
}

export function StrategyPick({ value, onChange }: { value: Strategy; onChange: (strategy: Strategy) => void }) {
  return (
    <label className="pick">
      <span>{t('composer.strategy')}</span>
      <select value={value} onChange={(event) => onChange(event.target.value as Strategy)}>
        {STRATEGIES.map((one) => (
          <option key={one} value={one}>{t(`strategy.${one}`)}</option>
        ))}
      </select>
    </label>
  )
}

/** How much the model reasons; nothing for what its role says. */
export function EffortPick({ value, onChange }: { value?: Effort; onChange: (effort?: Effort) => void }) {
  return (
    <label className="pick">
      <span>{t('composer.effort')}</span>
      <select value={value ?? ''} onChange={(event) => onChange((event.target.value || undefined) as Effort | undefined)}>
        <option value="">{t('effort.usual')}</option>
        {EFFORTS.map((one) => (
          <option key={one} value={one}>{t(`effort.${one}`)}</option>
        ))}
      </select>
    </label>
  )
}

/** The sampling temperature; nothing for the vendor's own. */
export function TemperaturePick({ value, onChange }: { value?: number; onChange: (temperature?: number) => void }) {
  const [written, setWritten] = useState(value?.toString() ?? '')
  const keep = () => {
    const number = written.trim() === '' ? undefined : Number(written)
    if (number !== value && !Number.isNaN(number)) onChange(number)
  }
  return (
    <label className="pick">
      <span>{t('composer.temperature')}</span>
      <input type="number" min={0} max={2} step={0.1} value={written} placeholder={t('effort.usual')} onChange={(event) => setWritten(event.target.value)} onBlur={keep} />
    </label>
  )
}
