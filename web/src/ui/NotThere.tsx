// What is shown where an address leads nowhere: what is not there, and a way home.

import type { ReactNode } from 'react'
import { t } from '../i18n'
import { href } from '../router'
import { Icon } from './Icon'
import { Link } from './Link'

export function NotThere({ title, text, children }: { title: string; text: string; children?: ReactNode }) {
  return (
    <section className="view not-there" aria-labelledby="view-title">
      <Icon name="question" size={40} />
      <h1 id="view-title">{title}</h1>
      <p className="faint">{text}</p>
      {children ?? (
        <Link className="button" href={href('chat')}>
          <Icon name="chat" size={15} />
          {t('nowhere.home')}
        </Link>
      )}
    </section>
  )
}
