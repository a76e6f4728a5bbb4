// The frame: the rail with the views, the view itself, and what lies over all of them.

import { Suspense, lazy } from 'react'
import { useLanguage, t } from './i18n'
import { usePlace } from './router'
import { useLine } from './store/store'
import { Voices } from './ui/announce'
import { Crier } from './ui/Crier'
import { Door } from './ui/Door'
import { Keys } from './ui/Keys'
import { Rail } from './ui/Rail'
import { ChatView } from './views/chat/ChatView'
import { InboxView } from './views/inbox/InboxView'

const OrganisationView = lazy(() => import('./views/organisation/OrganisationView').then((file) => ({ default: file.OrganisationView })))
const TraceView = lazy(() => import('./views/trace/TraceView').then((file) => ({ default: file.TraceView })))
const GalleryView = lazy(() => import('./views/gallery/GalleryView').then((file) => ({ default: file.GalleryView })))
const SettingsView = lazy(() => import('./views/settings/SettingsView').then((file) => ({ default: file.SettingsView })))

const ALL = {
  chat: ChatView,
  inbox: InboxView,
  organisation: OrganisationView,
  trace: TraceView,
  gallery: GalleryView,
  settings: SettingsView,
}

export function App() {
  const language = useLanguage()
  const place = usePlace()
  const line = useLine()
  if (line === 'closed_door') return <Door />
  const View = ALL[place.view]
  return (
    <div className="frame" key={language}>
      <a className="skip" href="#content">{t('app.skip')}</a>
      <Rail view={place.view} />
      <main id="content" tabIndex={-1}>
        <Suspense fallback={<p className="empty">{t('line.loading')}</p>}>
          <View rest={place.rest} />
        </Suspense>
      </main>
      {line === 'lost' && <p className="line-notice">{t('line.lost')}</p>}
      <Keys />
      <Crier />
      <Voices />
    </div>
  )
}
