// Colours for code: a text becomes lines of tokens, by one expression for each family of languages. It knows words and marks, and no
// grammar; a text that is still being written has the colours that it keeps. Loaded when there is code.

export type Kind = 'comment' | 'string' | 'number' | 'word' | 'name' | 'type' | 'gone' | 'new'

/** A stretch of text in one colour; none is the colour of the text. */
export type Token = readonly [kind: Kind | undefined, text: string]

/** Longer texts have no colours. */
const MOST = 60_000

type Rule = readonly [Kind, string]

const words = (list: string, flags = ''): Rule => ['word', `${flags}\\b(?:${list.trim().replace(/\s+/g, '|')})\\b`]

const LINE = (mark: string): Rule => ['comment', `${mark}.*`]
const BLOCK: Rule = ['comment', '\\/\\*[^]*?(?:\\*\\/|$(?![^]))']
// A text that is not closed ends with its line, or with all that there is.
const QUOTED: Rule = ['string', '"(?:\\\\.|[^"\\\\\\n])*"?']
const SINGLE: Rule = ['string', "'(?:\\\\.|[^'\\\\\\n])*'?"]
const CHAR: Rule = ['string', "'(?:\\\\.[^'\\n]{0,8}|[^'\\\\\\n])'"]
const BACKED: Rule = ['string', '`(?:\\\\[^]|[^`\\\\])*`?']
const TRIPLE: Rule = ['string', '("""|\'\'\')[^]*?(?:\\1|$(?![^]))']
const NUMBER: Rule = ['number', '\\b(?:0[xX][\\da-fA-F_]+|0[bo][\\d_]+|\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:[eE][+-]?\\d+)?)\\w*']
const CALLED: Rule = ['name', '\\b[A-Za-z_]\\w*!?(?=\\()']
const TYPE: Rule = ['type', '\\b[A-Z]\\w*']
const AT: Rule = ['name', '@[\\w.]+']

const C_WORDS = 'auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extends extern false final finally float for foreach friend goto if implements import in inline instanceof int interface internal is let long mutable namespace new nil null nullptr operator out override package private protected public readonly record ref return sealed short signed sizeof static struct super switch synchronized template this throw throws true try typedef typename union unsigned using val var virtual void volatile when while'

const FAMILIES: { [family: string]: readonly Rule[] } = {
  script: [LINE('\\/\\/'), BLOCK, BACKED, QUOTED, SINGLE, NUMBER, words('abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace never new null number object of private protected public readonly return satisfies set static string super switch symbol this throw true try type typeof undefined unknown var void while with yield'), AT, CALLED, TYPE],
  python: [LINE('#'), ['string', '\\b[fFrRbBuU]{1,2}(?=["\'])'], TRIPLE, QUOTED, SINGLE, NUMBER, words('False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield'), AT, CALLED, TYPE],
  rust: [LINE('\\/\\/'), BLOCK, ['string', 'b?r(#{1,3})"[^]*?(?:"\\1|$(?![^]))'], ['string', 'b?"(?:\\\\[^]|[^"\\\\])*"?'], CHAR, ['name', "'[a-z_]\\w*"], ['name', '#!?\\[[^\\]\\n]*\\]?'], NUMBER, words('Self as async await box break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self static struct super trait true type union unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize'), CALLED, TYPE],
  go: [LINE('\\/\\/'), BLOCK, BACKED, QUOTED, CHAR, NUMBER, words('any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if import int int32 int64 interface iota map nil package range return rune select string struct switch true type uint uint8 uint32 uint64 var'), CALLED, TYPE],
  c: [['name', '^[ \\t]*#[ \\t]*\\w+'], LINE('\\/\\/'), BLOCK, TRIPLE, QUOTED, CHAR, NUMBER, words(`${C_WORDS} abstract as async await fun func guard init object open protocol self string suspend`), AT, CALLED, TYPE],
  shell: [['comment', '(?<![^\\s;])#.*'], ['string', '"(?:\\\\[^]|[^"\\\\])*"?'], ['string', "'[^']*'|'.*"], ['name', '\\$(?:\\{[^}\\n]*\\}?|\\w+|[@*#?$!-])'], words('alias case cd do done echo elif else esac eval exec exit export fi for function if in local read return set shift source sudo then trap unset until while'), ['type', '(?<=\\s)--?[A-Za-z][\\w-]*'], ['number', '(?<=\\s)\\d+\\b']],
  sql: [LINE('--'), BLOCK, ['string', "'(?:''|[^'])*'?"], ['type', '"[^"\\n]*"?'], NUMBER, words('add all alter and any array as asc begin between bigint boolean by cascade case char check column commit conflict constraint create cross database date default delete desc distinct do drop else end except exists explain false filter foreign from full function grant group having if in index inner insert integer interval into is join json jsonb key lateral left like limit materialized not nothing null numeric offset on only or order outer over partition primary references returning right rollback row schema select serial set table text then timestamp timestamptz to transaction trigger true truncate union unique update using uuid values varchar view when where window with'), CALLED],
  json: [LINE('\\/\\/'), BLOCK, ['name', '"(?:\\\\.|[^"\\\\\\n])*"(?=\\s*:)'], QUOTED, ['number', '-?\\b\\d[\\d.eE+-]*'], words('true false null')],
  markup: [['comment', '<!--[^]*?(?:-->|$(?![^]))'], ['word', '<\\/?[A-Za-z][\\w:.-]*|\\/?>|<[!?][A-Za-z]+'], ['string', '(?<==\\s{0,4})(?:"[^"]*"?|\'[^\']*\'?)'], ['name', '(?<=\\s)[\\w:@.-]{1,60}(?==)'], ['number', '&#?\\w+;']],
  style: [BLOCK, ['comment', '(?<![:\\w])\\/\\/.*'], QUOTED, SINGLE, ['word', '@[\\w-]+'], ['number', '#[\\da-fA-F]{3,8}\\b|-?\\b\\d[\\d.]*(?:%|[a-z]+)?'], ['name', '--[\\w-]+|(?<![\\w-])[\\w-]{1,60}(?=\\s{0,4}:(?![:\\w-]))'], ['type', '[.#][A-Za-z][\\w-]*']],
  yaml: [['comment', '(?<![^\\s])#.*'], ['name', '^[ \\t]*(?:- +)*[^\\s:#\'"{\\[-][^:#\\n]*(?=:(?:\\s|$))'], QUOTED, SINGLE, words('true false null yes no on off'), ['number', '(?<![\\w.-])-?\\d[\\d.]*\\b(?![\\w.-])'], ['type', '[&*!][\\w-]+']],
  settings: [['comment', '^[ \\t]*[;#].*|(?<=\\s)#.*'], ['type', '^[ \\t]*\\[[^\\n]*\\]'], ['name', '^[ \\t]*[\\w."-]+(?=\\s*=)'], TRIPLE, QUOTED, SINGLE, words('true false on off'), ['number', '(?<![\\w.-])[+-]?\\d[\\d_:.TZeE+-]*']],
  diff: [['word', '^(?:diff |index |--- |\\+\\+\\+ |@@).*'], ['new', '^\\+.*'], ['gone', '^-.*']],
  ruby: [LINE('#'), QUOTED, SINGLE, NUMBER, words('BEGIN END alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield local function repeat'), ['name', '(?<![:\\w]):[a-z_]\\w*|@{1,2}\\w+'], CALLED, TYPE],
  php: [['word', '<\\?(?:php|=)?|\\?>'], LINE('(?:\\/\\/|#(?!\\[))'), BLOCK, ['string', '"(?:\\\\[^]|[^"\\\\])*"?'], SINGLE, ['name', '\\$\\w+'], NUMBER, words(`${C_WORDS} abstract array as echo elseif endforeach endif endwhile fn function global isset match require require_once include trait use unset yield`), CALLED, TYPE],
  lua: [['comment', '--\\[\\[[^]*?(?:\\]\\]|$(?![^]))'], LINE('--'), QUOTED, SINGLE, NUMBER, words('and break do else elseif end false for function goto if in local nil not or repeat return then true until while'), CALLED],
  docker: [LINE('#'), ['word', '^[ \\t]*(?:ADD|ARG|AS|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|ONBUILD|RUN|SHELL|STOPSIGNAL|USER|VOLUME|WORKDIR)\\b'], QUOTED, SINGLE, ['name', '\\$\\{?\\w+\\}?'], ['type', '(?<=\\s)--[\\w-]+']],
}

