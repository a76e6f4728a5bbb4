// Decides several calls that wait, all in the same way. Questions, budgets and what is in doubt are decided one by one.

import { useState } from 'react'
import { post } from '../../api'
import { usePage } from '../../components/page'
import { t } from '../../i18n'
import type { Waiting } from '../../store/state'
import { Icon } from '../../ui/Icon'
import { announce } from '../../ui/announce'
import { complain } from '../chat/actions'
import { look } from './others'

interface Props {
  all: readonly Waiting[]
  /** Those that somebody is changing: what is shown would not be what is sent. */
  edited: ReadonlySet<string>
}

export function DecideAll({ all, edited }: Props) {
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const page = usePage()
  const mayDecide = page?.approvers.length === 0 && page.scopes.includes('approve')
  const calls = all.filter(({ what }) => mayDecide && what.kind === 'approval' && what.call)
  if (calls.length < 2) return null
  const decide = async (approved: boolean) => {
    setBusy(true)
    setTrouble('')
    try {
      for (const { id } of calls) await post(`/api/approvals/${encodeURIComponent(id)}`, { approved })
      announce(t('approval.sent'))
      if (calls.some(({ person }) => person !== undefined)) await look()
    } catch (error) {
      setTrouble(complain(error))
    }
    setBusy(false)
  }
  const isOff = isBusy || calls.some(({ id }) => edited.has(id))
  return (
    <span className="decide-all">
      <button type="button" className="small" disabled={isOff} onClick={() => void decide(true)}>
        <Icon name="check" size={15} />
        {t('approval.all', { n: calls.length })}
      </button>
      <button type="button" className="small" disabled={isOff} onClick={() => void decide(false)}>
        <Icon name="cross" size={15} />
        {t('approval.all.deny', { n: calls.length })}
      </button>
      {trouble && <span className="bad" role="alert">{trouble}</span>}
    </span>
  )
}
