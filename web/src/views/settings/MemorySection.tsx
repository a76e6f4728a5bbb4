// What agents remember for the person across conversations: to search, add, change and erase.

import { type FormEvent, useCallback, useEffect, useState } from 'react'
import { Problem, get, post } from '../../api'
import { t } from '../../i18n'
import { href } from '../../router'
import type { Memories, MemoryRecord } from '../../wire'
import { Link } from '../../ui/Link'
import { announce } from '../../ui/announce'
import { moment } from '../../ui/format'

/** How many are shown at first, and with each click more. */
const PAGE = 100

/** The longest text, in bytes. */
const LONGEST = 4096

export function MemorySection() {
  const [words, setWords] = useState('')
  const [search, setSearch] = useState('')
  const [limit, setLimit] = useState(PAGE)
  const [listed, setListed] = useState<Memories>()
  const [wrong, setWrong] = useState('')
  const load = useCallback(
    () => get<Memories>(`/api/memories?${new URLSearchParams({ limit: String(limit), ...(search && { search }) })}`).then(setListed, (error) => setWrong(message(error))),
    [search, limit],
  )
  useEffect(() => void load(), [load])
  /** Changes something and shows what is there then. */
  const change = async (path: string, body: unknown, done: string) => {
    setWrong('')
    try {
      await post(path, body)
      announce(done)
      await load()
      return true
    } catch (error) {
      setWrong(message(error))
      return false
    }
  }
  return (
    <div className="memories">
      <p>{t('memory.text')}</p>
      {listed && (
        <label className="memory-switch">
          <input
            type="checkbox"
            role="switch"
            checked={listed.enabled ?? true}
            onChange={(event) => void change('/api/memories/enabled', { enabled: event.target.checked }, t(event.target.checked ? 'memory.on' : 'memory.off'))}
          />
          {t('memory.switch')}
        </label>
      )}
      <form
        className="memory-search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          setLimit(PAGE)
          setSearch(words.trim())
        }}
      >
        <input type="search" value={words} onChange={(event) => setWords(event.target.value)} aria-label={t('memory.search')} placeholder={t('memory.search')} />
        <button type="submit">{t('memory.find')}</button>
      </form>
      {wrong && (
        <p className="notice" role="alert">
          {wrong}
        </p>
      )}
      {listed?.note && <p className="faint">{listed.note}</p>}
      {listed && listed.memories.length === 0 && <p className="notice">{t(search ? 'memory.nothing' : 'memory.none')}</p>}
      <ul className="memory-list">
        {listed?.memories.map((one) => (
          <Entry
            key={one.id}
            memory={one}
            onEdit={(text) => change(`/api/memories/${encodeURIComponent(one.id)}`, { text }, t('memory.edited'))}
            onErase={() => change(`/api/memories/${encodeURIComponent(one.id)}/erase`, {}, t('memory.erased'))}
          />
        ))}
      </ul>
      {listed && listed.memories.length < listed.total && (
        <button type="button" onClick={() => setLimit(limit + PAGE)}>
          {t('memory.more', { n: listed.total - listed.memories.length })}
        </button>
      )}
      <h2>{t('memory.add')}</h2>
      <Editor label={t('memory.add.text')} onSave={(text) => change('/api/memories', { text }, t('memory.added'))} />
    </div>
  )
}

function Entry({ memory, onEdit, onErase }: { memory: MemoryRecord; onEdit: (text: string) => Promise<boolean>; onErase: () => Promise<boolean> }) {
  const [mode, setMode] = useState<'shown' | 'editing' | 'erasing'>('shown')
  const shown = () => setMode('shown')
  const scope = memory.scope === 'society' ? t('memory.scope.society') : memory.roleId ? t('memory.scope.role', { name: memory.roleId }) : ''
  return (
    <li>
      {mode === 'editing' ? (
        <Editor label={t('memory.edit')} text={memory.text ?? ''} onSave={async (text) => (await onEdit(text)) && (shown(), true)} onCancel={shown} />
      ) : (
        <p className="memory-text">{memory.text ?? t('memory.gone')}</p>
      )}
      <div className="memory-foot">
        <span className="faint numbers">{[moment(memory.editedAt ?? memory.keptAt), scope].filter(Boolean).join(' · ')}</span>
        {memory.conversation && (
          <Link className="faint" href={href('chat', [memory.conversation])}>
            {t('memory.origin')}
          </Link>
        )}
        {mode === 'shown' && memory.text != null && (
          <button type="button" onClick={() => setMode('editing')}>
            {t('memory.edit')}
          </button>
        )}
        {mode === 'shown' && (
          <button type="button" onClick={() => setMode('erasing')}>
            {t('memory.erase')}
          </button>
        )}
        {mode === 'erasing' && (
          <>
            <span>{t('memory.sure')}</span>
            <button type="button" className="danger" autoFocus onClick={async () => (await onErase()) || shown()}>
              {t('memory.erase')}
            </button>
            <button type="button" onClick={shown}>
              {t('cancel')}
            </button>
          </>
        )}
      </div>
    </li>
  )
}

function Editor({ label, text = '', onSave, onCancel }: { label: string; text?: string; onSave: (text: string) => Promise<boolean>; onCancel?: () => void }) {
  const [value, setValue] = useState(text)
  const bytes = new TextEncoder().encode(value.trim()).length
  const save = async (event: FormEvent) => {
    event.preventDefault()
    if ((await onSave(value.trim())) && !onCancel) setValue('')
  }
  return (
    <form className="memory-editor" onSubmit={save}>
      <textarea
        value={value}
        rows={2}
        autoFocus={Boolean(onCancel)}
        aria-label={label}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => event.key === 'Escape' && onCancel?.()}
      />
      {bytes > LONGEST && <p className="notice">{t('memory.long', { n: bytes, limit: LONGEST })}</p>}
      <div className="memory-foot">
        <button type="submit" disabled={bytes === 0 || bytes > LONGEST}>
          {t('memory.save')}
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            {t('cancel')}
          </button>
        )}
      </div>
    </form>
  )
}

function message(error: unknown): string {
  return error instanceof Problem ? error.message : String(error)
}
