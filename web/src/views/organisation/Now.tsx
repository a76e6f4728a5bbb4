// What an agent does just now, in a few words.

import { t } from '../../i18n'
import type { Agent, State } from '../../store/state'
import { doing } from './tree'

export function Now({ state, agent }: { state: State; agent: Agent }) {
  const now = doing(state, agent)
  return <span className="now faint">{now ? (now.kind === 'model' && !now.what ? t('org.doing.thinking') : t(`org.doing.${now.kind}`, { what: now.what })) : ''}</span>
}
