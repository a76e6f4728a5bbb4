// A link to another place of the page.

import type { AnchorHTMLAttributes } from 'react'
import { follow } from '../router'

export function Link(props: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  return <a onClick={follow} {...props} />
}
