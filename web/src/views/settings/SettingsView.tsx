// The view `settings`: which model answers, what can be called, what may be spent, how others connect, and how the page looks.

import '../../styles/settings.css'
import { useEffect, useRef, useState } from 'react'
import { forgetToken, get, token } from '../../api'
import { type Key, addTexts, isKey, setLanguage, t, useLanguage } from '../../i18n'
import { settings as texts } from '../../i18n/settings'
import { tools as toolTexts } from '../../i18n/tools'
import { href, society } from '../../router'
import type { State } from '../../store/state'
import { store, useLog, useLine } from '../../store/store'
import { type Theme, setTheme, useTheme } from '../../theme'
import { refreshSocieties, useSocieties } from '../../store/societies'
import type { Health, Models, Tool } from '../../types'
import type { Budget, Budgets, Policy, PolicyRule, UsageReport } from '../../wire'
import { Copy } from '../../ui/Copy'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { duration, money, number, plainText } from '../../ui/format'
import { visit } from '../chat/actions'
import { amount } from '../inbox/ApprovalCard'
import { useTools } from '../inbox/tools'
import { MemorySection } from './MemorySection'
import { snippets } from './snippets'

addTexts(texts)
addTexts(toolTexts)

const SECTIONS = ['models', 'tools', 'memory', 'policies', 'budgets', 'connect', 'page'] as const
type Section = (typeof SECTIONS)[number]

