// Decides several calls that wait, all in the same way. Questions, budgets, what is in doubt and calls that need caution are decided
// one by one.

import { useEffect, useState } from 'react'
import { post } from '../../api'
import { usePage } from '../../components/page'
import { t } from '../../i18n'
import type { Waiting } from '../../store/state'
import { Icon } from '../../ui/Icon'
import { alarm, announce } from '../../ui/announce'
import { complain } from '../chat/actions'
import { look } from './others'
import { decideEach, together } from './together'

/** So long other calls must have been there before they can be decided. */
const SEEN_MS = 1000

interface Props {
  all: readonly Waiting[]
  /** Those that a person is changing: what is shown would not be what is sent. */
  edited: ReadonlySet<string>
}

export function DecideAll({ all, edited }: Props) {
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const page = usePage()
  const mayDecide = page?.approvers.length === 0 && page.scopes.includes('approve')
  const calls = mayDecide ? together(all) : []
  const ids = calls.map(({ id }) => id).join()
  const [seen, setSeen] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSeen(ids), SEEN_MS)
    return () => clearTimeout(timer)
  }, [ids])
  if (calls.length < 2) return trouble ? <span className="decide-all"><span className="bad" role="alert">{trouble}</span></span> : null
  const decide = async (approved: boolean) => {
    setBusy(true)
    setTrouble('')
    const left = await decideEach(calls, (id) => post(`/api/approvals/${encodeURIComponent(id)}`, { approved }))
    if (left.length < calls.length) announce(t('approval.sent'))
    if (calls.some(({ person }) => person !== undefined)) await look()
    if (left.length > 0) {
      const tools = left.map(({ waiting: { what } }) => ('call' in what && what.call?.tool) || what.kind).join(', ')
      const text = `${t('approval.all.left', { tools })} ${complain(left[0]?.error)}`
      alarm(text)
      setTrouble(text)
    }
    setBusy(false)
  }
  const isOff = isBusy || seen !== ids || calls.some(({ id }) => edited.has(id))
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
