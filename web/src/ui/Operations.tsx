// What an agent offers to a person, as buttons. What is said then is the agent's own word.

import { useState } from 'react'
import { post } from '../api'
import { t, useLanguage } from '../i18n'
import type { Accepted, AgentOperation } from '../wire'
import { announce } from './announce'

interface Props {
  agent: string
  operations: AgentOperation[]
  /** What is done with what was begun, or with what went wrong. */
  onSent: (sent: Accepted) => void
  onTrouble: (error: unknown) => void
}

export function Operations({ agent, operations, onSent, onTrouble }: Props) {
  const language = useLanguage()
  const [busy, setBusy] = useState<string>()
  const run = async (operation: AgentOperation, label: string) => {
    setBusy(operation.name)
    try {
      const sent = await post<Accepted>(`/api/agents/${encodeURIComponent(agent)}/operate`, { operation: operation.name, language })
      announce(t('operation.sent', { label, agent }))
      onSent(sent)
    } catch (error) {
      onTrouble(error)
    } finally {
      setBusy(undefined)
    }
  }
  return operations.map((operation) => {
    const label = operation.labels?.[language] ?? operation.label
    return (
      <button key={operation.name} type="button" className="operation" disabled={busy !== undefined} onClick={() => void run(operation, label)}>
        {label}
      </button>
    )
  })
}
