// The view `settings`.

import { t } from '../../i18n'

export function SettingsView({ rest: _ }: { rest: string[] }) {
  return (
    <section className="view" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.settings')}</h1>
      </header>
      <p className="empty">{t('soon')}</p>
    </section>
  )
}
