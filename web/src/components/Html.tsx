// HTML that a model wrote. Elements that the operator registered may be used, not defined; everything else is plain markup
// without scripts, pictures from elsewhere, forms or styles that reach out. It lives in a root of its own.

import DOMPurify from 'dompurify'
import { useEffect, useRef } from 'react'
import { ACTION, act } from './actions'
import { componentRegistry, useComponents } from './registry'

const TAGS = [
  'p', 'br', 'strong', 'em', 'b', 'i', 'u', 's', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'h3', 'h4', 'h5', 'h6', 'hr',
  'table', 'caption', 'thead', 'tbody', 'tr', 'th', 'td', 'div', 'span', 'section', 'article', 'dl', 'dt', 'dd', 'small', 'sub', 'sup',
  'details', 'summary', 'progress', 'meter', 'time', 'slot',
]
const ATTRIBUTES = ['href', 'title', 'colspan', 'rowspan', 'scope', 'open', 'value', 'max', 'min', 'datetime', 'dir', 'lang', 'slot', 'role']

/** Links say where they lead, and open a window of their own. */
DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return
  const target = node.getAttribute('href')
  if (!target) return
  node.setAttribute('rel', 'noopener noreferrer')
  node.setAttribute('target', '_blank')
  node.setAttribute('title', target)
})

/** HTML with nothing in it that acts, and with the custom elements that are registered. */
export function clean(html: string, elements: string[]): DocumentFragment {
  const known = new Set(elements)
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: true,
    ALLOW_ARIA_ATTR: true,
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== 'href'),
    CUSTOM_ELEMENT_HANDLING: {
      tagNameCheck: (name) => known.has(name),
      attributeNameCheck: (name) => /^(?:data|aria)-[\w-]+$/.test(name) || ATTRIBUTES.includes(name),
      allowCustomizedBuiltInElements: false,
    },
    RETURN_DOM_FRAGMENT: true,
    RETURN_TRUSTED_TYPE: false,
  })
}

/** Links have the page's colour, and no space goes out at the edges; the rules of the page do not reach in. */
let sheet: CSSStyleSheet | undefined
function links(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet()
    sheet.replaceSync('a{color:var(--accent)}:host>:first-child{margin-block-start:0}:host>:last-child{margin-block-end:0}')
  }
  return sheet
}

export function Html({ html }: { html: string }) {
  useComponents()
  const place = useRef<HTMLDivElement>(null)
  const elements = componentRegistry.elements()
  const known = elements.join(' ')
  useEffect(() => {
    const host = place.current
    if (!host) return
    const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [links()]
    root.replaceChildren(clean(html, known.split(' ')))
    const hear = (event: Event) => {
      event.stopPropagation()
      const { action, data } = (event as CustomEvent).detail ?? {}
      if (typeof action === 'string') act(action, data)
    }
    root.addEventListener(ACTION, hear)
    return () => root.removeEventListener(ACTION, hear)
  }, [html, known])
  return <div ref={place} className="html" />
}
