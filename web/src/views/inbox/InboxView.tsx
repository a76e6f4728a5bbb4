// The view `inbox`.

import { t } from '../../i18n'

export function InboxView({ rest: _ }: { rest: string[] }) {
  return (
    <section className="view" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.inbox')}</h1>
      </header>
      <p className="empty">{t('soon')}</p>
    </section>
  )
}
