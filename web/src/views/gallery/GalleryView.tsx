// The view `gallery`: every component with an example, its schema, and a slider that shows it while it is still being written.

import { useMemo, useState } from 'react'
import { ComponentRenderer } from '../../components/ComponentRenderer'
import type { Registered } from '../../components/contract'
import { Html } from '../../components/Html'
import { useComponents } from '../../components/registry'
import { t } from '../../i18n'
import { parsePartialJson } from '../../json/partial'
import { href } from '../../router'
import type { JsonObject } from '../../types'
import { Link } from '../../ui/Link'

export function GalleryView({ rest }: { rest: string[] }) {
  const all = useComponents()
  const [chosen] = rest
  const shown = chosen ? all.filter((one) => one.name === chosen) : all
  return (
    <section className="view gallery" aria-labelledby="view-title">
      <header className="view-head">
        <h1 id="view-title">{t('nav.gallery')}</h1>
        {chosen && <Link href={href('gallery')}>{t('gallery.all')}</Link>}
      </header>
      <p className="lead">{t('gallery.text')}</p>
      {shown.map((one) => (
        <Exhibit key={one.name} what={one} />
      ))}
      {chosen && shown.length === 0 && <ComponentRenderer component={chosen} props={{}} />}
      {!chosen && (
        <>
          <section className="exhibit" aria-labelledby="ex-html">
            <h2 id="ex-html">{t('gallery.html')}</h2>
            <p className="faint">{t('gallery.html.text')}</p>
            <Html html={t('gallery.html.sample')} />
          </section>
          <section className="exhibit" aria-labelledby="ex-unknown">
            <h2 id="ex-unknown">{t('gallery.unknown')}</h2>
            <ComponentRenderer component="never-registered" props={{ any: 'thing' }} />
          </section>
        </>
      )}
    </section>
  )
}

function Exhibit({ what }: { what: Registered }) {
  const whole = useMemo(() => JSON.stringify(what.sample ?? {}, null, 2), [what])
  const [share, setShare] = useState(100)
  const cut = whole.slice(0, Math.ceil((whole.length * share) / 100))
  const props = useMemo(() => (parsePartialJson<JsonObject>(cut).data ?? {}) as JsonObject, [cut])
  const id = `ex-${what.name}`
  return (
    <section className="exhibit" aria-labelledby={id}>
      <h2 id={id}>
        <Link href={href('gallery', [what.name])}>{what.name}</Link>
        {what.from && <span className="badge">{what.from}</span>}
      </h2>
      <div className="exhibit-body">
        <div className="exhibit-show">
          <ComponentRenderer component={what.name} props={props} isGrowing={share < 100} />
        </div>
        <div className="exhibit-data">
          <label>
            {t('gallery.slider', { share })}
            <input type="range" min={0} max={100} value={share} onChange={(event) => setShare(Number(event.target.value))} />
          </label>
          <pre className="prompt" tabIndex={0}>{cut}</pre>
          {what.schema && (
            <details>
              <summary>{t('gallery.schema')}</summary>
              <pre className="prompt" tabIndex={0}>{JSON.stringify(what.schema, null, 2)}</pre>
            </details>
          )}
        </div>
      </div>
    </section>
  )
}
