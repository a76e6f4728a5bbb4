// A state as a word with an icon.

import { type Key, t } from '../i18n'
import { Icon, type IconName } from './Icon'

const LOOKS = {
  idle: 'ring',
  running: 'half',
  waiting: 'clock',
  queued: 'clock',
  needs_you: 'alert',
  done: 'check',
  partial: 'alert',
  failed: 'cross',
  cancelled: 'stop',
  parked: 'alert',
  in_doubt: 'question',
  gone: 'skip',
  pending: 'ring',
  skipped: 'skip',
} as const satisfies Record<string, IconName>

export type Status = keyof typeof LOOKS

export function StatusIcon({ status, size = 14 }: { status: Status; size?: number }) {
  return (
    <span className={`status-icon ${status}${status === 'running' ? ' spin' : ''}`}>
      <Icon name={LOOKS[status]} size={size} />
    </span>
  )
}

/** With `n`, how many are in that state; with `why`, the reason for it. */
export function Badge({ status, n, why }: { status: Status; n?: number; why?: string }) {
  return (
    <span className={`badge ${status}`} title={why}>
      <StatusIcon status={status} size={13} />
      {n !== undefined && <span className="numbers">{n}</span>}
      {t(`status.${status}` as Key)}
    </span>
  )
}
