// A document of a model's in a frame that can reach nothing: no origin, no network, no page around it. Static documents run no
// scripts at all; live ones only where the operator allowed them.

import { useEffect, useRef, useState } from 'react'
import { t } from '../i18n'
import { act } from './actions'
import { useLiveHtml } from './page'

const TALLEST = 2400
/** A document that goes elsewhere by itself would only show that it cannot. */
const LEAVING = /<meta\b[^>]*\bhttp-equiv\b[^>]*>/gi

export function Frame({ html, title }: { html: string; title: string }) {
  const isLive = useLiveHtml()
  const place = useRef<HTMLIFrameElement>(null)
  const [height, setHeight] = useState(160)
  useEffect(() => {
    const frame = place.current
    if (!frame) return
    let port: MessagePort | undefined
    const hand = (event: MessageEvent) => {
      if (event.source !== frame.contentWindow || event.data !== 'polis-frame') return
      port?.close()
      const channel = new MessageChannel()
      port = channel.port1
      port.onmessage = ({ data }) => {
        if (typeof data?.height === 'number') setHeight(Math.max(24, Math.min(TALLEST, Math.ceil(data.height))))
        else if (typeof data?.action === 'string') act(data.action, data.data)
      }
      frame.contentWindow?.postMessage({ html: html.replace(LEAVING, '') }, '*', [channel.port2])
    }
    addEventListener('message', hand)
    frame.src = isLive ? '/sandbox/live' : '/sandbox/static'
    return () => {
      removeEventListener('message', hand)
      port?.close()
    }
  }, [html, isLive])
  return (
    <figure className={`html-frame${isLive ? ' live' : ''}`}>
      <iframe ref={place} sandbox="allow-scripts" allow="" referrerPolicy="no-referrer" title={title} style={{ height }} />
      <figcaption className="faint">{t(isLive ? 'component.live' : 'component.static')}</figcaption>
    </figure>
  )
}
