// Shows what a tool or an agent gave, piece by piece.

import { Suspense, lazy, memo, useMemo } from 'react'
import { Markdown } from '../ui/Markdown'
import { ComponentRenderer } from './ComponentRenderer'
import type { ToolResultContentItem } from './contract'
import { parseToolResultContent } from './parse'

/** With the sanitiser, which little else needs. */
const Html = lazy(() => import('./Html').then((file) => ({ default: file.Html })))

export const ToolResultDisplay = memo(function ToolResultDisplay({ content, isGrowing = false }: { content: string; isGrowing?: boolean }) {
  const items = useMemo(() => parseToolResultContent(content, isGrowing), [content, isGrowing])
  return (
    <div className="tool-result">
      {items.map((item, place) => (
        <Item key={place} item={item} isGrowing={isGrowing && place === items.length - 1} />
      ))}
      {isGrowing && <span className="ai-cursor" aria-hidden="true" />}
    </div>
  )
})

function Item({ item, isGrowing }: { item: ToolResultContentItem; isGrowing: boolean }) {
  switch (item.type) {
    case 'component':
      return <ComponentRenderer component={item.component ?? ''} props={item.props ?? {}} isGrowing={isGrowing} />
    case 'webcomponent':
      return (
        <Suspense fallback={null}>
          <Html html={item.value ?? ''} />
        </Suspense>
      )
    case 'json':
      return <pre className="prompt" tabIndex={0}>{item.value}</pre>
    default:
      return <Markdown text={item.value ?? ''} isGrowing={isGrowing} />
  }
}
