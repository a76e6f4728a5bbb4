// The frame: the rail with the views, the view itself, and what lies over all of them.

import { Suspense, lazy, useEffect } from 'react'
import { loadScripts } from './components'
import { useLanguage, t } from './i18n'
import { society, usePlace } from './router'
import { useLine } from './store/store'
import { Voices } from './ui/announce'
import { Crier } from './ui/Crier'
import { Door } from './ui/Door'
import { Keys } from './ui/Keys'
import { NotThere } from './ui/NotThere'
import { Rail } from './ui/Rail'
import { NoSociety, SocietyBar } from './ui/SocietyBar'
import { ChatView } from './views/chat/ChatView'

const InboxView = lazy(() => import('./views/inbox/InboxView').then((file) => ({ default: file.InboxView })))
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
  // The settings show no components.
  const shows = place.view !== 'settings' && line !== 'closed_door'
  useEffect(() => {
    if (shows) void loadScripts()
  }, [shows])
  if (line === 'closed_door') return <Door />
  const View = ALL[place.view]
  const missing = society()
  return (
    <div className="frame" key={language}>
      <a className="skip" href="#content">{t('app.skip')}</a>
      <Rail view={place.view} />
      <div className="stage">
        <SocietyBar />
        <main id="content" tabIndex={-1}>
          {line === 'nowhere' && missing !== undefined ? (
            <NoSociety name={missing} />
          ) : place.isUnknown ? (
            <NotThere title={t('nowhere.view')} text={t('nowhere.view.text', { path: location.pathname })} />
          ) : (
            <Suspense fallback={<p className="empty">{t('line.loading')}</p>}>
              <View rest={place.rest} />
            </Suspense>
          )}
        </main>
      </div>
      {line === 'lost' && <p className="line-notice">{t('line.lost')}</p>}
      <Keys />
      <Crier />
      <Voices />
    </div>
  )
}
