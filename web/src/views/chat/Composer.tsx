// Where the person writes: to whom, with which files, and whether it joins what is under way or waits for its turn.

import { useEffect, useRef, useState } from 'react'
import { t } from '../../i18n'
import { go, href, prefix } from '../../router'
import { agentName } from '../../store/derive'
import type { Request } from '../../store/state'
import { useLog } from '../../store/store'
import type { Artifact } from '../../types'
import { AgentChooser } from '../../ui/AgentChooser'
import { Thumbnail } from '../../ui/Files'
import { Icon } from '../../ui/Icon'
import { bytes } from '../../ui/format'
import { ModelPick, StrategyPick } from './Picks'
import { type Strategy, change, complain, newKey, say, stop, upload } from './actions'

/** What was written and not sent, by conversation. */
const draftOf = (agent: string | undefined): string => `polis.draft:${prefix()}:${agent ?? ''}`

interface Props {
  /** None where a conversation is about to start. */
  agent: string | undefined
  /** The request with this agent that is under way. */
  running: Request | undefined
  /** Whether a workflow is at it: that hears what is said in its next round. */
  hearsAlong: boolean
}

export function Composer({ agent, running, hearsAlong }: Props) {
  const state = useLog()
  const draft = draftOf(agent)
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? '')
  const [files, setFiles] = useState<Artifact[]>([])
  const [strategy, setStrategy] = useState<Strategy>('auto')
  const [model, setModel] = useState('')
  const [joins, setJoins] = useState(true)
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [isChoosing, setChoosing] = useState(false)
  const isSending = useRef(false)
  /** What is sent again because no answer came has the key that it had before, so that it happens once. */
  const sent = useRef({ what: '', key: '' })
  const box = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  useEffect(() => sessionStorage.setItem(draft, text), [draft, text])
  useEffect(() => {
    const area = box.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 260)}px`
  }, [text])
  const hasOthers = state.agentCount > 1 || [...state.agents.values()].some((one) => !one.terminatedAt && one.parent)
  const name = agentName(state, agent ?? 'root')
  const isJoining = running !== undefined && joins

  const add = async (list: FileList | File[]) => {
    setTrouble('')
    try {
      for (const file of list) {
        const kept = await upload(file)
        setFiles((before) => [...before, kept])
      }
    } catch (error) {
      setTrouble(complain(error))
    }
  }

  const send = async () => {
    // A file may go without words: then it is its name that is said.
    const words = text.trim() || files.map((file) => file.name).join(', ')
    if (!words || isSending.current) return
    isSending.current = true
    setBusy(true)
    setTrouble('')
    try {
      const how = agent === undefined ? { strategy, model: model.trim() } : {}
      const options = { ...how, artifacts: files, ...(isJoining && { task: running.id }) }
      const what = JSON.stringify([agent, words, options])
      if (sent.current.what !== what) sent.current = { what, key: newKey() }
      const accepted = await say(agent, words, { ...options, key: sent.current.key })
      sent.current = { what: '', key: '' }
      // The strategy of its first request is that of the conversation.
      if (agent === undefined && strategy !== 'auto') void change(accepted.conversation, { strategy })
      sessionStorage.removeItem(draft)
      setText('')
      setFiles([])
      setJoins(true)
      if (!isJoining) go(href('chat', [accepted.conversation, accepted.taskId]))
    } catch (error) {
      setTrouble(complain(error))
    } finally {
      isSending.current = false
      setBusy(false)
      // A conversation that has started has a composer of its own.
      requestAnimationFrame(() => document.getElementById('composer')?.focus())
    }
  }

  const onKey = (event: React.KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault()
      void send()
    } else if (event.key === 'Escape' && running && !text) {
      event.preventDefault()
      event.stopPropagation()
      stop(running.id).catch((error: unknown) => setTrouble(complain(error)))
    }
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        void add(event.dataTransfer.files)
      }}
    >
      {trouble && <p className="bad composer-trouble">{trouble}</p>}
      {files.length > 0 && (
        <ul className="files attached">
          {files.map((file) => (
            <li key={file.id}>
              <span className="file">
                <Thumbnail artifact={file} otherwise={<Icon name="file" size={15} />} />
                <span className="file-name">{file.name}</span>
                <span className="faint numbers">{bytes(file.bytes)}</span>
                <button type="button" className="quiet small" onClick={() => setFiles(files.filter((one) => one !== file))} aria-label={t('composer.drop', { name: file.name })}>
                  <Icon name="close" size={13} />
                </button>
              </span>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={box}
        id="composer"
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        onPaste={(event) => event.clipboardData.files.length > 0 && void add(event.clipboardData.files)}
        placeholder={isJoining ? t(hearsAlong ? 'composer.round.placeholder' : 'composer.turn.placeholder') : t('composer.placeholder', { name })}
        aria-label={t('composer.label')}
      />
      <div className="composer-foot">
        <button type="button" className="quiet" onClick={() => picker.current?.click()} aria-label={t('composer.attach')} title={t('composer.attach')}>
          <Icon name="clip" />
        </button>
        <input ref={picker} type="file" multiple hidden onChange={(event) => event.target.files && void add(event.target.files)} />
        {agent === undefined ? (
          <>
            <ModelPick value={model} onChange={setModel} />
            <StrategyPick value={strategy} onChange={setStrategy} />
          </>
        ) : (
          hasOthers && (
            <button type="button" className="quiet pick-agent" aria-haspopup="dialog" onClick={() => setChoosing(true)}>
              <span className="faint">{t('composer.to')}</span> {name}
              <Icon name="down" size={12} />
            </button>
          )
        )}
        {running && (
          <label className="pick">
            <span className="unseen">{t('composer.join.label')}</span>
            <select value={joins ? 'join' : 'queue'} onChange={(event) => setJoins(event.target.value === 'join')}>
              <option value="join">{t(hearsAlong ? 'composer.round' : 'composer.turn')}</option>
              <option value="queue">{t('composer.queue')}</option>
            </select>
          </label>
        )}
        <span className="grow" />
        {running && (
          <button type="button" className="stop" onClick={() => stop(running.id).catch((error: unknown) => setTrouble(complain(error)))} aria-keyshortcuts="Escape" aria-label={t('composer.stop')}>
            <Icon name="stop" size={14} />
            <span className="stop-text">{t('composer.stop')}</span>
          </button>
        )}
        <button type="submit" className="primary send" disabled={(!text.trim() && files.length === 0) || isBusy} aria-label={t('composer.send')} title={t('composer.send')}>
          <Icon name="send" size={17} />
        </button>
      </div>
      {isChoosing && (
        <AgentChooser label={t('org.find')} onPick={(id) => go(href('chat', [id]))} onClose={() => setChoosing(false)} />
      )}
    </form>
  )
}
