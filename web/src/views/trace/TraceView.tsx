// The view `trace`.

import { t } from '../../i18n'

export function TraceView({ rest: _ }: { rest: string[] }) {
  return (
    <section className="view" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.trace')}</h1>
      </header>
      <p className="empty">{t('soon')}</p>
    </section>
  )
}
