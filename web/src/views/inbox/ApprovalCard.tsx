// One thing that waits for a person: who asks, for what, with everything that it is about, and the ways to answer.

import '../../styles/inbox.css'
import { useEffect, useState } from 'react'
import { post } from '../../api'
import { usePage } from '../../components/page'
import { addTexts, isKey, t } from '../../i18n'
import { tools as toolTexts } from '../../i18n/tools'
import { href } from '../../router'
import { addressOf, agentName } from '../../store/derive'
import type { Waiting } from '../../store/state'
import { store } from '../../store/store'
import type { Call, JsonObject, Review, Tool } from '../../types'
import { Badge } from '../../ui/Badge'
import { Icon } from '../../ui/Icon'
import { JsonView, readJson } from '../../ui/JsonView'
import { Visible } from '../../ui/Visible'
import { Link } from '../../ui/Link'
import { Markdown } from '../../ui/Markdown'
import { announce } from '../../ui/announce'
import { duration, money, number, plainText } from '../../ui/format'
import { useNow } from '../../ui/useNow'
import { complain } from '../chat/actions'
import { asked } from './asked'
import { around, diff, lines } from './diff'
import { Fields, Raw } from './Fields'
import { FileDiff, changesFile } from './FileDiff'
import { KeyHint, useKeys } from './keys'
import { look } from './others'
import { PlanEditor, todoText } from './PlanEditor'
import { useTools } from './tools'

addTexts(toolTexts)

interface CardProps {
  waiting: Waiting
  hasKeys?: boolean
  /** Told when somebody begins to change what is asked about, and when they have stopped. */
  onEdit?: (isEdited: boolean) => void
}

export function ApprovalCard({ waiting, hasKeys = false, onEdit }: CardProps) {
  const [trouble, setTrouble] = useState('')
  const [isBusy, setBusy] = useState(false)
  const answer = async (body: object) => {
    setBusy(true)
    setTrouble('')
    try {
      await post(`/api/approvals/${encodeURIComponent(waiting.id)}`, body)
      announce(t('approval.sent'))
      if (waiting.person !== undefined) await look()
    } catch (error) {
      setTrouble(complain(error))
      setBusy(false)
    }
  }
  const { what } = waiting
  const page = usePage()
  const isForOthers = ['approval', 'grant', 'in_doubt'].includes(what.kind) && (page?.approvers.length ?? 0) > 0
  const isClosed = isForOthers || page?.scopes.includes('approve') === false
  const props = { waiting, answer, isBusy, hasKeys: hasKeys && !isClosed }
  return (
    <article className="approval" aria-label={t(isForOthers ? 'approval.label.others' : 'approval.label', { agent: agentName(store.state, waiting.agent) })}>
      <Head waiting={waiting} />
      {isClosed && <p className="notice">{isForOthers ? t('approval.others', { who: page?.approvers.join(', ') ?? '' }) : t('approval.not_allowed')}</p>}
      <fieldset className="plain" disabled={isClosed}>
        {what.kind === 'approval' && <Agreement {...props} what={what} onEdit={onEdit} />}
        {what.kind === 'question' && <QuestionForm {...props} what={what} />}
        {what.kind === 'grant' && <Grant {...props} what={what} />}
        {what.kind === 'in_doubt' && <InDoubt {...props} what={what} />}
        {what.kind === 'parked' && <Parked {...props} what={what} />}
      </fieldset>
      {trouble && <p className="bad">{trouble}</p>}
    </article>
  )
}

type Of<K extends Waiting['what']['kind']> = Extract<Waiting['what'], { kind: K }>
interface Part<K extends Waiting['what']['kind']> {
  waiting: Waiting
  what: Of<K>
  answer: (body: object) => Promise<void>
  isBusy: boolean
  hasKeys: boolean
}

