// The blocks of a text in Markdown, and whether one must be drawn again after the text has grown.

import { Lexer, type Token } from 'marked'

export interface Place {
  /** The level of a heading; one inside a list or a quote is a strong line. */
  level: number
  isGrowing: boolean
}

export interface Block extends Place {
  token: Token
  /** The targets of links that the text defines anywhere. */
  targets: string
}

/** Whether a block need not be drawn again: its text is the same, and links in it lead where they led. */
export const isSame = (one: Block, other: Block): boolean =>
  one.token.raw === other.token.raw && one.level === other.level && one.isGrowing === other.isGrowing && one.targets === other.targets

/** The blocks of a text, with what each is drawn from. */
export function blocksOf(text: string, isGrowing: boolean): Block[] {
  const tokens = new Lexer({ gfm: true }).lex(text)
  const blocks = tokens.filter(({ type }) => type !== 'space' && type !== 'def')
  const targets = JSON.stringify(tokens.links)
  const heights = levels(blocks)
  return blocks.map((token, place) => ({ token, level: heights[place] ?? 0, isGrowing: isGrowing && place === blocks.length - 1, targets }))
}

/** The level of each heading: below the page's own, and never more than one below the heading before it. */
function levels(blocks: Token[]): number[] {
  const depths = [...new Set(blocks.flatMap((block) => (block.type === 'heading' ? [block.depth as number] : [])))].sort()
  let before = 1
  return blocks.map((block) => {
    if (block.type !== 'heading') return 0
    before = Math.min(before + 1, 2 + depths.indexOf(block.depth as number))
    return before
  })
}
