// One agent among all: those that are not here yet are read while the chooser is open.

import { agentStatus } from '../store/derive'
import { useAllAgents, useLog } from '../store/store'
import { Badge } from './Badge'
import { Chooser } from './Chooser'

export function AgentChooser({ label, onPick, onClose }: { label: string; onPick: (id: string) => void; onClose: () => void }) {
  const state = useLog()
  useAllAgents(true)
  const agents = [...state.agents.values()].filter((one) => !one.terminatedAt && one.id !== 'user' && (one.parent || one.id === 'root'))
  const choices = agents.map((one) => {
    const status = agentStatus(state, one.id)
    return { icon: 'agent' as const, text: one.id, also: state.roles.get(one.role)?.name ?? one.role, hint: status === 'idle' ? undefined : <Badge status={status} />, run: () => onPick(one.id) }
  })
  return <Chooser label={label} choices={choices} onClose={onClose} />
}
