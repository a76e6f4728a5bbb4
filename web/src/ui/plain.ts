// Text without its marks.

/** Markdown in one line, without its marks. */
export function plainText(text: string): string {
  return text
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+]|\d+\.)\s+/gm, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__|~~|`+)(.+?)\1/g, '$2')
    .replace(/(^|\s)[*_](\S[^*_]*)[*_](?=\s|[.,;:!?]|$)/g, '$1$2')
}