function Head({ waiting }: { waiting: Waiting }) {
  const thread = store.state.threads.get(waiting.thread)
  const request = store.state.requests.get(waiting.task)
  const call = 'call' in waiting.what ? waiting.what.call : undefined
  const deadline = 'deadline' in waiting.what ? waiting.what.deadline : undefined
  const now = useNow(deadline !== undefined)
  return (
    <header className="approval-head">
      <span className="approval-who">
        <Icon name="agent" size={16} />
        <strong>{agentName(store.state, waiting.agent)}</strong>
        {waiting.person !== undefined && <span className="faint">{t('approval.for', { person: waiting.person })}</span>}
        {thread?.parent && <code className="address">{addressOf(store.state, thread)}</code>}
      </span>
      {call && <Risk call={call} />}
      {waiting.what.kind === 'in_doubt' && <Badge status="in_doubt" />}
      {waiting.what.kind === 'parked' && <Badge status="parked" />}
      {deadline !== undefined && (
        <span className="faint numbers">
          <Icon name="clock" size={14} /> {t('approval.left', { time: duration(Math.max(0, deadline - now)) })}
        </span>
      )}
      {request && (
        <Link className="approval-for" href={href('chat', [request.to, request.id])}>
          {plainText(request.text)}
        </Link>
      )}
    </header>
  )
}

function Risk({ call }: { call: Call }) {
  return <span className={`risk ${call.class}`}>{t(`risk.${call.class}`)}</span>
}

