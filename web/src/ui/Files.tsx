// Files that a message or a result brings along. One is fetched when it is wanted, and given to the browser as a download.

import { ask } from '../api'
import { t } from '../i18n'
import type { Artifact } from '../types'
import { bytes } from './format'
import { Icon } from './Icon'

async function download(artifact: Artifact): Promise<void> {
  const response = await ask(`/api/artifacts/${encodeURIComponent(artifact.id)}`)
  const url = URL.createObjectURL(await response.blob())
  const link = document.createElement('a')
  link.href = url
  link.download = artifact.name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

export function Files({ artifacts }: { artifacts: Artifact[] }) {
  if (artifacts.length === 0) return null
  return (
    <ul className="files">
      {artifacts.map((artifact) => (
        <li key={artifact.id + artifact.name}>
          <button type="button" className="file" onClick={() => void download(artifact)} aria-label={t('files.download', { name: artifact.name })}>
            <Icon name="file" size={16} />
            <span className="file-name">{artifact.name}</span>
            <span className="faint numbers">{bytes(artifact.bytes)}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
