// Files that a message or a result brings along. Pictures are shown small; any file is fetched when it is wanted, and given to the
// browser as a download.

import { type ReactNode, useEffect, useState } from 'react'
import { ask } from '../api'
import { Frame } from '../components/Frame'
import { t } from '../i18n'
import type { Artifact } from '../types'
import { bytes } from './format'
import { Icon } from './Icon'

/** Longer documents are only given as files. */
const SHOWN_BYTES = 2_000_000

/** Larger pictures are only given as files. */
const THUMBNAIL_BYTES = 10_000_000

async function download(artifact: Artifact): Promise<void> {
  const response = await ask(`/api/artifacts/${encodeURIComponent(artifact.id)}`)
  const url = URL.createObjectURL(await response.blob())
  const link = document.createElement('a')
  link.href = url
  link.download = artifact.name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** A document that a model made, in a frame that reaches nothing. */
function Shown({ artifact }: { artifact: Artifact }) {
  const [html, setHtml] = useState<string>()
  const show = () => ask(`/api/artifacts/${encodeURIComponent(artifact.id)}`).then(async (response) => setHtml(await response.text()), () => undefined)
  if (html !== undefined) return <Frame html={html} title={artifact.name} />
  return (
    <button type="button" className="small" onClick={() => void show()}>
      {t('files.show', { name: artifact.name })}
    </button>
  )
}

/** The types of pictures that are shown. SVG is not one of them: it can hold scripts. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

const isPicture = ({ mediaType, bytes }: Artifact): boolean => PICTURES.includes(mediaType ?? '') && bytes <= THUMBNAIL_BYTES

/** A picture, small; what is none, or is not here yet, otherwise. */
export function Thumbnail({ artifact, otherwise = null }: { artifact: Artifact; otherwise?: ReactNode }) {
  const [url, setUrl] = useState<string>()
  const isShown = isPicture(artifact)
  useEffect(() => {
    if (!isShown) return
    const left = new AbortController()
    let made: string | undefined
    ask(`/api/artifacts/${encodeURIComponent(artifact.id)}`, { signal: left.signal }).then(
      async (response) => {
        const blob = await response.blob()
        if (left.signal.aborted) return
        made = URL.createObjectURL(blob)
        setUrl(made)
      },
      () => undefined,
    )
    return () => {
      left.abort()
      if (made) URL.revokeObjectURL(made)
    }
  }, [artifact.id, isShown])
  return url === undefined ? otherwise : <img className="thumbnail" src={url} alt={artifact.name} />
}

export function Files({ artifacts }: { artifacts: Artifact[] }) {
  if (artifacts.length === 0) return null
  return (
    <ul className="files">
      {artifacts.map((artifact) => (
        <li key={artifact.id + artifact.name}>
          <Thumbnail artifact={artifact} />
          <button type="button" className="file" onClick={() => void download(artifact)} aria-label={t('files.download', { name: artifact.name })}>
            <Icon name="file" size={16} />
            <span className="file-name">{artifact.name}</span>
            <span className="faint numbers">{bytes(artifact.bytes)}</span>
          </button>
          {artifact.mediaType?.startsWith('text/html') && artifact.bytes <= SHOWN_BYTES && <Shown artifact={artifact} />}
        </li>
      ))}
    </ul>
  )
}
