// The character references that models write in text, as characters. Others stay as they are written.

const NAMED: { [name: string]: string } = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', hellip: '…', mdash: '—', ndash: '–', times: '×', deg: '°', copy: '©', euro: '€', rarr: '→', larr: '←', le: '≤', ge: '≥', ne: '≠', middot: '·', bull: '•', laquo: '«', raquo: '»', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”' }

export function decoded(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w{2,8}));/g, (written, decimal?: string, hex?: string, name?: string) => {
    if (name) return Object.hasOwn(NAMED, name) ? (NAMED[name] as string) : written
    const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16)
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : written
  })
}
