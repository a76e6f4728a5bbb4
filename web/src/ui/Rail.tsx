// The rail with the views: on the left, or below on phones. It also shows how the line stands and what was spent.

import { count, setLanguage, t, useLanguage } from '../i18n'
import { VIEWS, type View, homeOf, href } from '../router'
import { useLine, useStore } from '../store/store'
import { nextTheme, useTheme } from '../theme'
import { useOthers } from '../views/inbox/others'
import { money, number } from './format'
import { Icon } from './Icon'
import { Link } from './Link'

export function Rail({ view }: { view: View }) {
  const own = useStore((state) => state.waiting.size + state.unlistedWaiting)
  const waiting = own + useOthers().length
  const running = useStore((state) => [...state.requests.values()].some((request) => request.open.size > 0))
  return (
    <nav className="rail" aria-label={t('nav.label')}>
      <Link className="mark" href={href('chat')} aria-label={t('app.name')}>
        <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
          <path d="M4 11 16 4l12 7v3H4zM7 16h3v8H7zm7.5 0h3v8h-3zm7.5 0h3v8h-3zM4 26h24v2.5H4z" />
        </svg>
      </Link>
      <ul>
        {VIEWS.map((one) => (
          <li key={one}>
            <Link href={homeOf(one)} aria-current={one === view ? 'page' : undefined} className="rail-item">
              <span className="rail-icon">
                <Icon name={one} size={20} />
                {one === 'inbox' && waiting > 0 && <span className="count" aria-hidden="true">{waiting}</span>}
                {one === 'chat' && running && <span className="pulse" aria-hidden="true" />}
              </span>
              <span className="rail-text">{t(`nav.${one}`)}</span>
              {one === 'inbox' && waiting > 0 && <span className="unseen">{count('nav.waiting', waiting)}</span>}
            </Link>
          </li>
        ))}
      </ul>
      <div className="rail-foot">
        <Totals />
        <Light />
        <LanguageSwitch />
        <ThemeSwitch />
      </div>
    </nav>
  )
}

function Totals() {
  const tokens = useStore((state) => state.spent.tokens)
  const cost = useStore((state) => state.spent.costNanos)
  const requests = useStore((state) => state.spent.requests)
  const title = t('total.title', { tokens: number(tokens), cost: money(cost), requests: number(requests) })
  return (
    <p className="totals" title={title}>
      <span className="unseen">{title}</span>
      <span aria-hidden="true">{t('unit.tokens', { n: number(tokens) })}</span>
      <span aria-hidden="true">{money(cost)}</span>
    </p>
  )
}

function Light() {
  const line = useLine()
  const text = t(`line.${line}`)
  return (
    <p className={`light ${line}`} title={t('line.label', { state: text })}>
      <span className="bulb" aria-hidden="true" />
      <span className="light-text">{text}</span>
    </p>
  )
}

function LanguageSwitch() {
  const language = useLanguage()
  const other = language === 'en' ? 'zh' : 'en'
  return (
    <button type="button" className="quiet" lang={other === 'zh' ? 'zh-CN' : 'en'} onClick={() => setLanguage(other)}>
      {t('language.switch')}
    </button>
  )
}

function ThemeSwitch() {
  const theme = useTheme()
  const icon = theme === 'auto' ? 'system' : theme === 'light' ? 'sun' : 'moon'
  return (
    <button type="button" className="quiet" onClick={nextTheme} aria-label={t(`theme.${theme}`)} title={t(`theme.${theme}`)}>
      <Icon name={icon} />
    </button>
  )
}