export function SettingsView({ rest }: { rest: string[] }) {
  const here: Section | undefined = rest[0] ? SECTIONS.find((one) => one === rest[0]) : 'models'
  const view = useRef<HTMLElement>(null)
  useEffect(() => {
    view.current?.querySelector('.sections [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
    view.current?.scrollTo(0, 0)
  }, [here])
  return (
    <section ref={view} className="view settings" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.settings')}</h1>
      </header>
      <nav className="sections" aria-label={t('settings.sections')}>
        {SECTIONS.map((one) => (
          <Link key={one} href={href('settings', [one])} aria-current={one === here ? 'page' : undefined}>
            {t(`settings.${one}` as Key)}
          </Link>
        ))}
      </nav>
      <div className="section">
        {here === undefined && <p className="notice">{t('settings.unknown', { name: rest[0] ?? '' })}</p>}
        {here === 'models' && <ModelsSection />}
        {here === 'tools' && <ToolsSection />}
        {here === 'memory' && <MemorySection />}
        {here === 'policies' && <PoliciesSection />}
        {here === 'budgets' && <BudgetsSection />}
        {here === 'connect' && <ConnectSection />}
        {here === 'page' && <PageSection />}
      </div>
    </section>
  )
}

/** An answer of the server, asked for again with `key`. */
function useAsked<T>(path: string, key: unknown = 0): T | undefined {
  const [value, setValue] = useState<T>()
  useEffect(() => {
    get<T>(path).then(setValue, () => undefined)
  }, [path, key])
  return value
}

function ModelsSection() {
  const models = useAsked<Models>('/api/models')
  if (!models) return null
  const isThere = (vendor: Models['vendors'][number]) => vendor.ready && vendor.answers !== false
  const ready = models.vendors.filter(isThere)
  const others = models.vendors.filter((vendor) => !isThere(vendor))
  return (
    <>
      <div className={models.offline ? 'callout warn' : 'callout'}>
        <h2>{t('models.now')}</h2>
        <p className="big mono">{models.default || 'offline'}</p>
        <p>{t(models.offline ? 'models.offline' : 'models.online')}</p>
      </div>
      <h2>{t('models.set')}</h2>
      <p>{t('models.set.text')}</p>
      <Code name="shell" text={'export OPENAI_API_KEY=…\npolis serve --model openai/NAME'} />
      <Code name="polis.toml" text={'model = ["deepseek/deepseek-flash", "ollama/qwen3"]\n\n[providers.openai-compatible]\nbase_url = "http://127.0.0.1:8080/v1"'} />
      <p className="faint">{t('models.keys')}</p>
      <h2>{t('models.vendors')}</h2>
      <ul className="vendors">
        {ready.map((vendor) => (
          <li key={vendor.name} className="ready">
            <Icon name="check" size={15} />
            <span className="mono">{vendor.name}</span>
            <span className="faint">{vendor.name === 'offline' ? t('models.builtin') : vendor.answers ? t('models.answers', { address: vendor.address ?? '' }) : t('models.ready')}</span>
          </li>
        ))}
        {others.map((vendor) => (
          <li key={vendor.name}>
            <Icon name="ring" size={15} />
            <span className="mono">{vendor.name}</span>
            <span className="faint">
              {vendor.answers === false ? t('models.nobody', { address: vendor.address ?? '' }) : vendor.key ? t('models.key', { variable: vendor.key }) : vendor.needs && t('models.needs', { what: vendor.needs.replace(`${vendor.name} `, '') })}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

function Code({ name, text }: { name: string; text: string }) {
  return (
    <figure className="snippet">
      <figcaption>
        <span className="mono">{name}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0}>{text}</pre>
    </figure>
  )
}

/** What a tool does: of our own in the language of the page, of others in their words. */
function about(tool: Tool): string {
  const key = `tool.${tool.name}`
  return !tool.server && isKey(key) ? t(key) : tool.description
}

function ToolsSection() {
  const tools = useTools()
  if (!tools) return null
  return (
    <>
      <h2>{t('tools.servers')}</h2>
      {tools.servers.length === 0 && (
        <>
          <p className="faint">{t('tools.servers.none')}</p>
          <Code name="polis.toml" text={'[mcp.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n\n[mcp.tickets]\nurl = "https://tickets.example.com/mcp"\nheaders = { Authorization = "Bearer ${TICKETS_TOKEN}" }'} />
        </>
      )}
      <ul className="servers">
        {tools.servers.map((server) => (
          <li key={server.name}>
            <span className={`bulb ${server.state}`} aria-hidden="true" />
            <strong>{server.name}</strong>
            <span>{t(`server.${server.state}`)}</span>
            <span className="faint">{`${server.reach} · ${server.detail}`}</span>
            <span className="faint numbers">{t('tools.count', { n: server.tools })}</span>
          </li>
        ))}
      </ul>
      <h2>{t('settings.tools')}</h2>
      <div className="table-box" tabIndex={0} role="group" aria-label={t('settings.tools')}>
        <table className="tool-table">
          <thead>
            <tr>
              <th scope="col">{t('tools.name')}</th>
              <th scope="col">{t('tools.effect')}</th>
              <th scope="col">{t('tools.what')}</th>
            </tr>
          </thead>
          <tbody>
            {tools.tools.map((tool) => (
              <tr key={tool.name}>
                <th scope="row" className="mono">{tool.name}</th>
                <td>
                  <span className={`risk ${tool.effect}`}>{t(`risk.${tool.effect}`)}</span>
                </td>
                <td>{about(tool)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

/** Rules as they stand in `polis.toml`. */
function written(rules: PolicyRule[]): string {
  const names = ['tool', 'server', 'agent', 'role', 'arguments', 'then', 'why'] as const
  const line = (rule: PolicyRule) => names.flatMap((name) => (rule[name] ? [`${name} = ${JSON.stringify(rule[name])}`] : []))
  return rules.map((rule) => ['[[policy]]', ...line(rule)].join('\n')).join('\n\n')
}

const EXAMPLE: PolicyRule[] = [{ tool: 'write_file', then: 'ask', why: 'files are changed only with your word' }]

function PoliciesSection() {
  const policy = useAsked<Policy>('/api/policy')
  const state = useLog()
  if (!policy) return null
  return (
    <>
      <h2>{t('policy.title')}</h2>
      <p>{t('policy.text')}</p>
      {policy.rules.length > 0 ? (
        <>
          <h2>{t('policy.set')}</h2>
          <ol className="rules">
            {policy.rules.map((rule, place) => (
              <li key={place}>
                <span className={`then ${rule.then}`}>{t(`policy.then.${rule.then}`)}</span>
                <span className="mono">{[rule.tool ?? '*', rule.server && `server ${rule.server}`, rule.agent && `agent ${rule.agent}`, rule.role && `role ${rule.role}`, rule.arguments].filter(Boolean).join(' · ')}</span>
                <span className="faint">{rule.why}</span>
              </li>
            ))}
          </ol>
          <Code name="polis.toml" text={written(policy.rules)} />
        </>
      ) : (
        <>
          <p className="notice">{t('policy.none')}</p>
          <Code name="polis.toml" text={written(EXAMPLE)} />
        </>
      )}
      <h2>{t('policy.allowed')}</h2>
      {state.allowed.length === 0 && <p className="faint">{t('policy.allowed.none')}</p>}
      {state.allowed.length > 0 && (
        <ul className="allowed">
          {state.allowed.map((allowed, place) => (
            <li key={place}>
              <span className="mono">{allowed.tool}</span> <span className="faint">{[allowed.agent, allowed.task].filter(Boolean).join(' · ') || t('policy.everybody')}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** The budgets that are set, as they stand in `polis.toml`. */
function budgeted({ society, task, agent, call, roles }: Budgets): string {
  const lines = ({ tokens, costNanos, requests, timeMs }: Budget) => [
    ...(tokens != null ? [`tokens = ${tokens}`] : []),
    ...(costNanos != null ? [`usd = ${Number((costNanos / 1e9).toFixed(9)).toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 9, useGrouping: false })}`] : []),
    ...(requests != null ? [`requests = ${requests}`] : []),
    ...(timeMs != null ? [`minutes = ${timeMs / 60_000}`] : []),
  ]
  const all: [string, Budget][] = [['budget', society], ['budget.task', task], ['budget.agent', agent], ['budget.call', call], ...Object.entries(roles ?? {}).map(([name, budget]): [string, Budget] => [`budget.roles.${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`, budget])]
  return all.flatMap(([name, budget]) => (lines(budget).length > 0 ? [[`[${name}]`, ...lines(budget)].join('\n')] : [])).join('\n\n')
}

const BUDGETS = '[budget]\ntokens = 2_000_000\n\n[budget.task]\nusd = 0.5'

/** Whose account it is, in words; a request by what was asked. */
function account(state: State, scope: string): string {
  const [, kind = scope, name = ''] = scope.match(/^(role|agent|task):(.*)$/s) ?? []
  const request = kind === 'task' ? state.requests.get(name) : undefined
  if (request) return plainText(request.text).slice(0, 120)
  const key = `account.${kind}`
  return isKey(key) ? t(key, { name }) : scope
}

function BudgetsSection() {
  const state = useLog()
  const requests = state.spent.requests
  const usage = useAsked<UsageReport>('/api/usage', requests)
  if (!usage) return null
  return (
    <>
      <h2>{t('budgets.spent')}</h2>
      <div className="table-box" tabIndex={0} role="group" aria-label={t('budgets.spent')}>
        <table className="numbers">
          <thead>
            <tr>
              <th scope="col">{t('budgets.account')}</th>
              <th scope="col">{t('level.tokens')}</th>
              <th scope="col">{t('level.cost')}</th>
              <th scope="col">{t('level.requests')}</th>
              <th scope="col">{t('level.time')}</th>
              <th scope="col">{t('budgets.limit')}</th>
            </tr>
          </thead>
          <tbody>
            {usage.accounts.map((one) => (
              <tr key={one.scope}>
                <th scope="row">{account(state, one.scope)}</th>
                <td>{number(one.spent.tokens)}</td>
                <td>{money(one.spent.costNanos)}</td>
                <td>{number(one.spent.requests)}</td>
                <td>{duration(one.spent.timeMs)}</td>
                <td>
                  {one.levels.length === 0
                    ? '—'
                    : one.levels.map((level) => (
                        <span key={level.of} className="level">
                          {t('approval.level', { of: t(`level.${level.of}`), used: amount(level.of, level.used), limit: amount(level.of, level.limit) })}
                          <meter min={0} max={level.limit} value={level.used} aria-label={t(`level.${level.of}`)} />
                        </span>
                      ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>{t('budgets.set')}</h2>
      <p>{t('budgets.text')}</p>
      {budgeted(usage.budgets) ? <p>{t('budgets.now')}</p> : <p className="notice">{t('budgets.none')}</p>}
      <Code name="polis.toml" text={budgeted(usage.budgets) || BUDGETS} />
    </>
  )
}

function ConnectSection() {
  return (
    <>
      <p>{t('connect.text')}</p>
      {snippets().map((snippet) => (
        <Code key={snippet.name} name={snippet.name} text={snippet.code} />
      ))}
    </>
  )
}

function PageSection() {
  const language = useLanguage()
  const theme = useTheme()
  const line = useLine()
  const health = useAsked<Health>('/api/health')
  const all = useSocieties()
  useEffect(() => void refreshSocieties(), [])
  const themes: Theme[] = ['auto', 'light', 'dark']
  return (
    <>
      <fieldset>
        <legend>{t('page.language')}</legend>
        {(['en', 'zh'] as const).map((one) => (
          <label key={one} lang={one === 'zh' ? 'zh-CN' : 'en'}>
            <input type="radio" name="language" checked={language === one} onChange={() => setLanguage(one)} />
            {t(`language.${one}`)}
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>{t('page.theme')}</legend>
        {themes.map((one) => (
          <label key={one}>
            <input type="radio" name="theme" checked={theme === one} onChange={() => setTheme(one)} />
            {t(`theme.only.${one}`)}
          </label>
        ))}
      </fieldset>
      {all.length > 0 && (
        <fieldset>
          <legend>{t('society.label')}</legend>
          {all.map((one) => (
            <label key={one.name}>
              <input type="radio" name="society" checked={society() ? society() === one.name : one.first} onChange={() => visit(one.name)} />
              <span>
                <span className="mono name">{one.name}</span>{' '}
                <span className="faint numbers">
                  {[t('page.events', { n: number(one.events) }), one.forkedFrom && t('society.branch', { name: one.forkedFrom, n: one.forkedAt ?? 0 })].filter(Boolean).join(' · ')}
                </span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      <p className="faint numbers">{t('page.about', { version: health?.version ?? '', events: number(store.state.seq), line: t(`line.${line}`) })}</p>
      {token() && (
        <button
          type="button"
          onClick={() => {
            forgetToken()
            store.restart()
          }}
        >
          {t('page.forget')}
        </button>
      )}
    </>
  )
}