function Agreement({ waiting, what, answer, isBusy, hasKeys, onEdit }: Part<'approval'> & { onEdit: CardProps['onEdit'] }) {
  const tools = useTools()
  const before = what.call ? (readJson(what.call.arguments) as JsonObject) : undefined
  const planned = !what.call && isPlan(what.details) ? (what.details as { todos: JsonObject[] }).todos : undefined
  const [edited, setEdited] = useState<JsonObject>()
  const [isRaw, setRaw] = useState(false)
  const [todos, setTodos] = useState(planned)
  const [denial, setDenial] = useState<string>()
  const [always, setAlways] = useState('')
  const [troubles, tellTrouble] = useTroubles()
  const blank = todos?.findIndex((todo) => !todoText(todo).trim()) ?? -1
  const isReady = troubles.size === 0 && blank < 0
  const isEdited = edited !== undefined && JSON.stringify(edited) !== JSON.stringify(before)
  const isPlanEdited = todos !== undefined && JSON.stringify(todos) !== JSON.stringify(planned)
  const approve = async () => {
    // What is shown is what is sent, or nothing is.
    if (!isReady) return
    const changed = isEdited ? { arguments: edited } : isPlanEdited ? { arguments: { todos } as unknown as JsonObject } : {}
    return answer({ approved: true, ...changed, ...(always && { always }) })
  }
  const review: Partial<Review> = (what.call && (what.details as Partial<Review> | null)) ?? {}
  const mayAlways = what.call && !(typeof what.call.ruling === 'object' && 'askEach' in what.call.ruling)
  useKeys(hasKeys && denial === undefined && edited === undefined, { a: () => void approve(), d: () => setDenial(''), e: () => before && setEdited(before) })
  const isTouched = edited !== undefined
  useEffect(() => onEdit?.(isTouched), [isTouched])
  const unedit = () => setEdited(edited === undefined ? before : undefined)
  const schema = described(tools?.tools.find((tool) => tool.name === what.call?.tool))
  return (
    <>
      {what.call ? (
        <h2 className="approval-title">
          <code>{what.call.tool}</code>
        </h2>
      ) : null}
      <p className="approval-question">
        <Visible text={planned ? aboutPlan(what.question) : asked(waiting.agent, what.question, what.call)} />
      </p>
      <Cautions review={review} />
      {isEdited && isReady && before && <Difference before={before} after={edited} />}
      {before &&
        (edited === undefined ? (
          isRaw ? <pre className="long" tabIndex={0}><Visible text={JSON.stringify(before, null, 2)} /></pre> : changesFile(what.call?.tool ?? '') ? <FileDiff id={waiting.id}><JsonView value={before} /></FileDiff> : <JsonView value={before} />
        ) : isRaw ? (
          <Raw value={edited} label={t('step.arguments')} isObject onChange={(next) => setEdited(next as JsonObject)} onTrouble={(trouble) => tellTrouble('', trouble)} />
        ) : (
          <Fields schema={schema} value={edited} onChange={setEdited} onTrouble={tellTrouble} />
        ))}
      {todos && <PlanEditor todos={todos} onChange={setTodos} />}
      {!before && !todos && what.details !== undefined && what.details !== null && <JsonView value={what.details} />}
      {blank >= 0 && <p className="bad form-bad" role="alert">{t('plan.blank', { n: blank + 1 })}</p>}
      {denial !== undefined ? (
        <Denial denial={denial} setDenial={setDenial} isBusy={isBusy} isPlan={planned !== undefined} deny={(why) => answer({ approved: false, reason: why })} />
      ) : (
        <div className="approval-foot">
          <button type="button" className="primary" disabled={isBusy || !isReady} onClick={() => void approve()}>
            <Icon name="check" size={16} />
            {t(isEdited || isPlanEdited ? 'approval.approve.edited' : 'approval.approve')}
            {hasKeys && edited === undefined && <KeyHint letter="A" />}
          </button>
          <button type="button" disabled={isBusy} onClick={() => setDenial('')}>
            {t(planned ? 'plan.unwanted' : 'approval.deny')}
            {hasKeys && edited === undefined && <KeyHint letter="D" />}
          </button>
          {before && (
            <button type="button" disabled={isBusy} aria-pressed={edited !== undefined} onClick={unedit}>
              <Icon name="edit" size={15} />
              {t(edited === undefined ? 'approval.edit' : 'approval.unedit')}
              {hasKeys && edited === undefined && <KeyHint letter="E" />}
            </button>
          )}
          {before && (
            <button type="button" className="quiet" aria-pressed={isRaw} disabled={troubles.size > 0} onClick={() => setRaw(!isRaw)}>
              {t('approval.raw')}
            </button>
          )}
          {mayAlways && (
            <label className="always">
              <span className="unseen">{t('approval.always')}</span>
              <select value={always} onChange={(event) => setAlways(event.target.value)}>
                <option value="">{t('approval.once')}</option>
                <option value="task">{t('approval.always.task')}</option>
                <option value="agent">{t('approval.always.agent')}</option>
                <option value="tool">{t('approval.always.tool')}</option>
                {(review.reads ?? []).length > 0 && <option value="reads">{t('approval.always.reads')}</option>}
              </select>
            </label>
          )}
        </div>
      )}
      {always !== '' && always !== 'reads' && !isEdited && review.covers && (
        <p className="faint covers">
          {t('approval.covers')} <code><Visible text={review.covers} /></code>
        </p>
      )}
      {always === 'reads' && (
        <p className="faint covers">
          {t('approval.covers')} <code><Visible text={(review.reads ?? []).join(', ')} /></code>
        </p>
      )}
    </>
  )
}

/** What speaks for caution: outside content that was read before, and a tool that its server has changed. */
function Cautions({ review }: { review: Partial<Review> }) {
  const { outside = [], changed } = review
  return (
    <>
      {outside.length > 0 && (
        <section className="caution" role="note">
          <p>{t('approval.outside')}</p>
          <ul>
            {outside.map((source) => (
              <li key={source}><Visible text={source} /></li>
            ))}
          </ul>
        </section>
      )}
      {changed && (
        <section className="caution" role="note">
          <p>{t('approval.changed')}</p>
          <Lines before={changed.before} after={changed.after} />
        </section>
      )}
    </>
  )
}

/** What a tool takes; of our own in the language of the page, of others in their words. */
function described(tool: Tool | undefined): JsonObject | undefined {
  const schema = tool?.parameters as JsonObject | undefined
  if (!tool || tool.server || !schema) return schema
  const fields = Object.entries((schema.properties ?? {}) as { [name: string]: JsonObject }).map(([name, field]) => {
    const key = `hint.${tool.name}.${name}`
    return [name, isKey(key) ? { ...field, description: t(key) } : field]
  })
  return { ...schema, properties: Object.fromEntries(fields) as JsonObject }
}

