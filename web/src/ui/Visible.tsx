// Text in which nothing hides: characters that a person cannot see, or that turn the order of others around, are shown by their
// numbers. Used wherever a person decides by what they read.

import { HIDDEN, parts } from './hidden'

export function Visible({ text }: { text: string }) {
  if (!HIDDEN.test(text)) return text
  return parts(text).map((part, place) => (part.isHidden ? <mark key={place} className="hidden-character">{part.text}</mark> : <bdi key={place}>{part.text}</bdi>))
}
