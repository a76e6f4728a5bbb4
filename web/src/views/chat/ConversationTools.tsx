// What can be done with a conversation: its menu, another title, another model or strategy. Loaded when it is first wanted.

import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { post } from '../../api'
import { t } from '../../i18n'
import { go, href } from '../../router'
import type { Chat } from '../../store/state'
import { Icon, type IconName } from '../../ui/Icon'
import { announce } from '../../ui/announce'
import { plainText } from '../../ui/format'
import { ModelFields, useModelSettings } from './ModelSettings'
import { ModelPick, StrategyPick } from './Picks'
import { type Strategy, change, complain } from './actions'

interface MenuProps {
  chat: Chat
  /** Whether the conversation is the one that is shown. */
  isHere: boolean
  anchor: HTMLElement
  onRename: () => void
  onClose: () => void
}

interface RenameProps {
  chat: Chat
  onDone: () => void
}

interface SettingsProps {
  chat: Chat
  anchor: HTMLElement
  onClose: () => void
}

type Props = ({ part: 'menu' } & MenuProps) | ({ part: 'rename' } & RenameProps) | ({ part: 'settings' } & SettingsProps)

/** One component for all parts: what was loaded for one is there at once for the others. */
export function Tools(props: Props) {
  if (props.part === 'menu') return <Menu {...props} />
  return props.part === 'rename' ? <Rename {...props} /> : <Settings {...props} />
}

