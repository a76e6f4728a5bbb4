// The words of a question, for the card and for the step in the conversation.

import { t } from '../../i18n'
import { agentName } from '../../store/derive'
import { store } from '../../store/store'
import type { Call } from '../../types'

/** What is asked about a call, in the language of the page. The operator's own words stay as they are. */
export function asked(agent: string, question: string, call: Call | undefined): string {
  // The server names whom the person talks to, which is not the id of a conversation's agent.
  const name = /^May (\S+) use /.exec(question)?.[1]
  const plain = call && name && `May ${name} use ${call.tool}?`
  if (!plain || !question.startsWith(plain)) return question
  return [t('approval.may', { agent: agentName(store.state, agent), tool: call.tool }), usual(question.slice(plain.length).trim())].filter(Boolean).join(' ')
}

/** The program's own reasons, translated. */
function usual(why: string): string {
  const known = { 'It reaches the network.': 'why.network', 'It may change things outside the workspace.': 'why.outside', 'It is not known what it does.': 'why.unknown' } as const
  // What follows stands in a section of its own.
  const reason = why.replace(/ ?It can (?:send data out|destroy something|send data out or destroy something), and this conversation has read content from outside: .*$/s, '').replace(/ ?Its server has changed this tool since it was last used\./, '')
  return Object.entries(known).reduce((text, [said, key]) => text.replace(said, t(key)), reason)
}
