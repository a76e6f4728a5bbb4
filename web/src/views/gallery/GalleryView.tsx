// The view `gallery`.

import { t } from '../../i18n'

export function GalleryView({ rest: _ }: { rest: string[] }) {
  return (
    <section className="view" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.gallery')}</h1>
      </header>
      <p className="empty">{t('soon')}</p>
    </section>
  )
}
