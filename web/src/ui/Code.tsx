// A block of code: its language, a button that copies it, and its lines in colours, which are loaded when there is code. What has
// been drawn stays while the text grows: only lines that changed are drawn again.

import { memo, useEffect, useMemo, useState } from 'react'
import { t } from '../i18n'
import { Copy } from './Copy'
import type { Token } from './highlight'

type Highlighter = typeof import('./highlight')

let loaded: Highlighter | undefined

function useHighlighter(isWanted: boolean): Highlighter | undefined {
  const [found, setFound] = useState(loaded)
  useEffect(() => {
    if (!isWanted || found) return
    let isHere = true
    import('./highlight').then(
      (file) => {
        loaded = file
        if (isHere) setFound(file)
      },
      () => undefined,
    )
    return () => {
      isHere = false
    }
  }, [isWanted, found])
  return found
}

const isSame = (one: readonly Token[], other: readonly Token[]) => one.length === other.length && one.every(([kind, text], place) => kind === other[place]?.[0] && text === other[place]?.[1])

const Line = memo(
  function Line({ tokens }: { tokens: readonly Token[] }) {
    return tokens.map(([kind, text], place) => (
      <span key={place} className={kind && `code-${kind}`}>
        {text}
      </span>
    ))
  },
  (one, other) => isSame(one.tokens, other.tokens),
)

export const Code = memo(function Code({ text, language }: { text: string; language: string }) {
  const highlighter = useHighlighter(language !== '')
  const lines = useMemo(() => highlighter?.highlight(text, language), [highlighter, text, language])
  return (
    <figure className="code" aria-label={language ? t('code.of', { language }) : t('code')}>
      <figcaption>
        <span className="code-language">{language}</span>
        <Copy text={text} label={t('code.copy')} />
      </figcaption>
      <pre tabIndex={0}>
        <code>
          {lines
            ? lines.map((tokens, place) => (
                <span key={place} className="code-line">
                  <Line tokens={tokens} />
                  {place < lines.length - 1 && '\n'}
                </span>
              ))
            : text}
        </code>
      </pre>
    </figure>
  )
})
