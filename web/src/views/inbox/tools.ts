// The tools of the society, asked for once.

import { useEffect, useState } from 'react'
import { get } from '../../api'
import type { Tools } from '../../types'

let asked: Promise<Tools> | undefined

export function useTools(): Tools | undefined {
  const [tools, setTools] = useState<Tools>()
  useEffect(() => {
    asked ??= get<Tools>('/api/tools')
    asked.then(setTools, () => {
      asked = undefined
    })
  }, [])
  return tools
}

/** Has them asked for again. */
export function forgetTools(): void {
  asked = undefined
}
