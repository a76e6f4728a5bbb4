// The conversations: pinned ones first, then by day. Search and the archive ask the server; what it finds joins those that are
// here, so that every entry is live.

import { Suspense, lazy, useEffect, useState } from 'react'
import { usePage } from '../../components/page'
import { t } from '../../i18n'
import { href } from '../../router'
import { conversationStatus, sortedConversations } from '../../store/derive'
import type { Chat } from '../../store/state'
import { useSearch } from '../../store/search'
import { LIST, store, useLine, useLog, useView } from '../../store/store'
import type { Excerpt } from '../../types'
import { Badge, type Status, StatusIcon } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { write } from '../../ui/write'
import { clock, day, plainText } from '../../ui/format'
import { complain } from './actions'

export const Tools = lazy(() => import('./ConversationTools').then((file) => ({ default: file.Tools })))

export function ConversationList({ id, onPick }: { id: string | undefined; onPick: () => void }) {
  const state = useLog()
  const line = useLine()
  const [wanted, setWanted] = useState('')
  const [isArchive, setArchive] = useState(false)
  const [renamed, setRenamed] = useState<string>()
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean)
  const isHere = words.length === 0 && !isArchive
  useView(state.nextConversations === undefined ? LIST : undefined, 'list')
  const search = useSearch(wanted, isArchive)
  const strangers = [...state.strangers]
  useEffect(() => {
    for (const one of strangers) void store.meet(one)
  }, [strangers.join()])
  const isFound = ({ id, title }: Chat) => search.ids.has(id) || words.every((word) => `${title} ${id}`.toLowerCase().includes(word))
  const all = sortedConversations(state).filter((chat) => (chat.archived ?? false) === isArchive && isFound(chat))
  const groups = Map.groupBy(all, (chat) => (chat.pinned ? t('list.pinned') : day(chat.activeAt)))
  const next = isHere ? state.nextConversations : search.next
  const follow = () => {
    if (!isHere) return search.more()
    const { state } = store
    return store.find(`?after=${encodeURIComponent(next ?? '')}`).then((further) => void (state.nextConversations = further.next ?? null), complain)
  }
  return (
    <nav className="conversations" aria-label={t('list.label')}>
      <div className="list-head">
        {isArchive ? (
          <button type="button" className="quiet small" onClick={() => setArchive(false)} aria-label={t('list.back')} title={t('list.back')}>
            <Icon name="left" size={15} />
          </button>
        ) : null}
        <h2>{t(isArchive ? 'list.archive' : 'list.title')}</h2>
        <button
          type="button"
          className="new"
          aria-label={t('list.new')}
          title={t('list.new')}
          aria-keyshortcuts="N"
          onClick={() => {
            onPick()
            write()
          }}
        >
          <Icon name="plus" size={17} />
        </button>
      </div>
      {(all.length > 0 || words.length > 0) && (
        <div className="find">
          <Icon name="search" size={15} />
          <input type="search" value={wanted} onChange={(event) => setWanted(event.target.value)} aria-label={t('list.find')} placeholder={t('list.find')} />
        </div>
      )}
      {all.length === 0 && line !== 'loading' && (
        <p className="faint none">{t(search.isSearching ? 'list.searching' : words.length > 0 ? 'list.nothing' : isArchive ? 'list.archive.none' : 'list.none')}</p>
      )}
      {[...groups].map(([name, chats]) => (
        <section key={name} aria-label={name}>
          <h3>{name}</h3>
          <ul>
            {chats.map((chat) => (
              <li key={chat.id}>
                {renamed === chat.id ? (
                  <Suspense fallback={null}>
                    <Tools part="rename" chat={chat} onDone={() => setRenamed(undefined)} />
                  </Suspense>
                ) : (
                  <Entry chat={chat} isHere={chat.id === id} status={conversationStatus(state, chat)} excerpt={search.excerpts.get(chat.id)} onPick={onPick} onRename={() => setRenamed(chat.id)} />
                )}
              </li>
            ))}
          </ul>
        </section>
      ))}
      {next && (
        <button type="button" className="quiet earlier" disabled={search.isSearching} onClick={() => void follow()}>
          {t('list.more')}
        </button>
      )}
      {!isArchive && (
        <button type="button" className="quiet small to-archive" onClick={() => setArchive(true)}>
          <Icon name="inbox" size={15} />
          {t('list.archive')}
        </button>
      )}
    </nav>
  )
}

function Entry({ chat, isHere, status, excerpt, onPick, onRename }: { chat: Chat; isHere: boolean; status: Status; excerpt: Excerpt | undefined; onPick: () => void; onRename: () => void }) {
  const title = plainText(chat.title)
  const isLoud = status !== 'idle'
  const person = usePage()?.person
  return (
    <div className="entry" data-current={isHere || undefined}>
      <Link className="entry-link" href={href('chat', [chat.id, excerpt?.taskId ?? undefined])} aria-current={isHere ? 'true' : undefined} onClickCapture={onPick}>
        <span className="entry-title">{title}</span>
        {excerpt && <span className="entry-excerpt">{plainText(excerpt.text)}</span>}
        <span className="entry-foot">
          {isLoud ? <Badge status={status} /> : <StatusIcon status={status} size={13} />}
          {!isLoud && <span className="unseen">{t('status.idle')}</span>}
          {person !== undefined && chat.person !== person && <span className="faint">{chat.person}</span>}
          <time className="numbers" dateTime={new Date(chat.activeAt).toISOString()}>{clock(chat.activeAt)}</time>
        </span>
      </Link>
      <MenuButton chat={chat} isHere={isHere} onRename={onRename} />
    </div>
  )
}

/** Opens what can be done with a conversation. */
export function MenuButton({ chat, isHere, onRename }: { chat: Chat; isHere: boolean; onRename: () => void }) {
  const [anchor, setAnchor] = useState<HTMLElement>()
  return (
    <>
      <button type="button" className="quiet small more" aria-haspopup="menu" aria-expanded={anchor !== undefined} aria-label={t('list.menu', { title: plainText(chat.title) })} title={t('list.menu.title')} onClick={(event) => setAnchor(event.currentTarget)}>
        <Icon name="more" size={16} />
      </button>
      {anchor && (
        <Suspense fallback={null}>
          <Tools part="menu" chat={chat} isHere={isHere} anchor={anchor} onRename={onRename} onClose={() => setAnchor(undefined)} />
        </Suspense>
      )}
    </>
  )
}