/** What cannot be read just now, by the names of fields. */
function useTroubles(): [ReadonlyMap<string, string>, (name: string, what?: string) => void] {
  const [troubles, setTroubles] = useState<ReadonlyMap<string, string>>(new Map())
  const tell = (name: string, what?: string) =>
    setTroubles((before) => {
      if (before.get(name) === what) return before
      const next = new Map(before)
      if (what === undefined) next.delete(name)
      else next.set(name, what)
      return next
    })
  return [troubles, tell]
}

/** What is said about a plan, without the list of its todos: they stand below, to be changed. */
function aboutPlan(question: string): string {
  const parts = question.split('\n\n').filter((part) => !/\n- \[.\] /.test(part))
  return [...parts.slice(0, -1), t('plan.question')].filter(Boolean).join('\n')
}

function isPlan(details: unknown): boolean {
  return typeof details === 'object' && details !== null && Array.isArray((details as { todos?: unknown }).todos)
}

function Difference({ before, after }: { before: JsonObject; after: JsonObject }) {
  return (
    <section className="difference" aria-label={t('approval.difference')}>
      <p className="label">{t('approval.difference')}</p>
      <Lines before={lines(before)} after={lines(after)} />
    </section>
  )
}

function Lines({ before, after }: { before: string; after: string }) {
  const marks = { same: ' ', gone: '−', new: '+' } as const
  return (
    <pre>
      {around(diff(before, after)).map((line, place) => (
        <span key={place} className={line.kind}>
          {marks[line.kind]} <Visible text={line.text} />
          {'\n'}
        </span>
      ))}
    </pre>
  )
}

function Denial({ denial, setDenial, isBusy, isPlan, deny }: { denial: string; setDenial: (text: string | undefined) => void; isBusy: boolean; isPlan: boolean; deny: (why: string) => Promise<void> }) {
  return (
    <form
      className="denial"
      onSubmit={(event) => {
        event.preventDefault()
        void deny(denial.trim())
      }}
    >
      <input type="text" value={denial} autoFocus aria-label={t(isPlan ? 'plan.reason' : 'approval.reason')} placeholder={t(isPlan ? 'plan.reason' : 'approval.reason')} onChange={(event) => setDenial(event.target.value)} onKeyDown={(event) => event.key === 'Escape' && setDenial(undefined)} />
      <button type="submit" className="danger" disabled={isBusy}>{t(isPlan && denial.trim() ? 'plan.anew' : 'approval.deny.now')}</button>
      <button type="button" className="quiet" onClick={() => setDenial(undefined)}>{t('cancel')}</button>
    </form>
  )
}

function QuestionForm({ what, answer, isBusy }: Part<'question'>) {
  const { wanted } = what
  const [text, setText] = useState('')
  const [form, setForm] = useState<JsonObject>({})
  const [troubles, tellTrouble] = useTroubles()
  const options = typeof wanted === 'object' && 'text' in wanted ? (wanted.text.options ?? []) : []
  const schema = typeof wanted === 'object' && 'form' in wanted ? (wanted.form.schema as JsonObject) : undefined
  const url = typeof wanted === 'object' && 'visit' in wanted ? wanted.visit.url : undefined
  const isWords = typeof wanted === 'object' && 'text' in wanted && options.length === 0
  const give = () => answer(schema ? { answer: form } : isWords ? { answer: text } : { approved: true })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (troubles.size === 0) void give()
      }}
    >
      <div className="approval-question">
        <Markdown text={what.question} />
      </div>
      {what.server && <p className="faint">{t('approval.server', { name: what.server })}</p>}
      {what.details !== undefined && what.details !== null && <JsonView value={what.details} />}
      {isWords && <textarea rows={2} value={text} aria-label={t('approval.answer')} placeholder={t('approval.answer')} onChange={(event) => setText(event.target.value)} />}
      {schema && <Fields schema={schema} value={form} onChange={setForm} onTrouble={tellTrouble} />}
      {url && <p className="visit"><a href={/^https?:/.test(url) ? url : undefined} target="_blank" rel="noopener noreferrer">{url}</a></p>}
      <div className="approval-foot">
        {options.map((option) => (
          <button key={option} type="button" disabled={isBusy} onClick={() => void answer({ answer: option })}>{option}</button>
        ))}
        {options.length === 0 && (
          <button type="submit" className="primary" disabled={isBusy || troubles.size > 0 || (isWords && !text.trim())}>{t(url || wanted === 'agreement' ? 'approval.approve' : 'approval.answer.send')}</button>
        )}
        <button type="button" disabled={isBusy} onClick={() => void answer({ approved: false })}>{t('approval.decline')}</button>
      </div>
    </form>
  )
}

