// Says aloud what matters: an answer, a failure, a plan; and writes into the title how many decisions wait.

import { useEffect, useRef } from 'react'
import { count, t } from '../i18n'
import { named } from '../store/fold'
import { planOf, unitName } from '../store/derive'
import { store, useLine, useStore } from '../store/store'
import type { Events } from '../types'
import { alarm, announce } from './announce'

export function Crier() {
  const seq = useStore((state) => state.seq)
  const waiting = useStore((state) => state.waiting.size)
  const line = useLine()
  const told = useRef<number>(undefined)
  const asked = useRef(0)
  useEffect(() => {
    if (line === 'live' && waiting > asked.current) announce(count('nav.waiting', waiting))
    asked.current = waiting
    document.title = waiting > 0 ? `(${waiting}) ${t('app.name')}` : t('app.name')
  }, [waiting, line])
  useEffect(() => {
    if (line !== 'live') return
    const from = told.current ?? seq
    told.current = seq
    for (const event of store.state.recent) {
      if (event.seq <= from) continue
      const [name, body] = named(event)
      if (name === 'messageSent') hearEnvelope((body as Events['messageSent']).envelope)
      else if (name === 'turnSettled') hearTurn((body as Events['turnSettled']).turn)
    }
  }, [seq, line])
  useEffect(() => {
    if (line === 'lost') announce(t('line.lost'))
  }, [line])
  return null
}

function hearEnvelope({ to, kind }: Events['messageSent']['envelope']): void {
  if (to !== 'user') return
  if (kind === 'answer') announce(t('cry.answer'))
  else if (typeof kind === 'object') (kind.failure.code === 'cancelled' ? announce : alarm)(kind.failure.code === 'cancelled' ? t('chat.stopped') : t('cry.failed', { why: kind.failure.message }))
}

function hearTurn(id: number): void {
  const turn = store.state.turns.get(id)
  if (!turn || turn.origin === 'inbox' || unitName(turn.behaviour) !== 'planner') return
  const plan = planOf(store.state, turn)
  const n = plan?.steps.length ?? 0
  announce(n > 0 ? count('cry.planned', n) : t('cry.planner'))
}
