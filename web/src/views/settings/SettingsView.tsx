// The view `settings`: which model answers, what can be called, what may be spent, how others connect, and how the page looks.

import { useEffect, useState } from 'react'
import { forgetToken, get, token } from '../../api'
import { type Key, setLanguage, t, useLanguage } from '../../i18n'
import { href, society } from '../../router'
import { store, useLog, useLine } from '../../store/store'
import { type Theme, setTheme, useTheme } from '../../theme'
import type { Health, Models, Societies } from '../../types'
import type { UsageReport } from '../../wire'
import { Copy } from '../../ui/Copy'
import { Icon } from '../../ui/Icon'
import { Link } from '../../ui/Link'
import { duration, money, number } from '../../ui/format'
import { societies, visit } from '../chat/actions'
import { useTools } from '../inbox/tools'
import { snippets } from './snippets'

const SECTIONS = ['models', 'tools', 'budgets', 'connect', 'page'] as const
type Section = (typeof SECTIONS)[number]

export function SettingsView({ rest }: { rest: string[] }) {
  const here: Section = SECTIONS.find((one) => one === rest[0]) ?? 'models'
  return (
    <section className="view settings" aria-labelledby="view-title">
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
        {here === 'models' && <ModelsSection />}
        {here === 'tools' && <ToolsSection />}
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
  const ready = models.vendors.filter((vendor) => vendor.ready)
  const others = models.vendors.filter((vendor) => !vendor.ready)
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
            <span className="faint">{t('models.ready')}</span>
          </li>
        ))}
        {others.map((vendor) => (
          <li key={vendor.name}>
            <Icon name="ring" size={15} />
            <span className="mono">{vendor.name}</span>
            <span className="faint">{vendor.needs?.replace(`${vendor.name} `, '')}</span>
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

function ToolsSection() {
  const tools = useTools()
  const state = useLog()
  if (!tools) return null
  return (
    <>
      <h2>{t('tools.servers')}</h2>
      {tools.servers.length === 0 && <p className="faint">{t('tools.servers.none')}</p>}
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
                <td>{tool.description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>{t('policy.title')}</h2>
      <p>{t('policy.text')}</p>
      <Code name="polis.toml" text={'[[policy]]\ntool = "write_file"\nthen = "ask"\nwhy = "files are changed only with your word"'} />
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

function BudgetsSection() {
  const requests = useLog().spent.requests
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
            {usage.accounts.map((account) => (
              <tr key={account.scope}>
                <th scope="row" className="mono">{account.scope}</th>
                <td>{number(account.spent.tokens)}</td>
                <td>{money(account.spent.costNanos)}</td>
                <td>{number(account.spent.requests)}</td>
                <td>{duration(account.spent.timeMs)}</td>
                <td>
                  {account.levels.length === 0 ? '—' : account.levels.map((level) => <meter key={level.of} min={0} max={level.limit} value={level.used} aria-label={level.of} />)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>{t('budgets.set')}</h2>
      <p>{t('budgets.text')}</p>
      <Code name="polis.toml" text={'[budget.task]\nusd = 0.5\n\n[budget.society]\ntokens = 2_000_000'} />
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
  const [all, setAll] = useState<Societies>()
  useEffect(() => {
    societies().then(setAll, () => undefined)
  }, [])
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
      {all && all.societies.length > 0 && (
        <fieldset>
          <legend>{t('society.label')}</legend>
          {all.societies.map((one) => (
            <label key={one.name}>
              <input type="radio" name="society" checked={society() ? society() === one.name : one.first} onChange={() => visit(one.first ? '' : one.name)} />
              <span className="mono">{one.name}</span>
              <span className="faint numbers">{t('page.events', { n: number(one.events) })}</span>
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
