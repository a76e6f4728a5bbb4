// Text that a model wrote, as Markdown and nothing more: no HTML of its own, no pictures, links only to where they say. Every
// block is made safe by itself, so that a text that grows is not read anew from its beginning.

import DOMPurify from 'dompurify'
import { Marked, type Tokens } from 'marked'
import { memo, useMemo } from 'react'

const escape = (text: string): string => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

const marked = new Marked({
  gfm: true,
  renderer: {
    // Models write line breaks into cells of tables.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => (/^<br\s*\/?>$/i.test(text.trim()) ? '<br>' : escape(text)),
    // As text, so that it is copied and read aloud too.
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? '☑ ' : '☐ '),
    image: ({ href, text }: Tokens.Image) => `<a href="${escape(href)}">${escape(text || href)}</a>`,
  },
})

const ALLOWED = {
  ALLOWED_TAGS: ['p', 'br', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li', 'a', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'table', 'thead', 'tbody', 'tr', 'th', 'td'],
  ALLOWED_ATTR: ['href', 'title', 'start', 'align', 'rel', 'target', 'tabindex'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // What leads nowhere need not look like an address.
  ADD_URI_SAFE_ATTR: ['start', 'align', 'tabindex'],
  RETURN_TRUSTED_TYPE: true as const,
}

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return
  const target = node.getAttribute('href')
  if (!target) return
  node.setAttribute('rel', 'noopener noreferrer')
  node.setAttribute('target', '_blank')
  node.setAttribute('title', target)
})

/** The level of each heading: below the page's own, and never more than one below the heading before it. */
function levels(blocks: { type: string; depth?: number }[]): number[] {
  const depths = [...new Set(blocks.flatMap((block) => (block.type === 'heading' ? [block.depth ?? 1] : [])))].sort()
  let before = 1
  return blocks.map((block) => {
    if (block.type !== 'heading') return 0
    before = Math.min(before + 1, 2 + depths.indexOf(block.depth ?? 1))
    return before
  })
}

const Block = memo(function Block({ raw, level }: { raw: string; level: number }) {
  const html = useMemo(() => {
    const written = marked.parse(raw, { async: false })
    // A heading inside a list or a quote is a strong line there.
    const placed = level > 0 ? written.replace(/<(\/?)h[1-6]>/g, `<$1h${level}>`) : written.replace(/<(\/?)h[1-6]>/g, '<$1strong>')
    // What scrolls sideways can be reached with the keyboard.
    return DOMPurify.sanitize(placed.replace(/<(pre|table)>/g, '<$1 tabindex="0">'), ALLOWED)
  }, [raw, level])
  return <div dangerouslySetInnerHTML={{ __html: html as unknown as string }} />
})

export const Markdown = memo(function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const blocks = useMemo(() => marked.lexer(text).filter((token) => token.type !== 'space'), [text])
  const heights = levels(blocks as { type: string; depth?: number }[])
  return (
    <div className={isGrowing ? 'prose growing' : 'prose'}>
      {blocks.map((block, place) => (
        <Block key={place} raw={block.raw} level={heights[place] ?? 0} />
      ))}
    </div>
  )
})