/** Most agents that are named with their calls. */
const MAX_CALLERS = 5

function Grant({ what, answer, isBusy }: Part<'grant'>) {
  const calls = Object.entries(what.calls).sort(([, one], [, other]) => other - one)
  return (
    <>
      <p className="approval-question">{t('approval.budget')}</p>
      <ul className="levels">
        {what.lacking.map((level, place) => (
          <li key={place}>
            <code>{level.scope}</code> {t('approval.level', { of: t(`level.${level.of}`), used: amount(level.of, level.used), limit: amount(level.of, level.limit) })}
          </li>
        ))}
      </ul>
      {calls.length > 0 && <p className="faint">{t('approval.calls', { agents: calls.slice(0, MAX_CALLERS).map(([agent, times]) => `${agentName(store.state, agent)} ${number(times)}`).join(', ') + (calls.length > MAX_CALLERS ? ', …' : '') })}</p>}
      <div className="approval-foot">
        <button type="button" className="primary" disabled={isBusy} onClick={() => void answer({ approved: true })}>{t('approval.grant')}</button>
        <button type="button" disabled={isBusy} onClick={() => void answer({ approved: false })}>{t('approval.grant.no')}</button>
      </div>
    </>
  )
}

export function amount(of: 'tokens' | 'cost' | 'requests' | 'time', value: number): string {
  return of === 'cost' ? money(value) : of === 'time' ? duration(value) : number(value)
}

function InDoubt({ what, answer, isBusy }: Part<'in_doubt'>) {
  const [result, setResult] = useState('')
  return (
    <>
      <h2 className="approval-title">
        <code>{what.call.tool}</code>
      </h2>
      <p className="approval-question">{t('doubt.text')}</p>
      <JsonView value={readJson(what.call.arguments)} />
      <input type="text" value={result} aria-label={t('doubt.result')} placeholder={t('doubt.result')} onChange={(event) => setResult(event.target.value)} />
      <div className="approval-foot">
        <button type="button" disabled={isBusy} onClick={() => void answer({ outcome: 'done', ...(result && { result }) })}>{t('doubt.done')}</button>
        <button type="button" disabled={isBusy} onClick={() => void answer({ outcome: 'not_done', ...(result && { result }) })}>{t('doubt.not_done')}</button>
        <button type="button" className="danger" disabled={isBusy} onClick={() => void answer({ outcome: 'again' })}>{t('doubt.again')}</button>
      </div>
    </>
  )
}

function Parked({ waiting, what, answer, isBusy }: Part<'parked'>) {
  const cancel = () => post(`/api/tasks/${encodeURIComponent(waiting.task)}/cancel`, {}).catch(complain)
  return (
    <>
      <p className="approval-question">{what.failure.message}</p>
      <p className="faint"><code>{what.failure.code}</code></p>
      <div className="approval-foot">
        <button type="button" className="primary" disabled={isBusy} onClick={() => void answer({ outcome: 'again' })}>{t('parked.go_on')}</button>
        <button type="button" disabled={isBusy} onClick={() => void cancel()}>{t('parked.cancel')}</button>
      </div>
    </>
  )
}
