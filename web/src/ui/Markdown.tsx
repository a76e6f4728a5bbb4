// Text that a model wrote, as Markdown and nothing more: no HTML of its own, no pictures, links only to where they say. What the
// parser found becomes elements one by one, so no text ever becomes markup, and what stands there already stays while a text grows.

import type { MarkedToken, Token, Tokens } from 'marked'
import { type ReactNode, createElement, memo, useMemo } from 'react'
import { type Block as BlockProps, type Place, blocksOf, isSame } from './blocks'
import { Code } from './Code'
import { decoded } from './entities'

/** The beginning of a fence that is about to close. */
const HALF_FENCE = /(?:^|\n) {0,3}(?:`{1,2}|~{1,2})$/

const INNER: Place = { level: 0, isGrowing: false }

const all = (tokens: Token[] | undefined, place: Place = INNER): ReactNode[] => (tokens ?? []).map((token, key) => element(token as MarkedToken, key, place))

/** What a token is on the page. */
function element(token: MarkedToken, key: number, place: Place = INNER): ReactNode {
  switch (token.type) {
    case 'paragraph':
      return <p key={key}>{all(token.tokens)}</p>
    case 'text':
      return 'tokens' in token && token.tokens ? all(token.tokens) : decoded(token.text)
    case 'escape':
      return decoded(token.text)
    case 'heading':
      return createElement(place.level > 0 ? `h${place.level}` : 'strong', { key }, ...all(token.tokens))
    case 'code': {
      // The name of the language is whole when its line is.
      const language = token.raw.includes('\n') ? (/^[\w+#.-]{1,20}/.exec(token.lang?.trim() ?? '')?.[0] ?? '') : ''
      return <Code key={key} text={place.isGrowing ? token.text.replace(HALF_FENCE, '') : token.text} language={language} />
    }
    case 'list':
      return createElement(
        token.ordered ? 'ol' : 'ul',
        { key, start: typeof token.start === 'number' && token.start !== 1 ? token.start : undefined },
        ...token.items.map((item, at) => <li key={at}>{all(item.tokens, { level: 0, isGrowing: place.isGrowing && at === token.items.length - 1 })}</li>),
      )
    case 'checkbox':
      // As text, so that it is copied and read aloud too.
      return token.checked ? '☑ ' : '☐ '
    case 'blockquote':
      return <blockquote key={key}>{all(token.tokens, { level: 0, isGrowing: place.isGrowing })}</blockquote>
    case 'table':
      return <Table key={key} token={token as Tokens.Table} />
    case 'hr':
      return <hr key={key} />
    case 'br':
      return <br key={key} />
    case 'html':
      // Models write line breaks into cells of tables.
      return /^<br\s*\/?>$/i.test(token.text.trim()) ? <br key={key} /> : token.block ? <p key={key}>{token.text.trim()}</p> : token.text
    case 'strong':
      return <strong key={key}>{all(token.tokens)}</strong>
    case 'em':
      return <em key={key}>{all(token.tokens)}</em>
    case 'del':
      return <del key={key}>{all(token.tokens)}</del>
    case 'codespan':
      return <code key={key}>{token.text}</code>
    case 'link':
      return <To key={key} target={token.href}>{all(token.tokens)}</To>
    case 'image':
      return <To key={key} target={token.href}>{decoded(token.text) || token.href}</To>
    default:
      return null
  }
}

/** A link that says where it leads. What leads nowhere, or somewhere unsafe, is text. */
function To({ target, children }: { target: string; children: ReactNode }) {
  const href = decoded(target)
  if (!/^(?:https?|mailto):/i.test(href)) return children
  return (
    <a href={href} title={href} rel="noopener noreferrer" target="_blank">
      {children}
    </a>
  )
}

/** What scrolls sideways can be reached with the keyboard. */
function Table({ token }: { token: Tokens.Table }) {
  const cell = (one: Tokens.TableCell, at: number) => createElement(one.header ? 'th' : 'td', { key: at, align: one.align ?? undefined }, ...all(one.tokens))
  return (
    <table tabIndex={0}>
      <thead>
        <tr>{token.header.map(cell)}</tr>
      </thead>
      <tbody>
        {token.rows.map((row, at) => (
          <tr key={at}>{row.map(cell)}</tr>
        ))}
      </tbody>
    </table>
  )
}

const Block = memo(function Block({ token, level, isGrowing }: BlockProps) {
  return <div>{element(token as MarkedToken, 0, { level, isGrowing })}</div>
}, isSame)

export const Markdown = memo(function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const blocks = useMemo(() => blocksOf(text, isGrowing), [text, isGrowing])
  return (
    <div className={isGrowing ? 'prose growing' : 'prose'}>
      {blocks.map((block, place) => (
        <Block key={place} {...block} />
      ))}
    </div>
  )
})