/** A box over everything at the button that opens it; it closes with Escape, or with a click elsewhere. */
function Popover({ anchor, role, label, className, onClose, onKeyDown, children }: { anchor: HTMLElement; role: string; label: string; className: string; onClose: () => void; onKeyDown?: (event: React.KeyboardEvent) => void; children: React.ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const node = box.current
    if (!node) return
    node.showPopover()
    const at = anchor.getBoundingClientRect()
    const { width, height } = node.getBoundingClientRect()
    node.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`
    const top = at.bottom + height + 12 > innerHeight ? Math.max(8, at.top - height - 4) : at.bottom + 4
    node.style.top = `${top}px`
    // It may grow later.
    node.style.maxHeight = `${innerHeight - top - 8}px`
    node.querySelector<HTMLElement>('button, input, select')?.focus()
  }, [anchor, role])
  useEffect(() => {
    const node = box.current
    const toggled = (event: Event) => {
      if ((event as ToggleEvent).newState !== 'closed') return
      if (document.activeElement === document.body || node?.contains(document.activeElement)) anchor.focus()
      onClose()
    }
    node?.addEventListener('toggle', toggled)
    return () => node?.removeEventListener('toggle', toggled)
  })
  return (
    <div ref={box} popover="auto" className={`popover ${className}`} role={role} aria-label={label} onKeyDown={onKeyDown}>
      {children}
    </div>
  )
}

function Menu({ chat, isHere, anchor, onRename, onClose }: MenuProps) {
  const [asking, setAsking] = useState<'delete' | 'erase'>()
  const { id, pinned = false, archived = false } = chat
  const title = plainText(chat.title)
  const act = (what: Promise<unknown>) => {
    onClose()
    anchor.focus()
    void what
  }
  const remove = async (how: 'delete' | 'erase') => {
    onClose()
    try {
      await post(`/api/conversations/${encodeURIComponent(id)}/${how}`)
      announce(how === 'erase' ? t('list.erased') : t('list.deleted', { title }))
      if (isHere) go(href('chat'))
    } catch (error) {
      complain(error)
    }
  }
  if (asking) {
    const question = t(`list.${asking}.ask`, { title })
    return (
      <Popover key={asking} anchor={anchor} role="alertdialog" label={question} className="confirm" onClose={onClose}>
        <p>{question}</p>
        <p className="faint">{t(`list.${asking}.hint`)}</p>
        {asking === 'erase' && (
          <>
            <ul className="losses">
              <li>{t('list.erase.words')}</li>
              <li>{t('list.erase.work')}</li>
              <li>{t('list.erase.files')}</li>
              <li>{t('list.erase.copies')}</li>
            </ul>
            <p className="faint">{t('list.erase.stays')}</p>
          </>
        )}
        <div className="buttons">
          <button type="button" className="small" onClick={() => act(Promise.resolve())}>{t('cancel')}</button>
          <button type="button" className="small danger" onClick={() => void remove(asking)}>{t(`list.${asking}`)}</button>
        </div>
      </Popover>
    )
  }
  const items: [IconName, string, () => void][] = [
    ['edit', t('list.rename'), () => (onClose(), onRename())],
    ['pin', t(pinned ? 'list.unpin' : 'list.pin'), () => act(change(id, { pinned: !pinned }))],
    ['inbox', t(archived ? 'list.unarchive' : 'list.archive.do'), () => act(change(id, { archived: !archived }))],
  ]
  // Root stays.
  if (id !== 'root') {
    items.push(['trash', t('list.delete'), () => setAsking('delete')])
    items.push(['cross', t('list.erase.do'), () => setAsking('erase')])
  }
  const onKey = (event: React.KeyboardEvent) => {
    const all = [...event.currentTarget.querySelectorAll<HTMLElement>('[role=menuitem]')]
    const at = all.indexOf(document.activeElement as HTMLElement)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key]
    if (event.key === 'Tab') onClose()
    if (to === undefined) return
    event.preventDefault()
    all[to % all.length]?.focus()
  }
  return (
    <Popover key="menu" anchor={anchor} role="menu" label={t('list.menu', { title })} className="menu" onClose={onClose} onKeyDown={onKey}>
      {items.map(([icon, text, run]) => (
        <button key={icon} type="button" role="menuitem" className={icon === 'trash' || icon === 'cross' ? 'quiet danger' : 'quiet'} onClick={run}>
          <Icon name={icon} size={16} />
          {text}
        </button>
      ))}
    </Popover>
  )
}

/** Another title, in the place of the old one: Enter keeps it, Escape does not. */
function Rename({ chat, onDone }: RenameProps) {
  const [title, setTitle] = useState<string>(chat.title)
  const isDone = useRef(false)
  const end = (isKept: boolean) => {
    if (isDone.current) return
    isDone.current = true
    const words = title.trim()
    if (isKept && words && words !== chat.title) void change(chat.id, { title: words })
    onDone()
  }
  return (
    <form
      className="rename"
      onSubmit={(event) => {
        event.preventDefault()
        end(true)
      }}
    >
      <input
        value={title}
        autoFocus
        maxLength={200}
        aria-label={t('list.rename.label')}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setTitle(event.target.value)}
        onBlur={() => end(true)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.stopPropagation()
          end(false)
        }}
      />
    </form>
  )
}

/** Model, strategy and model settings of a conversation. */
function Settings({ chat, anchor, onClose }: SettingsProps) {
  const [model, setModel] = useState(chat.model ?? '')
  const how = useModelSettings(chat)
  const keep = () => {
    if (model.trim() !== (chat.model ?? '')) void change(chat.id, { model: model.trim() })
  }
  /** Sends the field that is being written, and closes if nothing was refused. */
  const submit = async (form: HTMLFormElement) => {
    keep()
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
    if (await how.settled()) {
      onClose()
      anchor.focus()
      return
    }
    const wrong = form.querySelector<HTMLElement>('[aria-invalid]')
    wrong?.closest('details')?.setAttribute('open', '')
    wrong?.focus()
  }
  return (
    <Popover anchor={anchor} role="dialog" label={t('settings.conversation')} className="settings-box" onClose={onClose}>
      {/* The fields say themselves what is wrong with them, in the language of the page. */}
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit(event.currentTarget)
        }}
      >
        <ModelPick value={model} onChange={setModel} onBlur={keep} />
        <StrategyPick value={(chat.strategy ?? 'auto') as Strategy} onChange={(strategy) => void change(chat.id, { strategy })} />
        <ModelFields {...how} />
        {/* With several fields, Enter sends a form only where it has such a button. */}
        <button type="submit" hidden />
      </form>
    </Popover>
  )
}
