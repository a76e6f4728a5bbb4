// Where the person writes: to whom, with which files, and whether it joins what is under way or waits for its turn.

import { useEffect, useRef, useState } from 'react'
import { t } from '../../i18n'
import { go, href, prefix } from '../../router'
import { agentName } from '../../store/derive'
import type { Request } from '../../store/state'
import { useLog } from '../../store/store'
import type { Artifact } from '../../types'
import { Icon } from '../../ui/Icon'
import { bytes } from '../../ui/format'
import { ModelPick, StrategyPick } from './Picks'
import { type Strategy, change, complain, say, stop, upload } from './actions'

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
  const box = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  useEffect(() => sessionStorage.setItem(draft, text), [draft, text])
  useEffect(() => {
    const area = box.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 260)}px`
  }, [text])
  const others = [...state.agents.values()].filter((one) => !one.terminatedAt && one.parent)
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
    const words = text.trim()
    if (!words || isBusy) return
    setBusy(true)
    setTrouble('')
    try {
      const how = agent === undefined ? { strategy, model: model.trim() } : {}
      const sent = await say(agent, words, { ...how, artifacts: files, ...(isJoining && { task: running.id }) })
      // The strategy of its first request is that of the conversation.
      if (agent === undefined && strategy !== 'auto') void change(sent.conversation, { strategy })
      sessionStorage.removeItem(draft)
      setText('')
      setFiles([])
      setJoins(true)
      if (!isJoining) go(href('chat', [sent.conversation, sent.taskId]))
    } catch (error) {
      setTrouble(complain(error))
    } finally {
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
                <Icon name="file" size={15} />
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
          others.length > 0 && (
            <label className="pick">
              <span>{t('composer.to')}</span>
              <select value={agent} onChange={(event) => go(href('chat', [event.target.value]))}>
                {!others.some((one) => one.id === agent) && <option value={agent}>{name}</option>}
                {others.map((one) => (
                  <option key={one.id} value={one.id}>{one.id}</option>
                ))}
              </select>
            </label>
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
        <button type="submit" className="primary send" disabled={!text.trim() || isBusy} aria-label={t('composer.send')} title={t('composer.send')}>
          <Icon name="send" size={17} />
        </button>
      </div>
    </form>
  )
}
