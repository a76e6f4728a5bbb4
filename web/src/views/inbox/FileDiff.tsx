// What a pending call would change in a file, as the file is now. The server compares; what cannot be compared is shown as the
// arguments.

import { type ReactNode, memo, useEffect, useState } from 'react'
import { get } from '../../api'
import { count, t } from '../../i18n'
import { useLog } from '../../store/store'
import type { FileChange, PendingChange } from '../../wire'
import { Visible } from '../../ui/Visible'
import { around, fileLines } from './diff'
import { useOthers } from './others'

/** What happens within this time is followed by one comparison. */
const AGAIN_MS = 300

const TOOLS: ReadonlySet<string> = new Set(['write_file', 'edit_file'])

/** Whether calls of a tool are shown as changes of a file. */
export const changesFile = (tool: string): boolean => TOOLS.has(tool)

export function FileDiff({ id, children }: { id: string; children: ReactNode }) {
  const [found, setFound] = useState<FileChange | null>()
  const { waiting, writes } = useLog()
  const others = useOthers()
  // Another call may change the file while this one waits.
  const since = [writes, ...waiting.keys(), ...others.map((other) => other.id)].join()
  useEffect(() => {
    let isHere = true
    const compare = () =>
      get<PendingChange>(`/api/approvals/${encodeURIComponent(id)}/change`).then(
        ({ file }) => isHere && setFound(file ?? null),
        () => isHere && setFound(null),
      )
    const timer = setTimeout(compare, found === undefined ? 0 : AGAIN_MS)
    return () => {
      isHere = false
      clearTimeout(timer)
    }
  }, [id, since])
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

const Change = memo(function Change({ change }: { change: Extract<FileChange, { path: string }> }) {
  const { path, isNew, isCut } = change
  const all = fileLines(change)
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
      {added + gone === 0 ? (
        !isCut && <p className="faint">{t(isNew ? 'change.empty' : 'change.same')}</p>
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
})
