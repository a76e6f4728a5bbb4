// Shows a component by its name: looks whether there is one, whether the props fit, and says so where not.

import { Component, type ReactNode, useMemo } from 'react'
import { t } from '../i18n'
import type { JsonObject } from '../types'
import { Icon } from '../ui/Icon'
import { componentRegistry, useComponents } from './registry'
import { check } from './schema'

export function ComponentRenderer({ component, props, isGrowing = false }: { component: string; props: JsonObject; isGrowing?: boolean }) {
  useComponents()
  const found = componentRegistry.find(component)
  const checked = useMemo(() => (found?.schema ? check(found.schema, props, isGrowing) : { value: props, wrong: [] }), [found, props, isGrowing])
  if (!found) return <Notice what={isGrowing && !component ? '' : t('component.unknown', { name: component })} props={props} />
  const isEmpty = Object.keys(checked.value).length === 0 && Object.keys(props).length > 0
  if (!isGrowing && isEmpty) return <Notice what={t('component.bad_props', { name: component, why: checked.wrong[0] ?? '' })} props={props} />
  return (
    <Guard key={component} name={component} props={props}>
      {componentRegistry.render(component, checked.value, isGrowing)}
      {!isGrowing && checked.wrong.length > 0 && <p className="component-wrong faint">{t('component.partly', { why: checked.wrong.slice(0, 3).join('; ') })}</p>}
    </Guard>
  )
}

/** What cannot be shown as it was meant, with all that there is. */
export function Notice({ what, props }: { what: string; props: JsonObject }) {
  return (
    <details className="component-notice">
      <summary>
        <Icon name="alert" size={15} /> {what || '…'}
      </summary>
      <pre className="prompt" tabIndex={0}>{JSON.stringify(props, null, 2)}</pre>
    </details>
  )
}

/** A component that fails takes nothing down but itself. */
class Guard extends Component<{ name: string; props: JsonObject; children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {}

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  override render() {
    const { error } = this.state
    if (!error) return this.props.children
    return <Notice what={t('component.failed', { name: this.props.name, why: error.message })} props={this.props.props} />
  }
}
