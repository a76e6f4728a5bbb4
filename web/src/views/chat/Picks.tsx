// The choice of a model and of a strategy. Models are loaded when the field gets the focus.

import { useId, useState } from 'react'
import { t } from '../../i18n'
import { useLog } from '../../store/store'
import { useModels } from '../settings/FirstRun'
import { STRATEGIES, type Strategy } from './actions'

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