const NAMES: { [family: string]: string } = {
  script: 'js javascript jsx mjs cjs ts typescript tsx mts node',
  python: 'python py python3 pyi',
  rust: 'rust rs',
  go: 'go golang',
  c: 'c h cpp c++ cc cxx hpp cs csharp c# java kotlin kt kts scala swift dart objc proto protobuf',
  shell: 'sh bash zsh shell console terminal fish shellscript makefile make',
  sql: 'sql postgres postgresql mysql sqlite plsql',
  json: 'json jsonc json5 jsonl',
  markup: 'html xml svg vue svelte xhtml',
  style: 'css scss less',
  yaml: 'yaml yml',
  settings: 'toml ini cfg conf properties dotenv env',
  diff: 'diff patch',
  ruby: 'ruby rb',
  php: 'php',
  lua: 'lua',
  docker: 'dockerfile docker',
}

const FAMILY = new Map(Object.entries(NAMES).flatMap(([family, names]) => names.split(' ').map((name) => [name, family] as const)))

interface Reader {
  pattern: RegExp
  /** The group that each rule is, and its kind. */
  kinds: readonly (readonly [group: number, kind: Kind])[]
}

const readers = new Map<string, Reader>()

/** The rules of a family as one expression, in which each rule is a group. */
function reader(family: string): Reader {
  const known = readers.get(family)
  if (known) return known
  let groups = 1
  const kinds: [number, Kind][] = []
  const parts = (FAMILIES[family] ?? []).map(([kind, source]) => {
    const own = groups
    kinds.push([own, kind])
    // A rule that has a group of its own names it by its number there, which is not its number here.
    groups += 1 + (source.match(/(?<!\\)\((?!\?)/g) ?? []).length
    return `(${source.replace(/\\1(?!\d)/g, () => `\\${own + 1}`)})`
  })
  const made = { pattern: new RegExp(parts.join('|'), family === 'sql' ? 'gim' : 'gm'), kinds }
  readers.set(family, made)
  return made
}

/** The lines of a text; without colours where the language is not known or the text is very long. */
export function highlight(text: string, language: string): Token[][] {
  const family = FAMILY.get(language.toLowerCase())
  const lines: Token[][] = [[]]
  const put = (kind: Kind | undefined, piece: string) => {
    piece.split('\n').forEach((part, place) => {
      if (place > 0) lines.push([])
      if (part) lines.at(-1)?.push([kind, part])
    })
  }
  if (!family || text.length > MOST) {
    put(undefined, text)
    return lines
  }
  const { pattern, kinds } = reader(family)
  let end = 0
  for (const match of text.matchAll(pattern)) {
    if (!match[0]) continue
    put(undefined, text.slice(end, match.index))
    put(kinds.find(([group]) => match[group] !== undefined)?.[1], match[0])
    end = match.index + match[0].length
  }
  put(undefined, text.slice(end))
  return lines
}
