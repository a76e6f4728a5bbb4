// What a pending call would change in a file, as the file is now. The server compares; what cannot be compared is shown as the
// arguments.

import { type ReactNode, useEffect, useState } from 'react'
import { get } from '../../api'
import { count, t } from '../../i18n'
import type { FileChange, PendingChange } from '../../wire'
import { Visible } from '../../ui/Visible'
import { around, diffLines } from './diff'

const TOOLS: ReadonlySet<string> = new Set(['write_file', 'edit_file'])

/** Whether calls of a tool are shown as changes of a file. */
export const changesFile = (tool: string): boolean => TOOLS.has(tool)

export function FileDiff({ id, children }: { id: string; children: ReactNode }) {
  const [found, setFound] = useState<FileChange | null>()
  useEffect(() => {
    let isHere = true
    get<PendingChange>(`/api/approvals/${encodeURIComponent(id)}/change`).then(
      ({ file }) => isHere && setFound(file ?? null),
      () => isHere && setFound(null),
    )
    return () => {
      isHere = false
    }
  }, [id])
  if (found === undefined) return <p className="faint">{t('change.loading')}</p>
  if (found === null) return children
  if ('reason' in found) {
    return (
      <>
        <p className="notice">
          {t('change.hidden')} <Visible text={found.reason} />
        </p>
        {children}
      </>
    )
  }
  return <Change change={found} />
}

function Change({ change }: { change: Extract<FileChange, { path: string }> }) {
  const { path, isNew, isCut, before, after, line } = change
  const isEnded = (text: string) => text === '' || text.endsWith('\n')
  // An end of the text that is no end of a line is a change too.
  const linesOf = (text: string) => (text === '' ? [] : isEnded(before) && isEnded(after) ? text.slice(0, -1).split('\n') : text.split('\n'))
  const all = diffLines(linesOf(before), linesOf(after), line)
  const added = all.filter(({ kind }) => kind === 'new').length
  const gone = all.filter(({ kind }) => kind === 'gone').length
  const marks = { same: ' ', gone: '−', new: '+' } as const
  return (
    <section className="difference file-change" aria-label={t('change.label', { path })}>
      <p className="change-head">
        <code>
          <Visible text={path} />
        </code>
        {isNew && <span className="risk">{t('change.new')}</span>}
        <span className="change-count" role="img" aria-label={`${count('change.added', added)}, ${count('change.gone', gone)}`}>
          <span className="code-new">{`+${added}`}</span> <span className="code-gone">{`−${gone}`}</span>
        </span>
      </p>
      {all.length === 0 || added + gone === 0 ? (
        <p className="faint">{t(isNew ? 'change.empty' : 'change.same')}</p>
      ) : (
        <pre tabIndex={0}>
          {around(all, 3).map((one, place) => (
            <span key={place} className={`change-line ${one.kind}`}>
              <span className="change-number" aria-hidden="true">{one.before}</span>
              <span className="change-number" aria-hidden="true">{one.after}</span>
              <span>{marks[one.kind]}</span>
              <span className="change-text">
                <Visible text={one.text} />
                {'\n'}
              </span>
            </span>
          ))}
        </pre>
      )}
      {isCut && <p className="notice">{t('change.cut')}</p>}
    </section>
  )
}
